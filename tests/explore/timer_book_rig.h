// A record of all that users of a scheduler know about its timers, and checks of this record.
//
// Each timer has a page. Its job records when it begins, ends and is destroyed. Its user records
// the results of the handle. Every record must fit the earlier records. At the end, all records
// must fit the stats of the scheduler.
#pragma once

#include <chrono>
#include <cstdint>
#include <deque>
#include <optional>

#include "detent/clock.h"
#include "detent/scheduler.h"
#include "tests/explore/schedules_rig.h"

namespace detent::explore {

/// The facts about one timer.
struct Page {
  // Bounds of the (first) deadline: the clock before and after the call of `schedule`, plus the
  // delay.
  MonotonicTime earliest = MonotonicTime::max();
  MonotonicTime latest = MonotonicTime::max();
  std::chrono::nanoseconds period{};
  std::uint64_t most_runs = 1;
  std::uint64_t runs = 0;
  MonotonicTime ran_at;     // the last run
  bool is_inside = false;   // its job is being called
  int destroyed = 0;        // how often its job was destroyed
  bool is_settled = false;  // it has ended, and every thread has finished its work on it
  bool must_run = false;    // a stop has begun that must run it
  bool answered_cancelled = false;
  bool answered_running = false;  // so it must have run
  bool was_let_go = false;        // its handle was destroyed: it was cancelled, or had begun

  bool is_over() const { return destroyed > 0; }
  /// Whether it has run since its last tick up to `now`, or did not have to run yet.
  bool has_run_by(MonotonicTime now) const {
    if (latest > now) return true;
    const MonotonicTime tick = period.count() > 0 ? now - (now - latest) % period : latest;
    return runs > 0 && ran_at >= tick;
  }
};

/// Only the thread that has the turn uses it, so it needs no lock.
class TimerBook {
 public:
  TimerBook(Findings& findings, const Clock& clock) : findings_(findings), clock_(&clock) {}

  Page& add_page() { return pages_.emplace_back(); }
  void expect(bool holds, const char* what_must_be_so) { findings_.expect(holds, what_must_be_so); }

  /// The present time; empty after the clock was destroyed.
  std::optional<MonotonicTime> now() const {
    if (clock_ == nullptr) return std::nullopt;
    return clock_->now();
  }
  void forget_clock() { clock_ = nullptr; }

  // ---- calls by jobs ----

  void begin_run(Page& page) {
    expect(!page.is_inside, "runs of one timer do not overlap");
    expect(page.destroyed == 0, "a job that was destroyed does not run");
    expect(page.runs < page.most_runs, "a timer runs at most as often as its count");
    expect(!stopped_, "no job runs after stop has returned");
    expect(clock_ != nullptr, "no job runs after the scheduler's end");
    page.is_inside = true;
    page.ran_at = now().value_or(MonotonicTime::min());
    ++page.runs;
  }

  void end_run(Page& page) { page.is_inside = false; }

  void destroy(Page& page) {
    expect(!page.is_inside, "a job is not destroyed while it runs");
    ++page.destroyed;
    expect(page.destroyed == 1, "a job is destroyed once");
  }

  // ---- results of calls by users ----

  /// `was_over`: the timer had ended before the call. `waited`: the call was cancel_and_wait, from
  /// outside the job.
  void note_cancel(Page& page, CancelResult result, bool was_over, bool waited) {
    switch (result) {
      case CancelResult::cancelled:
        expect(!was_over, "a timer that has ended is not cancelled");
        expect(page.runs == 0 || page.most_runs > 1, "a timer that ran is not cancelled");
        expect(page.is_over(), "cancelled: the job has been destroyed");
        page.answered_cancelled = true;
        break;
      case CancelResult::running:
        expect(!page.is_settled, "a timer that has ended is not running");
        expect(!page.answered_cancelled, "a cancelled timer is not running");
        expect(!waited || page.is_over(), "cancel_and_wait waits until the job is destroyed");
        page.answered_running = true;
        break;
      case CancelResult::not_pending:
        expect(page.is_over() || stop_begun_, "not pending: the timer has ended");
        break;
    }
  }

  /// `before`: the time before the call.
  void note_move(Page& page, std::optional<MonotonicTime> before, std::chrono::nanoseconds delay,
                 bool moved, bool was_over) {
    if (!moved) {
      if (!page.is_over() && !stop_begun_) page.answered_running = true;
      return;
    }
    expect(!was_over, "a timer that has ended is not moved");
    expect(before.has_value(), "a timer of a destroyed scheduler is not moved");
    const std::optional<MonotonicTime> after = now();
    page.earliest = before.value_or(MonotonicTime::min()) + delay;
    page.latest = after ? *after + delay : MonotonicTime::max();
    page.must_run = false;
  }

  void begin_stop(Drain drain) {
    for (Page& page : pages_) {
      page.must_run = (page.must_run || !stop_begun_) && stop_runs(drain, page);
    }
    stop_begun_ = true;
  }
  void end_stop() { stopped_ = true; }

  // ---- checks ----

  /// Requires: no thread has work until time moves.
  void check_idle() {
    if (stop_begun_) return;
    for (Page& page : pages_) {
      expect(page.is_over() || page.has_run_by(*now()),
             "when all threads are idle, every due timer has run");
      expect(!page.was_let_go || page.is_over(),
             "when all threads are idle, every timer with a destroyed handle has ended");
      page.is_settled = page.is_over();
    }
  }

  /// Requires: the scheduler has stopped, and the jobs that it handed back are destroyed.
  void check_end() {
    for (const Page& page : pages_) {
      expect(page.is_over(), "every job is destroyed in the end");
      expect(page.runs == 0 || page.ran_at >= page.earliest + (page.runs - 1) * page.period,
             "no job runs early");
      expect(!page.answered_running || page.runs > 0, "a timer that was running did run");
      expect(!page.must_run || page.answered_cancelled || page.was_let_go || page.runs > 0,
             "a stop that must run a timer runs it");
    }
  }

  void check_stats(const SchedulerStats& stats) {
    std::uint64_t runs = 0;
    std::uint64_t completed = 0;
    std::uint64_t cancelled = 0;
    std::uint64_t perhaps_cancelled = 0;
    for (const Page& page : pages_) {
      runs += page.runs;
      if (page.runs == page.most_runs) {
        ++completed;
      } else if (page.answered_cancelled) {
        ++cancelled;
      } else if (page.was_let_go || page.answered_running) {
        ++perhaps_cancelled;
      }
    }
    expect(stats.scheduled == pages_.size(), "stats: scheduled");
    expect(stats.runs == runs, "stats: runs");
    expect(stats.completed == completed, "stats: completed");
    expect(stats.cancelled >= cancelled, "stats: cancelled, at least");
    expect(stats.cancelled <= cancelled + perhaps_cancelled, "stats: cancelled, at most");
    expect(stats.completed + stats.cancelled + stats.dropped == stats.scheduled,
           "stats: every timer has ended in one way");
    expect(stats.pending == 0 && stats.running == 0, "stats: no timer is pending or running");
    expect(stats.rejected == 0, "stats: there was room");
  }

 private:
  /// Whether a stop that begins now runs a pending timer.
  bool stop_runs(Drain drain, const Page& page) const {
    switch (drain) {
      case Drain::drop:
      case Drain::hand_back:
        return false;
      case Drain::run_due:
        return page.latest <= now();
      case Drain::run_pending:
        return page.latest < MonotonicTime::max();
    }
    return false;
  }

  Findings& findings_;
  const Clock* clock_;
  std::deque<Page> pages_;
  bool stop_begun_ = false;
  bool stopped_ = false;
};

}  // namespace detent::explore

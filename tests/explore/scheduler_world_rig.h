// A scheduler with its clock and pool. All its timers have a page in a TimerBook. The scenarios of
// scheduler_explore_test.cc use it.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "base/explore.h"
#include "base/rng.h"
#include "detent/clock.h"
#include "detent/executor.h"
#include "detent/scheduler.h"
#include "tests/explore/timer_book_rig.h"

namespace detent::explore {

/// The job of a timer. Records its life in the book, with hook points during its run.
class BookedJob {
 public:
  BookedJob(TimerBook& book, Page& page, std::function<void()> then)
      : book_(book), page_(&page), then_(std::move(then)) {}
  BookedJob(BookedJob&& other) noexcept
      : book_(other.book_),
        page_(std::exchange(other.page_, nullptr)),
        then_(std::move(other.then_)) {}
  BookedJob& operator=(BookedJob&&) = delete;
  ~BookedJob() {
    if (page_ == nullptr) return;
    explore_point();
    book_.destroy(*page_);
  }

  void operator()() {
    book_.begin_run(*page_);
    explore_point();
    if (then_) then_();
    explore_point();
    book_.end_run(*page_);
  }

 private:
  TimerBook& book_;
  Page* page_;  // null after a move
  std::function<void()> then_;
};

/// A handle whose results are recorded in the book. Like a handle, for one thread at a time.
class BookedTimer {
 public:
  BookedTimer(TimerBook& book, Page& page, TimerHandle handle)
      : book_(&book), page_(&page), handle_(std::move(handle)) {}
  BookedTimer(BookedTimer&&) = default;
  BookedTimer& operator=(BookedTimer&& other) noexcept {
    let_go();
    book_ = other.book_;
    page_ = other.page_;
    handle_ = std::move(other.handle_);
    return *this;
  }
  ~BookedTimer() { let_go(); }

  void cancel() {
    const bool was_over = page_->is_over();
    book_->note_cancel(*page_, handle_.cancel(), was_over, false);
  }
  void cancel_and_wait() {
    const bool was_over = page_->is_over();
    book_->note_cancel(*page_, handle_.cancel_and_wait(), was_over, true);
  }
  void cancel_from_own_job() {
    const CancelResult result = handle_.cancel_and_wait();
    book_->expect(result == CancelResult::running, "a job that cancels itself is running");
    book_->note_cancel(*page_, result, false, false);
  }
  void move(std::chrono::nanoseconds delay) {
    const bool was_over = page_->is_over();
    const std::optional<MonotonicTime> before = book_->now();
    const bool moved = handle_.expires_after(delay);
    book_->note_move(*page_, before, delay, moved, was_over);
  }
  /// Destroys the handle, which cancels the timer. The result is unknown.
  void let_go() {
    if (!handle_) return;
    page_->was_let_go = true;
    handle_ = TimerHandle();
  }
  void release() { handle_.release(); }

 private:
  TimerBook* book_;
  Page* page_;
  TimerHandle handle_;
};

/// The number of threads that run jobs, in addition to the driver. They share a queue for one job.
enum class Pool : std::uint8_t { none, one_thread, two_threads };

/// Thread-safe, except `finish` and `destroy`.
class SchedulerWorld {
 public:
  SchedulerWorld(Rng& rng, Findings& findings, Pool pool)
      : clock_(std::make_unique<ManualClock>()), book_(findings, *clock_) {
    SchedulerOptions options;
    options.clock = clock_.get();
    options.shards = 1 + rng.below(2);
    options.seed = rng.next();
    if (pool != Pool::none) {
      pool_.emplace(
          ThreadPoolOptions{.threads = pool == Pool::one_thread ? 1U : 2U, .capacity = 1});
      options.executor = &*pool_;
    }
    scheduler_.emplace(std::move(options));
  }

  /// Schedules a timer whose job calls `then`.
  BookedTimer schedule(std::chrono::nanoseconds delay, std::function<void()> then = nullptr) {
    Page& page = book_.add_page();
    page.earliest = clock_->now() + delay;
    TimerHandle handle = scheduler_->schedule_after(delay, BookedJob(book_, page, std::move(then)));
    return enter(page, delay, std::move(handle));
  }
  /// Schedules a timer and releases its handle.
  void start(std::chrono::nanoseconds delay, std::function<void()> then = nullptr) {
    schedule(delay, std::move(then)).release();
  }
  BookedTimer schedule_every(std::chrono::nanoseconds period, std::uint64_t count,
                             std::function<void()> then = nullptr) {
    Page& page = book_.add_page();
    page.earliest = clock_->now() + period;
    page.period = period;
    page.most_runs = count;
    TimerHandle handle = scheduler_->schedule_every({.period = period, .count = count},
                                                    BookedJob(book_, page, std::move(then)));
    return enter(page, period, std::move(handle));
  }

  void advance(std::chrono::nanoseconds delta) { clock_->advance(delta); }

  void stop(Drain drain) {
    book_.begin_stop(drain);
    const std::vector<PendingJob> left = scheduler_->stop(drain);
    book_.end_stop();
    book_.expect(drain == Drain::hand_back || left.empty(), "only hand_back hands back");
    for (const PendingJob& pending : left) {
      book_.expect(static_cast<bool>(pending.job), "what is handed back has its job");
    }
  }
  void stop_from_inside_a_job() {
    book_.begin_stop(Drain::drop);
    scheduler_->stop(Drain::drop);
  }

  /// Checks, stops and checks again. Requires: no other thread uses this object.
  void finish() {
    check_idle();
    advance(std::chrono::milliseconds{1});
    check_idle();
    stop(Drain::drop);
    book_.check_end();
    book_.check_stats(scheduler_->stats());
  }

  /// Destroys the scheduler, and then its pool and clock. Requires: other threads use only handles.
  void destroy() {
    book_.begin_stop(Drain::drop);
    scheduler_.reset();
    book_.end_stop();
    pool_.reset();
    book_.forget_clock();
    clock_.reset();
  }

  TimerBook& book() { return book_; }

 private:
  BookedTimer enter(Page& page, std::chrono::nanoseconds delay, TimerHandle handle) {
    if (handle) page.latest = clock_->now() + delay;
    book_.expect(static_cast<bool>(handle) || page.is_over(), "a refused job is destroyed");
    return {book_, page, std::move(handle)};
  }

  void check_idle() {
    await_idle();
    book_.check_idle();
  }

  std::unique_ptr<ManualClock> clock_;
  TimerBook book_;  // outlives the jobs
  std::optional<ThreadPool> pool_;
  std::optional<Scheduler> scheduler_;
};

}  // namespace detent::explore

// The steps of a turn: firing, expired leases, waiting workers, the commit, and the load window.
#include <algorithm>
#include <utility>

#include "detent/check.h"
#include "engine/engine.h"

namespace detent {
namespace {

using std::chrono::milliseconds;

/// Timers of a wheel fired or moved in one go, so that requests and commits come between in a
/// storm: some tenths of a millisecond. More when turns are long, or firing would fall behind: for
/// half of the time since the last turn, but no longer than this.
constexpr std::size_t kFireLimit = 2'000;
constexpr milliseconds kMostFireTime{10};
/// Leases ended in one turn: their records are read and written whole.
constexpr std::size_t kLeaseEndLimit = 256;
/// How long a lease that ran out waits when the store could not be read.
constexpr milliseconds kReadRetry{1'000};
/// The limit for one turn of the search for expired keys and ended tasks.
constexpr std::size_t kForgetLimit = 1'000;
/// The rules of schedules that are read again in one turn.
constexpr std::size_t kRefreshLimit = 50;
/// So long after somebody has waited, workers are thought to come and go.
constexpr Tick kWorkersComeTicks = 20;
/// The estimated time of a step is the longest time seen; each later step lowers it by this part.
constexpr int kStepTimeFades = 8;
/// The most time for memory work in one turn. A long turn because of a slow disk needs no equally
/// long memory work.
constexpr milliseconds kMostTending{10};

}  // namespace

// ---- the turn ----

Result<void> Engine::turn() {
  const MonotonicTime start = clock_.now();
  if (!stopped_by()) {
    notice_clock();
    decide_schedules();
    serve_due();
  }
  TRY(commit());
  TRY(writer_.sync_if_due());
  TRY(tend_memory(start));
  if (records_.staged().empty())
    news_.publish(ok());  // tasks that became ready while they were loaded
  refresh_schedules();
  orphans_.go_on(tasks_, time_.now());
  return forget_ended();
}

std::optional<MonotonicTime> Engine::next_wakeup() const {
  if (!answers_.empty()) return clock_.now();
  if (stopped_by()) return std::nullopt;
  if (!records_.staged().empty() || hand_out_.has_work()) return clock_.now();
  if (window_.has_work() && !moves_wait_) return clock_.now();
  std::optional<Tick> next = tasks_.timers().next_wakeup();
  const auto take_earlier = [&next](std::optional<Tick> tick) {
    if (tick && (!next || *tick < *next)) next = tick;
  };
  take_earlier(hand_out_.next_time());
  if (!moves_wait_) take_earlier(window_.next_work());  // else the wheel has something sooner
  if (const std::optional<WallTime> wake = records_.schedules().next_wake()) {
    take_earlier(time_.tick_at(std::max(*wake, time_.wall_now())));
  }
  std::optional<MonotonicTime> wakeup;
  if (next) wakeup = time_.when(*next);
  if (const std::optional<MonotonicTime> sync_at = writer_.next_sync()) {
    wakeup = std::min(wakeup.value_or(*sync_at), *sync_at);
  }
  return wakeup;
}

/// Makes due tasks ready and hands them to waiting workers.
void Engine::serve_due() {
  fire_due();
  hand_out_.serve();
}

void Engine::catch_up() {
  notice_clock();
  if (stopped_by()) return;
  const Tick now = time_.now();
  for (LoadedTask* const task : fire_tasks()) tasks_.timers().set(*task, now);
}

/// Makes due tasks ready, within a bound; returns the tasks with expired leases. Between two
/// wheels, workers are served from the wheels that have fired all their due timers.
std::vector<LoadedTask*> Engine::fire_tasks() {
  const MonotonicTime start = clock_.now();
  const MonotonicTime until =
      start + std::min<MonotonicTime::duration>((start - last_fired_) / 2, kMostFireTime);
  last_fired_ = start;
  std::vector<LoadedTask*> ran_out;
  do {
    const Tick now = time_.now();
    const std::vector<TaskTimers::Wheel> due = tasks_.timers().go_to(now);
    if (due.empty()) break;
    TaskTimers::Wheels have_fired = kAllWheels;
    for (const TaskTimers::Wheel wheel : due) have_fired.reset(wheel);
    for (const TaskTimers::Wheel wheel : due) {
      if (wheel != due.front()) hand_out_.serve_now(have_fired);
      have_fired[wheel] = !tasks_.fire(wheel, now, kFireLimit, ran_out);
    }
  } while (clock_.now() < until);
  return ran_out;
}

void Engine::fire_due() {
  std::vector<LoadedTask*> ran_out = fire_tasks();
  const Tick now = time_.now();
  while (ran_out.size() > kLeaseEndLimit) {
    tasks_.timers().set(*ran_out.back(), now);  // in the next turn
    ran_out.pop_back();
  }
  end_leases(ran_out);

  hand_out_.end_times(now);
}

void Engine::end_leases(const std::vector<LoadedTask*>& ran_out) {
  if (ran_out.empty()) return;
  Result<std::vector<Result<Task>>> records = records_.read_all(ran_out);
  if (!records) {
    const Tick retry = time_.tick_after(kReadRetry);
    for (LoadedTask* const task : ran_out) tasks_.timers().set(*task, retry);
    return;
  }
  for (std::size_t i = 0; i < ran_out.size(); ++i) {
    Result<Task>& record = (*records)[i];
    if (!record) {
      tasks_.set_aside(*ran_out[i]);
      continue;
    }
    ++news_.counters().leases_expired;
    run_out(tasks_.leases().at(ran_out[i]->lease), *std::move(record));
  }
}

void Engine::notice_clock() {
  if (!time_.notice_step()) return;
  records_.schedules().clock_stepped(time_.wall_now());
  tasks_.retime();
}

// ---- the commit ----

void Engine::after_commit(Committed committed) {
  // Within a `done` that is told while the store writes this would wait for the wrong commit.
  DETENT_CHECK(!writer_.is_writing());
  answers_.after_commit(std::move(committed));
}

Result<void> Engine::commit() {
  Result<void> result = records_.commit();
  news_.publish(result);
  if (stopped_by()) hand_out_.fail_waits(*stopped_by());
  answers_.tell(result, [this] { hand_out_due(); });
  if (result) {
    hand_out_.note_told();
    tasks_.forget_ended_leases();
  }
  return result;
}

/// Does steps of memory work, if there is any. Normally this is one step. If the load needs more,
/// steps continue for as long as the turn has taken so far. So the memory keeps up with the load,
/// and requests wait at most twice as long. While workers come and go, the steps are small and take
/// a quarter of that time. A step can delay the worker of a task that becomes due during the step.
/// This is rare, because steps are made when they fit before the next timer.
Result<void> Engine::tend_memory(MonotonicTime turn_start) {
  const MonotonicTime start = clock_.now();
  const MonotonicTime::duration took = start - turn_start;
  const auto most =
      std::min<MonotonicTime::duration>(do_workers_come() ? took / 4 : took, kMostTending);
  do {
    const MonotonicTime step = clock_.now();
    ASSIGN_OR_RETURN(const bool had_work, window_.tend(moves_now(step)));
    if (!had_work) break;
    step_time_ = std::max(clock_.now() - step, step_time_ - step_time_ / kStepTimeFades);
    if (!hand_out_.does_anyone_wait()) continue;
    serve_due();
    TRY(commit());
  } while (window_.is_pressed() && clock_.now() - start < most);
  return ok();
}

/// How much may be moved in a step that begins now.
LoadWindow::Moves Engine::moves_now(MonotonicTime now) {
  using enum LoadWindow::Time;
  const std::optional<Tick> next = tasks_.timers().next_wakeup();
  const bool is_free =
      !hand_out_.does_anyone_wait() || !next || now + step_time_ <= time_.when(*next);
  moves_wait_ = window_.gives_way(is_free ? enough : none);
  if (moves_wait_) return LoadWindow::Moves::none;
  return do_workers_come() ? LoadWindow::Moves::few : LoadWindow::Moves::many;
}

/// Whether somebody waits for tasks, or did of late: busy workers are about to come back.
bool Engine::do_workers_come() {
  if (hand_out_.does_anyone_wait()) workers_come_until_ = time_.now() + kWorkersComeTicks;
  return time_.now() < workers_come_until_;
}

void Engine::refresh_schedules() {
  if (time_.now() < next_refresh_) return;
  const bool is_round = records_.schedules().refresh(kRefreshLimit);
  next_refresh_ = time_.now() + (is_round ? kRefreshTicks : 0);
}

/// Removes expired keys and ended tasks. The engine does this while it is active anyway, because no
/// client waits for it.
Result<void> Engine::forget_ended() {
  if (time_.now() < next_forget_) return ok();
  next_forget_ = time_.now() + kForgetTicks;
  ASSIGN_OR_RETURN(const bool more, records_.forget_ended(time_.wall_now(), kForgetLimit));
  if (more) next_forget_ = time_.now();
  return ok();
}

}  // namespace detent

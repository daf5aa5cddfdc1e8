// The steps of a turn: firing, expired leases, waiting workers, the commit, and the load window.
#include <algorithm>
#include <utility>

#include "detent/check.h"
#include "engine/engine.h"

namespace detent {
namespace {

using std::chrono::milliseconds;

/// The most timers of a wheel that are fired or moved at a time. This takes some tenths of a
/// millisecond, so requests and commits are not delayed for long if very many tasks are due. If
/// turns are long, one such part per turn would be too slow. So firing continues for half of the
/// time since the previous turn, but no longer than kMostFireTime.
constexpr std::size_t kFireLimit = 2'000;
constexpr milliseconds kMostFireTime{10};
/// The most expired leases ended in one turn. The complete records of their tasks are read and
/// written.
constexpr std::size_t kLeaseEndLimit = 256;
/// If the store cannot be read, expired leases are tried again after this time.
constexpr milliseconds kReadRetry{1'000};
/// The most expired keys, and the most ended tasks, that one turn removes.
constexpr std::size_t kForgetLimit = 1'000;
/// The most schedules whose rules are read again in one turn.
constexpr std::size_t kRefreshLimit = 50;
/// After a worker has waited, workers count as busy for this time: they handle tasks and will soon
/// ask again.
constexpr Tick kWorkersComeTicks = 20;
/// The estimated time of a step of memory work is the longest time seen. Each later step lowers it
/// by an eighth.
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
  // Reports the tasks that became ready when they were loaded.
  if (records_.staged().empty()) news_.publish(ok());
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
  // If the moves wait, a timer of the wheel is earlier.
  if (!moves_wait_) take_earlier(window_.next_work());
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
    tasks_.timers().set(*ran_out.back(), now);  // fires in the next turn
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
  // During a write, only the `done` of a wait could call this. The callback would then wait for the
  // wrong commit.
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

/// Does memory work in steps, if there is any. Normally this is one step. If the load needs more,
/// the steps continue for as long as the turn has taken so far. So memory keeps up with the load,
/// and requests wait at most twice as long. If workers wait or are busy, the steps are small and
/// take at most a quarter of that time. If a task becomes due during a step, its worker waits for
/// the end of the step. This is rare, because a step begins if it fits before the next timer.
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

/// How many tasks a step of memory work that begins now may move.
LoadWindow::Moves Engine::moves_now(MonotonicTime now) {
  using enum LoadWindow::Time;
  const std::optional<Tick> next = tasks_.timers().next_wakeup();
  const bool is_free =
      !hand_out_.does_anyone_wait() || !next || now + step_time_ <= time_.when(*next);
  moves_wait_ = window_.gives_way(is_free ? enough : none);
  if (moves_wait_) return LoadWindow::Moves::none;
  return do_workers_come() ? LoadWindow::Moves::few : LoadWindow::Moves::many;
}

/// Whether a worker or the deliverer waits for tasks, or has waited in the last 20 ms. Busy workers
/// will soon ask again.
bool Engine::do_workers_come() {
  if (hand_out_.does_anyone_wait()) workers_come_until_ = time_.now() + kWorkersComeTicks;
  return time_.now() < workers_come_until_;
}

void Engine::refresh_schedules() {
  if (time_.now() < next_refresh_) return;
  const bool is_round = records_.schedules().refresh(kRefreshLimit);
  next_refresh_ = time_.now() + (is_round ? kRefreshTicks : 0);
}

/// Removes expired keys and ended tasks, at most once a second if there are few. No client waits
/// for this, so an idle engine does not wake up for it.
Result<void> Engine::forget_ended() {
  if (time_.now() < next_forget_) return ok();
  next_forget_ = time_.now() + kForgetTicks;
  ASSIGN_OR_RETURN(const bool more, records_.forget_ended(time_.wall_now(), kForgetLimit));
  if (more) next_forget_ = time_.now();
  return ok();
}

}  // namespace detent

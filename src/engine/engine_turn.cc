// The steps of a turn: firing, expired leases, waiting workers, the commit, and the load window.
// Also the hand-outs during other work: between commands, and while a batch is written.
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
/// If no task is due within this time, a write on another thread is not worth its cost, unless the
/// disk is very slow.
constexpr Tick kSoon = 100;

}  // namespace

// ---- the turn ----

Result<void> Engine::turn() {
  const MonotonicTime start = parts_->clock.now();
  if (!stopped_by()) {
    notice_clock();
    parts_->news.note_time();
    decide_schedules();
    serve_due();
  }
  TRY(commit());
  TRY(parts_->writer.sync_if_due());
  TRY(tend_memory(start));
  // Reports the tasks that became ready when they were loaded.
  if (parts_->records.staged().empty()) parts_->news.publish(ok());
  refresh_schedules();
  parts_->orphans.go_on(parts_->tasks, parts_->time.now());
  return forget_ended();
}

std::optional<MonotonicTime> Engine::next_wakeup() const {
  if (!parts_->answers.empty()) return parts_->clock.now();
  if (stopped_by()) return std::nullopt;
  if (!parts_->records.staged().empty() || parts_->hand_out.has_work()) return parts_->clock.now();
  if (parts_->window.has_work() && !moves_wait_) return parts_->clock.now();
  std::optional<Tick> next = parts_->tasks.timers().next_wakeup();
  const auto take_earlier = [&next](std::optional<Tick> tick) {
    if (tick && (!next || *tick < *next)) next = tick;
  };
  take_earlier(parts_->hand_out.next_time());
  // If the moves wait, a timer of the wheel is earlier.
  if (!moves_wait_) take_earlier(parts_->window.next_work());
  if (const std::optional<WallTime> wake = parts_->records.schedules().next_wake()) {
    take_earlier(parts_->time.tick_at(std::max(*wake, parts_->time.wall_now())));
  }
  std::optional<MonotonicTime> wakeup;
  if (next) wakeup = parts_->time.when(*next);
  if (const std::optional<MonotonicTime> sync_at = parts_->writer.next_sync()) {
    wakeup = std::min(wakeup.value_or(*sync_at), *sync_at);
  }
  return wakeup;
}

/// Makes due tasks ready and hands them to waiting workers.
void Engine::serve_due() {
  fire_due();
  parts_->hand_out.serve();
}

void Engine::catch_up() {
  notice_clock();
  if (stopped_by()) return;
  parts_->news.note_time();
  const Tick now = parts_->time.now();
  for (LoadedTask* const task : fire_tasks()) parts_->tasks.timers().set(*task, now);
}

/// Makes due tasks ready, within a bound; returns the tasks with expired leases. Between two
/// wheels, workers are served from the wheels that have fired all their due timers.
std::vector<LoadedTask*> Engine::fire_tasks() {
  const MonotonicTime start = parts_->clock.now();
  const MonotonicTime until =
      start + std::min<MonotonicTime::duration>((start - last_fired_) / 2, kMostFireTime);
  last_fired_ = start;
  std::vector<LoadedTask*> ran_out;
  do {
    const Tick now = parts_->time.now();
    const std::vector<TaskTimers::Wheel> due = parts_->tasks.timers().go_to(now);
    if (due.empty()) break;
    TaskTimers::Wheels have_fired = kAllWheels;
    for (const TaskTimers::Wheel wheel : due) have_fired.reset(wheel);
    for (const TaskTimers::Wheel wheel : due) {
      if (wheel != due.front()) parts_->hand_out.serve_now(have_fired);
      have_fired[wheel] = !parts_->tasks.fire(wheel, now, kFireLimit, ran_out);
    }
  } while (parts_->clock.now() < until);
  return ran_out;
}

void Engine::fire_due() {
  std::vector<LoadedTask*> ran_out = fire_tasks();
  const Tick now = parts_->time.now();
  while (ran_out.size() > kLeaseEndLimit) {
    parts_->tasks.timers().set(*ran_out.back(), now);  // fires in the next turn
    ran_out.pop_back();
  }
  end_leases(ran_out);

  parts_->hand_out.end_times(now);
}

void Engine::end_leases(const std::vector<LoadedTask*>& ran_out) {
  if (ran_out.empty()) return;
  Result<std::vector<Result<Task>>> records = parts_->records.read_all(ran_out);
  if (!records) {
    const Tick retry = parts_->time.tick_after(kReadRetry);
    for (LoadedTask* const task : ran_out) parts_->tasks.timers().set(*task, retry);
    return;
  }
  DETENT_CHECK(records->size() == ran_out.size());
  for (std::size_t i = 0; i < ran_out.size(); ++i) {
    DETENT_CHECK(ran_out[i]->state == TaskState::leased);
    Result<Task>& record = (*records)[i];
    if (!record) {
      parts_->tasks.set_aside(*ran_out[i]);
      continue;
    }
    parts_->news.count(*ran_out[i]->queue, &TaskCounters::leases_expired);
    parts_->transitions.run_out(parts_->tasks.leases().at(ran_out[i]->lease), *std::move(record));
  }
}

void Engine::notice_clock() {
  if (!parts_->time.notice_step()) return;
  parts_->records.schedules().clock_stepped(parts_->time.wall_now());
  parts_->tasks.retime();
}

// ---- hand-outs during other work ----

void Engine::hand_out_due() {
  if (stopped_by() || !has_waits()) return;
  // Tasks become due only when a tick begins, and this tick was already served.
  if (parts_->hand_out.served_at() == parts_->time.now()) return;
  catch_up();
  parts_->hand_out.serve_now();
}

bool Engine::is_due_soon() const {
  const std::optional<Tick> next = parts_->tasks.timers().next_wakeup();
  return parts_->turns.has_to_serve() || (next && *next <= parts_->time.now() + kSoon);
}

/// Hands out due tasks until `written` is rung.
void Engine::hand_out_until(Doorbell& written) {
  DETENT_CHECK(parts_->writer.is_writing());
  for (bool is_written = false; !is_written;) {
    hand_out_due();
    std::optional<Tick> next = parts_->tasks.timers().next_wakeup();
    const Tick soonest = parts_->time.now() + 1;
    if (parts_->turns.has_to_serve() || (next && *next < soonest)) next = soonest;
    is_written =
        parts_->clock.wait(written, next ? std::optional(parts_->time.when(*next)) : std::nullopt);
  }
}

// ---- memory and cleaning up ----

/// Does memory work in steps, if there is any. Normally this is one step. If the load needs more,
/// the steps continue for as long as the turn has taken so far. So memory keeps up with the load,
/// and requests wait at most twice as long. If workers wait or are busy, the steps are small and
/// take at most a quarter of that time. If a task becomes due during a step, its worker waits for
/// the end of the step. This is rare, because a step begins if it fits before the next timer.
Result<void> Engine::tend_memory(MonotonicTime turn_start) {
  const MonotonicTime start = parts_->clock.now();
  const MonotonicTime::duration took = start - turn_start;
  const auto most =
      std::min<MonotonicTime::duration>(do_workers_come() ? took / 4 : took, kMostTending);
  do {
    const MonotonicTime step = parts_->clock.now();
    ASSIGN_OR_RETURN(const bool had_work, parts_->window.tend(moves_now(step)));
    if (!had_work) break;
    step_time_ = std::max(parts_->clock.now() - step, step_time_ - step_time_ / kStepTimeFades);
    if (!parts_->hand_out.does_anyone_wait()) continue;
    serve_due();
    TRY(commit());
  } while (parts_->window.is_pressed() && parts_->clock.now() - start < most);
  return ok();
}

/// How many tasks a step of memory work that begins now may move.
LoadWindow::Moves Engine::moves_now(MonotonicTime now) {
  using enum LoadWindow::Time;
  const std::optional<Tick> next = parts_->tasks.timers().next_wakeup();
  const bool is_free =
      !parts_->hand_out.does_anyone_wait() || !next || now + step_time_ <= parts_->time.when(*next);
  moves_wait_ = parts_->window.gives_way(is_free ? enough : none);
  if (moves_wait_) return LoadWindow::Moves::none;
  return do_workers_come() ? LoadWindow::Moves::few : LoadWindow::Moves::many;
}

/// Whether a worker or the deliverer waits for tasks, or has waited in the last 20 ms. Busy workers
/// will soon ask again.
bool Engine::do_workers_come() {
  if (parts_->hand_out.does_anyone_wait())
    workers_come_until_ = parts_->time.now() + kWorkersComeTicks;
  return parts_->time.now() < workers_come_until_;
}

void Engine::refresh_schedules() {
  if (parts_->time.now() < next_refresh_) return;
  const bool is_round = parts_->records.schedules().refresh(kRefreshLimit);
  next_refresh_ = parts_->time.now() + (is_round ? kRefreshTicks : 0);
}

/// Removes expired keys and ended tasks, at most once a second if there are few. No client waits
/// for this, so an idle engine does not wake up for it.
Result<void> Engine::forget_ended() {
  if (parts_->time.now() < next_forget_) return ok();
  next_forget_ = parts_->time.now() + kForgetTicks;
  ASSIGN_OR_RETURN(const bool more,
                   parts_->records.forget_ended(parts_->time.wall_now(), kForgetLimit));
  if (more) next_forget_ = parts_->time.now();
  return ok();
}

}  // namespace detent

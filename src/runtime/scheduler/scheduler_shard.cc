#include "runtime/scheduler/scheduler_shard.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "detent/check.h"
#include "detent/internal/saturate.h"
#include "runtime/scheduler/scheduler_core.h"

namespace detent::internal {

void fail_after_fork() noexcept {
  check_failed(
      "this Scheduler was made before fork(), and its driver thread is in the parent process; make "
      "it after fork()",
      __FILE__, __LINE__);
}

SchedulerShard::SchedulerShard(SchedulerCore& core, const TickScale& scale, std::uint64_t seed)
    : core_(core), home_(core.home()), timers_(scale, core.options().order, seed) {
  if (core.options().alerts.lateness) timers_.set_late_threshold(*core.options().alerts.lateness);
}

std::shared_ptr<SchedulerShard> SchedulerShard::make(SchedulerCore& core, const TickScale& scale,
                                                     std::uint64_t seed) {
  auto shard = std::make_shared<SchedulerShard>(core, scale, seed);
  MutexLock lock(shard->mu_);
  shard->self_ = shard;
  return shard;
}

// In a child process of fork(), the memory stays: no thread can take the lock there.
void SchedulerShard::leave() noexcept {
  if (home_.was_left()) return;
  std::shared_ptr<SchedulerShard> last;  // declared first, so released after the lock is free
  MutexLock lock(mu_);
  left_ = true;
  if (shares_ == 0) last = std::move(self_);
}

/// Returns the ownership that ends with the share, if it was the last. The caller keeps it until
/// the lock is free.
std::shared_ptr<SchedulerShard> SchedulerShard::give_back_share() noexcept {
  --shares_;
  return left_ && shares_ == 0 ? std::move(self_) : nullptr;
}

void SchedulerShard::take_share() noexcept {
  if (home_.was_left()) return;
  std::shared_ptr<SchedulerShard> last;  // declared first, so released after the lock is free
  MutexLock lock(mu_);
  last = give_back_share();
}

// ---- called by users ----------------------------------------------------------------------------

// Wakes the driver under the lock, although the driver may have to wait for the lock. Once the lock
// is free, another thread may destroy the scheduler.
void SchedulerShard::wake_driver_if_late() noexcept {
  const bool is_first_date = timers_.has_dates() && !std::exchange(knows_dates_, true);
  if (timers_.armed_for() >= looks_at_ && !is_first_date) [[likely]]
    return;
  looks_at_ = std::min(looks_at_, timers_.armed_for());
  core_.driver().wake();
}

// stop() or the driver may wait for the timer that ended. If other timers are still running or
// queued, their end calls this function again.
void SchedulerShard::tell_stop() noexcept {
  run_ended_.notify_all();
  if (timers_.is_quiet()) core_.driver().wake();
}

TimerId SchedulerShard::add(NewTimer&& timer) noexcept {
  MutexLock lock(mu_);
  if (closed_) {
    timers_.count_refused();
    return {};
  }
  const TimerId id = timers_.add(std::move(timer));
  ++shares_;
  wake_driver_if_late();
  return id;
}

void SchedulerShard::count_refused() noexcept {
  MutexLock lock(mu_);
  timers_.count_refused();
}

void SchedulerShard::count_rejected() noexcept {
  MutexLock lock(mu_);
  timers_.count_rejected();
}

CancelResult SchedulerShard::cancel(TimerId id, Share share) noexcept {
  if (home_.was_left()) [[unlikely]]
    return CancelResult::not_pending;
  // Declared first, so destroyed after the lock is free.
  std::shared_ptr<SchedulerShard> last;
  Job job;
  MutexLock lock(mu_);
  const CancelResult result = timers_.cancel(id, job);
  const bool keeps = share == Share::give_back_unless_running && result == CancelResult::running;
  if (share != Share::keep && !keeps) last = give_back_share();
  if (result != CancelResult::cancelled) return result;
  core_.admission().release(1);
  if (closed_) tell_stop();
  return result;
}

CancelResult SchedulerShard::cancel_and_wait(TimerId id) noexcept {
  const CancelResult result = cancel(id, Share::keep);
  if (result != CancelResult::running || InsideJob::of(*this, id)) return result;
  MutexLock lock(mu_);
  while (timers_.is_running(id)) run_ended_.wait(mu_);
  return result;
}

bool SchedulerShard::move(TimerId id, const DueTime& due, std::optional<WallTime> date) {
  if (!timers_.move(id, due, date)) return false;
  wake_driver_if_late();
  return true;
}

// After the start of a stop, a queued timer stays queued, because stop() waits for it.
bool SchedulerShard::can_move(TimerId id) const noexcept {
  return closed_ ? timers_.is_in_wheel(id) : timers_.is_pending(id);
}

// Read the clock under the lock: before that, the scheduler and its clock may already be gone.
bool SchedulerShard::move_by(TimerId id, std::chrono::nanoseconds delay) {
  expect_home(home_);
  MutexLock lock(mu_);
  if (!can_move(id)) return false;
  return move(id, core_.due_after(delay), std::nullopt);
}

bool SchedulerShard::move_to(TimerId id, MonotonicTime due_at) {
  expect_home(home_);
  MutexLock lock(mu_);
  if (!can_move(id)) return false;
  return move(id, core_.due_by(due_at), std::nullopt);
}

bool SchedulerShard::move_to(TimerId id, WallTime date) {
  expect_home(home_);
  MutexLock lock(mu_);
  if (!can_move(id)) return false;
  return move(id, due_on(date, core_.read_clocks()), date);
}

bool SchedulerShard::move_next_run(TimerId id, MonotonicTime due_at) {
  expect_home(home_);
  MutexLock lock(mu_);
  if (closed_) return false;
  DueTime due = core_.due_by(due_at);
  // An instant that has passed means now, so the run does not count as late.
  due.at = std::max(due.at, due.set_at);
  if (!timers_.move_next_run(id, due)) return false;
  if (timers_.is_pending(id)) wake_driver_if_late();  // otherwise `rearm` does
  return true;
}

std::size_t SchedulerShard::cancel_all() {
  if (home_.was_left()) return 0;
  std::vector<Job> jobs;  // declared first, so destroyed after the lock is free
  MutexLock lock(mu_);
  timers_.cancel_all(jobs);
  core_.admission().release(jobs.size());
  if (closed_) tell_stop();
  return jobs.size();
}

bool SchedulerShard::is_pending(TimerId id) const noexcept {
  if (home_.was_left()) return false;
  MutexLock lock(mu_);
  return timers_.is_pending(id);
}

std::optional<TimerInfo> SchedulerShard::info_of(TimerId id) const {
  if (home_.was_left()) return std::nullopt;
  MutexLock lock(mu_);
  return timers_.info_of(id);
}

// ---- called by the driver -----------------------------------------------------------------------

Look SchedulerShard::look(const ClockReading& clocks, MonotonicTime woke_at, bool wall_stepped,
                          std::vector<TimerId>& due) {
  MutexLock lock(mu_);
  if (wall_stepped) timers_.retime(clocks);
  const std::size_t before = due.size();
  const bool more = timers_.collect(clocks, woke_at, due);
  Look look{.again = more || due.size() != before, .has_dates = timers_.has_dates()};
  knows_dates_ = look.has_dates;
  if (look.again) {
    looks_at_ = 0;
    return look;
  }
  const std::optional<Tick> wakeup = timers_.next_wakeup();
  if (wakeup) look.until = timers_.time_of(*wakeup);
  looks_at_ = wakeup.value_or(std::numeric_limits<Tick>::max());
  return look;
}

std::optional<BegunRun> SchedulerShard::begin_run(TimerId id, Job& job) noexcept {
  MutexLock lock(mu_);
  // If the timer has ended, use nothing of the core: the clock may be gone.
  if (!timers_.is_pending(id)) return std::nullopt;
  ClockReading clocks{.now = core_.clock().now(), .wall = {}};
  if (timers_.has_dates()) clocks.wall = core_.clock().wall_now();
  std::optional<BegunRun> begun = timers_.begin_run(id, clocks, job);
  if (!begun) after_no_run(id, job);  // the caller destroys the job without the lock
  return begun;
}

BegunRun SchedulerShard::begin_occurrence(TimerId id, MonotonicTime now) noexcept {
  MutexLock lock(mu_);
  return timers_.begin_occurrence(id, now);
}

ClockReading SchedulerShard::read_clocks() const noexcept { return core_.read_clocks(); }

void SchedulerShard::call(Job& job, const BegunRun& begun) noexcept {
  core_.check_lateness(begun);
  if (core_.call(job)) return;
  MutexLock lock(mu_);
  timers_.count_error();
}

// The timer did not run: it was moved, or the wall clock does not show its date yet. It is in the
// wheel again, and the driver must know its time. If a stop runs no pending timers, the driver may
// already be gone, so the timer is dropped here.
void SchedulerShard::after_no_run(TimerId id, Job& job) noexcept {
  if (!closed_ || runs_pending_) return wake_driver_if_late();
  if (!timers_.drop(id, job)) return;
  core_.admission().release(1);
  tell_stop();
}

void SchedulerShard::run_in_caller(Job job) noexcept {
  const InsideJob inside(*this, {}, nullptr);
  if (core_.call(job)) return;
  MutexLock lock(mu_);
  timers_.count_error();
}

TimerShard::Repeat SchedulerShard::repeat() const noexcept {
  return closed_ ? TimerShard::Repeat::must_not : TimerShard::Repeat::may;
}

bool SchedulerShard::rearm(TimerId id, Job& job) noexcept {
  const MonotonicTime now = core_.clock().now();
  MutexLock lock(mu_);
  if (!timers_.rearm(id, now, repeat(), job)) return false;
  wake_driver_if_late();
  return true;
}

bool SchedulerShard::rearm_for(std::optional<WallTime> next, TimerId id, const ClockReading& clocks,
                               Job& job) noexcept {
  MutexLock lock(mu_);
  if (!timers_.rearm_for(next, id, clocks, repeat(), job)) return false;
  wake_driver_if_late();
  return true;
}

void SchedulerShard::end_run(TimerId id) noexcept {
  MutexLock lock(mu_);
  timers_.end_run(id);
  core_.admission().release(1);
  run_ended_.notify_all();
  if (closed_) tell_stop();
}

// ---- the end ------------------------------------------------------------------------------------

std::vector<PendingJob> SchedulerShard::close(Drain drain) {
  MutexLock lock(mu_);
  runs_pending_ = drain == Drain::run_pending && (!closed_ || runs_pending_);
  closed_ = true;
  std::vector<PendingJob> taken;
  switch (drain) {
    case Drain::drop:
    case Drain::hand_back:
      taken = timers_.take_all(TakeAll::pending_and_queued);
      break;
    case Drain::run_pending:
      taken = timers_.take_all(TakeAll::repeating);
      break;
    case Drain::run_due:
      break;
  }
  core_.admission().release(taken.size());
  run_ended_.notify_all();  // an earlier stop may wait for the timers that were queued
  return taken;
}

void SchedulerShard::drop(TakeAll which) {
  std::vector<PendingJob> taken;
  {
    MutexLock lock(mu_);
    taken = timers_.take_all(which);
    core_.admission().release(taken.size());
    run_ended_.notify_all();
  }
  // The destructors of these jobs may stop the scheduler, like jobs.
  const InsideJob inside(*this, {}, nullptr);
  taken.clear();
}

bool SchedulerShard::is_quiet() const noexcept {
  MutexLock lock(mu_);
  return timers_.is_quiet();
}

void SchedulerShard::await_quiet() noexcept {
  MutexLock lock(mu_);
  while (!timers_.is_quiet()) run_ended_.wait(mu_);
}

// ---- figures ------------------------------------------------------------------------------------

SchedulerStats SchedulerShard::stats() const {
  MutexLock lock(mu_);
  return timers_.stats();
}

void SchedulerShard::add_to(LatenessLedger& ledger) const {
  MutexLock lock(mu_);
  ledger.merge(timers_.ledger());
}

}  // namespace detent::internal

#include "runtime/scheduler_core.h"

#include <algorithm>
#include <exception>
#include <utility>

#include "detent/check.h"
#include "detent/internal/saturate.h"

namespace detent::internal {

namespace {

/// A job that the current thread is inside of, and the one outside that, if any.
struct RunningJob {
  const SchedulerCore* core = nullptr;
  TimerId id;
  const RunningJob* outer = nullptr;
};
// Lets a job's thread be recognised, so that it does not wait for itself.
thread_local const RunningJob* innermost_job = nullptr;

/// Enters a job for a scope.
class InsideJob {
 public:
  InsideJob(const SchedulerCore& core, TimerId id) noexcept
      : job_{.core = &core, .id = id, .outer = innermost_job} {
    innermost_job = &job_;
  }
  ~InsideJob() { innermost_job = job_.outer; }
  InsideJob(const InsideJob&) = delete;
  InsideJob& operator=(const InsideJob&) = delete;

 private:
  const RunningJob job_;
};

bool is_inside(const SchedulerCore& core, TimerId id) noexcept {
  for (const RunningJob* job = innermost_job; job != nullptr; job = job->outer) {
    if (job->core == &core && job->id == id) return true;
  }
  return false;
}

}  // namespace

SchedulerCore::SchedulerCore(SchedulerOptions options)
    : clock_(options.clock != nullptr ? *options.clock : machine_),
      executor_(options.executor != nullptr ? *options.executor : inline_),
      error_handler_(std::move(options.error_handler)),
      shard_(TickScale(clock_.now(), options.resolution)) {}

bool SchedulerCore::is_inside_job() const noexcept {
  for (const RunningJob* job = innermost_job; job != nullptr; job = job->outer) {
    if (job->core == this) return true;
  }
  return false;
}

// ---- what callers do ----------------------------------------------------------------------------

// Returns: whether the driver sleeps too long for what the wheel holds now. One ring is enough to
// make it look again, so it counts as awake from then on.
bool SchedulerCore::must_ring() noexcept {
  if (!sleeps_until_) return false;
  const std::optional<MonotonicTime> wakeup = shard_.next_wakeup();
  if (!wakeup || *wakeup >= *sleeps_until_) return false;
  sleeps_until_.reset();
  return true;
}

std::optional<TimerId> SchedulerCore::schedule(NewTimer timer) {
  DETENT_CHECK(static_cast<bool>(timer.job));
  TimerId id;
  bool ring = false;
  {
    MutexLock lock(mu_);
    if (stopping_) {
      shard_.count_refused();
      return std::nullopt;  // the job goes with `timer`, after the lock
    }
    id = shard_.add(timer);
    ring = must_ring();
  }
  if (ring) bell_.ring();
  return id;
}

CancelResult SchedulerCore::cancel(TimerId id) noexcept {
  Job job;  // destroyed after the lock
  MutexLock lock(mu_);
  const CancelResult result = shard_.cancel(id, job);
  // It may have been the last one queued, and nothing else tells a stop() that waits for those.
  if (stopping_ && result == CancelResult::cancelled) changed_.notify_all();
  return result;
}

CancelResult SchedulerCore::cancel_and_wait(TimerId id) noexcept {
  const CancelResult result = cancel(id);
  if (result != CancelResult::running || is_inside(*this, id)) return result;
  MutexLock lock(mu_);
  while (shard_.is_running(id)) changed_.wait(mu_);
  return result;
}

bool SchedulerCore::move(TimerId id, std::chrono::nanoseconds delay) noexcept {
  bool ring = false;
  {
    MutexLock lock(mu_);
    if (stopping_) return false;  // the clock may be gone
    if (!shard_.move(id, saturating_add(clock_.now(), delay))) return false;
    ring = must_ring();
  }
  if (ring) bell_.ring();
  return true;
}

bool SchedulerCore::is_pending(TimerId id) const noexcept {
  MutexLock lock(mu_);
  return shard_.is_pending(id);
}

SchedulerStats SchedulerCore::stats() const {
  MutexLock lock(mu_);
  return shard_.stats();
}

std::vector<PendingJob> SchedulerCore::stop(Drain drain) {
  std::vector<PendingJob> left;
  {
    MutexLock lock(mu_);
    if (!stopping_) {
      stopping_ = drain;
      if (drain != Drain::run_due) left = shard_.take_all(TakeAll::pending_and_queued);
    }
  }
  bell_.ring();
  if (drain != Drain::hand_back) left.clear();
  if (is_inside_job()) return left;
  MutexLock lock(mu_);
  while (!driver_ended_ || !shard_.is_quiet()) changed_.wait(mu_);
  return left;
}

// ---- the driver ---------------------------------------------------------------------------------

void SchedulerCore::drive() {
  std::vector<TimerId> due;
  due.reserve(TimerShard::kBatch);
  std::optional<MonotonicTime> until;
  for (Next next = Next::hand_out; next != Next::end;) {
    next = look(due, until);
    switch (next) {
      case Next::hand_out:
        hand_out(due);
        break;
      case Next::sleep:
        clock_.wait(bell_, until);
        break;
      case Next::end:
        break;
    }
  }
  std::vector<PendingJob> dropped;  // destroyed after the lock
  {
    MutexLock lock(mu_);
    dropped = shard_.take_all(TakeAll::pending);
  }
  dropped.clear();
  MutexLock lock(mu_);
  driver_ended_ = true;
  changed_.notify_all();
}

SchedulerCore::Next SchedulerCore::look(std::vector<TimerId>& due,
                                        std::optional<MonotonicTime>& until) {
  due.clear();
  const ClockReading clocks{.now = clock_.now(), .wall = clock_.wall_now()};
  MutexLock lock(mu_);
  sleeps_until_.reset();
  if (stopping_ && *stopping_ != Drain::run_due) return Next::end;
  const bool more = shard_.collect(clocks, due);
  if (!due.empty() || more) return Next::hand_out;
  if (stopping_) return Next::end;
  until = shard_.next_wakeup();
  sleeps_until_ = until.value_or(MonotonicTime::max());
  return Next::sleep;
}

void SchedulerCore::hand_out(const std::vector<TimerId>& due) {
  for (const TimerId id : due) {
    executor_.execute([core = shared_from_this(), id] { core->run(id); });
  }
}

// ---- running a job ------------------------------------------------------------------------------

void SchedulerCore::run(TimerId id) noexcept {
  Job job;
  {
    MutexLock lock(mu_);
    if (!shard_.begin_run(id, job)) return;
  }
  InsideJob inside(*this, id);
  call(job);
  finish(id, std::move(job));
}

void SchedulerCore::call(Job& job) noexcept {
  if (!error_handler_) return job();  // what it throws ends the process
  try {
    job();
  } catch (...) {
    error_handler_(std::current_exception());
  }
}

void SchedulerCore::finish(TimerId id, Job job) noexcept {
  const MonotonicTime now = clock_.now();
  bool again = false;
  bool ring = false;
  {
    MutexLock lock(mu_);
    again = !stopping_ && shard_.rearm(id, job, now);
    if (again) ring = must_ring();
  }
  if (again) {
    if (ring) bell_.ring();
    return;
  }
  job = Job();  // before anybody learns that it is over
  MutexLock lock(mu_);
  shard_.end_run(id);
  changed_.notify_all();
}

}  // namespace detent::internal

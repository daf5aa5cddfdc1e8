#include "detent/scheduler.h"

#include <memory>
#include <optional>
#include <thread>
#include <utility>

#include "detent/check.h"
#include "runtime/scheduler_core.h"

namespace detent {

using internal::NewTimer;
using internal::SchedulerCore;
using internal::TimerId;

// ---- Scheduler ----------------------------------------------------------------------------------

class Scheduler::Impl {
 public:
  explicit Impl(SchedulerOptions options)
      : core_(std::make_shared<SchedulerCore>(std::move(options))),
        driver_([core = core_] { core->drive(); }) {}

  ~Impl() {
    DETENT_CHECK(!core_->is_inside_job());
    core_->stop(Drain::drop);
    driver_.join();
  }

  SchedulerCore& core() const noexcept { return *core_; }

  /// Schedules; the handle is empty when the scheduler has stopped.
  TimerHandle start(NewTimer timer) {
    const std::optional<TimerId> id = core_->schedule(std::move(timer));
    return id ? TimerHandle(core_, *id) : TimerHandle();
  }

 private:
  const std::shared_ptr<SchedulerCore> core_;
  std::thread driver_;
};

Scheduler::Scheduler(SchedulerOptions options)
    : impl_(std::make_unique<Impl>(std::move(options))) {}
Scheduler::~Scheduler() = default;

TimerHandle Scheduler::schedule_after_ns(std::chrono::nanoseconds delay, Job job) {
  return schedule_at(internal::saturating_add(impl_->core().clock().now(), delay), std::move(job));
}

TimerHandle Scheduler::schedule_at(MonotonicTime deadline, Job job) {
  return impl_->start({.job = std::move(job), .due_at = deadline});
}

TimerHandle Scheduler::schedule_at(WallTime due, Job job) {
  const Clock& clock = impl_->core().clock();
  // The wall clock is read after the monotonic one: between the two the job can only get later.
  const MonotonicTime now = clock.now();
  const auto delay = internal::time_until(due, clock.wall_now());
  return impl_->start(
      {.job = std::move(job), .due_at = internal::saturating_add(now, delay), .due_at_wall = due});
}

TimerHandle Scheduler::schedule_every(const PeriodicOptions& options, Job job) {
  DETENT_CHECK(options.period > std::chrono::nanoseconds::zero());
  const MonotonicTime now = impl_->core().clock().now();
  return impl_->start({.job = std::move(job),
                       .due_at = internal::saturating_add(now, options.period),
                       .periodic = options});
}

std::vector<PendingJob> Scheduler::stop(Drain drain) { return impl_->core().stop(drain); }

SchedulerStats Scheduler::stats() const { return impl_->core().stats(); }

// ---- TimerHandle --------------------------------------------------------------------------------

TimerHandle::TimerHandle(std::shared_ptr<SchedulerCore> core, TimerId id) noexcept
    : core_(std::move(core)), id_(id) {}

TimerHandle::~TimerHandle() { cancel(); }

TimerHandle::TimerHandle(TimerHandle&& other) noexcept
    : core_(std::move(other.core_)), id_(std::exchange(other.id_, {})) {}

TimerHandle& TimerHandle::operator=(TimerHandle&& other) noexcept {
  if (this == &other) return *this;
  TimerHandle old(std::move(*this));
  core_ = std::move(other.core_);
  id_ = std::exchange(other.id_, {});
  return *this;
}

CancelResult TimerHandle::cancel() noexcept {
  return core_ == nullptr ? CancelResult::not_pending : core_->cancel(id_);
}

CancelResult TimerHandle::cancel_and_wait() noexcept {
  return core_ == nullptr ? CancelResult::not_pending : core_->cancel_and_wait(id_);
}

bool TimerHandle::move_to(std::chrono::nanoseconds delay) noexcept {
  return core_ != nullptr && core_->move(id_, delay);
}

bool TimerHandle::is_pending() const noexcept { return core_ != nullptr && core_->is_pending(id_); }

void TimerHandle::release() noexcept {
  core_.reset();
  id_ = {};
}

}  // namespace detent

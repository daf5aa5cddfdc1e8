// The implementation of a Scheduler, with any driver.
#pragma once

#include <memory>
#include <utility>

#include "detent/check.h"
#include "detent/scheduler.h"
#include "runtime/scheduler/driver.h"
#include "runtime/scheduler/keyed_timers.h"
#include "runtime/scheduler/new_timer.h"
#include "runtime/scheduler/scheduler_core.h"

namespace detent::internal {

/// Thread-safe.
class SchedulerImpl {
 public:
  /// The driver must outlive this object, and must not use the core after the end of this object.
  SchedulerImpl(SchedulerOptions options, Driver& driver, SchedulerCore::Waiting waiting,
                HomeProcess home)
      : core_(std::move(options), driver, waiting, home), keyed_(std::make_shared<KeyedTimers>()) {}
  virtual ~SchedulerImpl() = default;
  SchedulerImpl(const SchedulerImpl&) = delete;
  SchedulerImpl& operator=(const SchedulerImpl&) = delete;

  SchedulerCore& core() noexcept { return core_; }
  KeyedTimers& keyed() noexcept { return *keyed_; }

  NewTimer periodic(Job&& job, const PeriodicOptions& periodic, const TimerOptions& options,
                    SourceLocation where) {
    return periodic_timer(std::move(job), periodic, core_.read_clocks(), core_.next_seed(), options,
                          where);
  }

 protected:
  /// For the destructors of derived classes. After this call no job runs.
  void stop() {
    DETENT_CHECK(!InsideJob::of_scheduler(&core_));
    core_.stop_or_wait();
  }

 private:
  SchedulerCore core_;
  // Also owned by the jobs of its timers, which `stop` may hand back: keyed_timers.h.
  const std::shared_ptr<KeyedTimers> keyed_;
};

}  // namespace detent::internal

// The caller of SchedulerCore::step: a thread, a simulation, or a timer of another scheduler.
#pragma once

namespace detent::internal {

/// Implementations are thread-safe.
class Driver {
 public:
  virtual ~Driver() = default;

  /// A step is needed earlier than the previous step requested. If a step is running, or its answer
  /// was not used yet, the wake-up is kept. Called with a shard's lock held.
  virtual void wake() noexcept = 0;

  /// The scheduler is being stopped: returns when a step has answered that it has ended. May be
  /// called by several threads, but not from inside a job.
  virtual void await_end() = 0;
};

}  // namespace detent::internal

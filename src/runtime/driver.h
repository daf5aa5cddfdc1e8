// Who calls SchedulerCore::step: a thread, a simulation, a timer of another scheduler.
#pragma once

namespace detent::internal {

/// Implementations are thread-safe.
class Driver {
 public:
  virtual ~Driver() = default;

  /// A step is needed earlier than the last one answered. If a step is under way or its answer is
  /// not acted upon yet, the wake-up is kept. Called with a shard's lock held.
  virtual void wake() noexcept = 0;

  /// The scheduler is being stopped: returns when a step has answered that it has ended. Called by
  /// any thread that is not inside a job, by several at once too.
  virtual void await_end() = 0;
};

}  // namespace detent::internal

// The part that calls SchedulerCore::step: a thread, a simulation, or a timer of another scheduler.
#pragma once

namespace detent::internal {

/// Implementations are thread-safe.
class Driver {
 public:
  virtual ~Driver() = default;

  /// Requests a step before the time that the previous step returned. If a step is running, or the
  /// driver has not used its result yet, the request is kept. Called while a shard's lock is held.
  virtual void wake() noexcept = 0;

  /// Called when the scheduler stops. Returns after a step has reported the end. Several threads
  /// may call it, but a job must not.
  virtual void await_end() = 0;
};

}  // namespace detent::internal

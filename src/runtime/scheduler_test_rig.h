// What the scheduler's tests are built on: a scheduler on a clock that the test moves, so that
// nothing sleeps and every interleaving that matters is made on purpose. Tests only.
#pragma once

#include <chrono>

#include "base/mutex.h"
#include "detent/clock.h"
#include "detent/scheduler.h"

namespace detent {

/// A scheduler whose jobs run on its driver thread, on a clock that stands still. After `settle` or
/// `advance` returned, everything that was due has run and the driver sleeps again; what jobs wrote
/// may be read.
class SchedulerRig {
 public:
  explicit SchedulerRig(SchedulerOptions options = {}) : scheduler_(with_clock(options)) {}

  ManualClock& clock() { return clock_; }
  Scheduler& scheduler() { return scheduler_; }
  void settle() { clock_.await_waiters(1); }
  void advance(std::chrono::nanoseconds delta) {
    clock_.advance(delta);
    settle();
  }

 private:
  SchedulerOptions with_clock(SchedulerOptions options) {
    options.clock = &clock_;
    return options;
  }

  ManualClock clock_;
  Scheduler scheduler_;
};

/// Closed until opened; threads wait at it. Thread-safe.
class Gate {
 public:
  void open() {
    MutexLock lock(mu_);
    open_ = true;
    opened_.notify_all();
  }
  void wait() {
    MutexLock lock(mu_);
    while (!open_) opened_.wait(mu_);
  }

 private:
  Mutex mu_;
  CondVar opened_;
  bool open_ DETENT_GUARDED_BY(mu_) = false;
};

/// Counts the lives of what holds it: shows whether a job has been destroyed.
class LifeToken {
 public:
  explicit LifeToken(int& alive) : alive_(&alive) { ++*alive_; }
  LifeToken(LifeToken&& other) noexcept : alive_(other.alive_) { other.alive_ = nullptr; }
  LifeToken& operator=(LifeToken&&) = delete;
  ~LifeToken() {
    if (alive_ != nullptr) --*alive_;
  }

 private:
  int* alive_;
};

}  // namespace detent

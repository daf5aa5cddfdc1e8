// The base of the tests of the scheduler: a scheduler on a clock that the test moves. So no test
// sleeps, and each test creates the order of steps that it needs. Tests only.
#pragma once

#include <chrono>

#include "base/mutex.h"
#include "detent/clock.h"
#include "detent/scheduler.h"

namespace detent {

/// A scheduler that runs its jobs on its driver thread, on a clock that the test moves. When
/// `settle` or `advance` returns, all due timers have run and the driver sleeps again. The test may
/// then read what the jobs wrote.
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

/// Threads wait at the gate until another thread opens it. Thread-safe.
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

/// Counts the existing objects. A job that holds a token shows whether it has been destroyed.
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

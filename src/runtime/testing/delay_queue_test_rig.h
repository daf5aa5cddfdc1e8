// The base of the tests of DelayQueue. A clock lets a test act exactly between a thread's decision
// to sleep and its sleep. Consumer threads record what they get. No test sleeps in real time. Tests
// only.
#pragma once

#include <atomic>
#include <functional>
#include <optional>
#include <thread>
#include <utility>
#include <vector>

#include "base/mutex.h"
#include "detent/clock.h"
#include "detent/delay_queue.h"

namespace detent {

/// A clock that the test moves, and that counts every wait. Thread-safe.
class WatchedClock final : public Clock {
 public:
  /// `before_wait` runs before each wait, on the thread that will sleep.
  explicit WatchedClock(std::function<void()> before_wait = nullptr)
      : before_wait_(std::move(before_wait)) {}

  MonotonicTime now() const noexcept override { return manual_.now(); }
  WallInstant wall_now() const noexcept override { return manual_.wall_now(); }

  bool wait(Doorbell& bell, std::optional<MonotonicTime> until) noexcept override {
    if (before_wait_) before_wait_();
    if (until) ++alarms_;
    const bool took_ring = manual_.wait(bell, until);
    if (until) --alarms_;
    ++wakeups_;
    return took_ring;
  }

  void advance(std::chrono::nanoseconds delta) { manual_.advance(delta); }
  void await_waiters(int count) const { manual_.await_waiters(count); }

  /// The number of waits that have ended.
  int wakeups() const { return wakeups_; }
  /// The number of threads that wait with a time limit.
  int alarms() const { return alarms_; }

 private:
  ManualClock manual_;
  const std::function<void()> before_wait_;
  std::atomic<int> wakeups_ = 0;
  std::atomic<int> alarms_ = 0;
};

/// Threads that run `pop` on a queue until the queue is closed and empty. They record the values
/// that they get. Before this object is destroyed, the queue must be closed, and all its elements
/// must be due.
template <class T>
class Consumers {
 public:
  using Pop = std::function<std::optional<T>(DelayQueue<T>&)>;

  Consumers(
      DelayQueue<T>& queue, int count, Pop pop = [](DelayQueue<T>& from) { return from.pop(); })
      : queue_(queue), pop_(std::move(pop)) {
    for (int i = 0; i < count; ++i) threads_.emplace_back([this] { consume(); });
  }
  ~Consumers() { join(); }
  Consumers(const Consumers&) = delete;
  Consumers& operator=(const Consumers&) = delete;

  void join() {
    for (std::thread& thread : threads_) thread.join();
    threads_.clear();
  }

  /// The values that were taken out so far, oldest record first.
  std::vector<T> taken() const {
    MutexLock lock(mu_);
    return taken_;
  }

 private:
  void consume() {
    for (;;) {
      std::optional<T> value = pop_(queue_);
      if (!value && queue_.is_closed() && queue_.empty()) return;
      if (!value) continue;
      MutexLock lock(mu_);
      taken_.push_back(std::move(*value));
    }
  }

  DelayQueue<T>& queue_;
  const Pop pop_;
  mutable Mutex mu_;
  std::vector<T> taken_ DETENT_GUARDED_BY(mu_);
  std::vector<std::thread> threads_;  // used only by the test's thread
};

}  // namespace detent

// A mutex that clang checks at compile time. Data names the mutex that guards it, and functions
// name the mutexes that they need.
//
// Use these instead of std::mutex. With clang's -Wthread-safety, reading a DETENT_GUARDED_BY member
// without its lock does not compile. g++ ignores the annotations.
// In an exploration, these types use the explorer's types (base/explore.h).
#pragma once

#include <chrono>
#include <condition_variable>
#include <mutex>

#if defined(DETENT_EXPLORE)
#include "base/explore.h"
#endif

#if defined(__clang__)
#define DETENT_THREAD_ANNOTATION(x) __attribute__((x))
#else
#define DETENT_THREAD_ANNOTATION(x)
#endif
#define DETENT_GUARDED_BY(mutex) DETENT_THREAD_ANNOTATION(guarded_by(mutex))
#define DETENT_REQUIRES(...) DETENT_THREAD_ANNOTATION(requires_capability(__VA_ARGS__))
#define DETENT_EXCLUDES(...) DETENT_THREAD_ANNOTATION(locks_excluded(__VA_ARGS__))

namespace detent {

namespace internal {
#if defined(DETENT_EXPLORE)
using BasicMutex = explore::ExploredMutex;
using BasicCondVar = explore::ExploredCondVar;
#else
using BasicMutex = std::mutex;
using BasicCondVar = std::condition_variable;
#endif
}  // namespace internal

class DETENT_THREAD_ANNOTATION(capability("mutex")) Mutex {
 public:
  void lock() DETENT_THREAD_ANNOTATION(acquire_capability()) { mutex_.lock(); }
  void unlock() DETENT_THREAD_ANNOTATION(release_capability()) { mutex_.unlock(); }

 private:
  friend class CondVar;
  internal::BasicMutex mutex_;
};

/// Holds a Mutex for a scope.
class DETENT_THREAD_ANNOTATION(scoped_lockable) MutexLock {
 public:
  explicit MutexLock(Mutex& mutex) DETENT_THREAD_ANNOTATION(acquire_capability(mutex))
      : mutex_(mutex) {
    mutex_.lock();
  }
  ~MutexLock() DETENT_THREAD_ANNOTATION(release_capability()) { mutex_.unlock(); }
  MutexLock(const MutexLock&) = delete;
  MutexLock& operator=(const MutexLock&) = delete;

 private:
  Mutex& mutex_;
};

/// A condition variable for Mutex. A wait may end spuriously, so wait in a loop over the condition.
/// To wait until a time, use Clock::wait (detent/clock.h); only clock.cc calls `wait_until`.
class CondVar {
 public:
  /// Requires: the caller holds `mutex`. The wait releases it and holds it again on return.
  void wait(Mutex& mutex) DETENT_REQUIRES(mutex) {
    std::unique_lock<internal::BasicMutex> lock(mutex.mutex_, std::adopt_lock);
    condition_.wait(lock);
    lock.release();
  }
  /// Like wait(), but also ends when the steady clock (CLOCK_MONOTONIC) reaches `until`.
  void wait_until(Mutex& mutex, std::chrono::steady_clock::time_point until)
      DETENT_REQUIRES(mutex) {
    std::unique_lock<internal::BasicMutex> lock(mutex.mutex_, std::adopt_lock);
    condition_.wait_until(lock, until);
    lock.release();
  }
  void notify_one() noexcept { condition_.notify_one(); }
  void notify_all() noexcept { condition_.notify_all(); }

 private:
  internal::BasicCondVar condition_;
};

}  // namespace detent

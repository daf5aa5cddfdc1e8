// Hook points, where a test can choose which thread continues.
//
// With DETENT_EXPLORE, base/mutex.h and base/thread.h use the types below instead of the types of
// the standard library. Then only one thread runs at a time. At each operation of these types, an
// explorer chooses the next thread (tests/explore/explorer.h, which defines these types). Only the
// tests of the explorer are compiled with DETENT_EXPLORE. Otherwise this header has one empty
// function.
#pragma once

#if defined(DETENT_EXPLORE)
#include <chrono>
#include <cstddef>

#include "detent/unique_function.h"
#endif

namespace detent {

#if defined(DETENT_EXPLORE)

namespace explore {

struct Actor;

/// Like std::mutex. All types here require that the caller is a thread of an exploration.
class ExploredMutex {
 public:
  ExploredMutex();
  ~ExploredMutex();
  ExploredMutex(const ExploredMutex&) = delete;
  ExploredMutex& operator=(const ExploredMutex&) = delete;
  void lock();
  void unlock();

 private:
  friend class Session;
  const int number_;  // order of creation; names the mutex in a trace
  bool locked_ = false;
};

/// Like std::condition_variable. Some waits end spuriously, to test the caller's loop.
class ExploredCondVar {
 public:
  ExploredCondVar();
  ~ExploredCondVar();
  ExploredCondVar(const ExploredCondVar&) = delete;
  ExploredCondVar& operator=(const ExploredCondVar&) = delete;
  template <class Lock>
  void wait(Lock& lock) {
    wait_for_notify(*lock.mutex());
  }
  /// Stops the process, because real time does not pass in an exploration. Use a ManualClock.
  template <class Lock>
  void wait_until(Lock&, std::chrono::steady_clock::time_point) {
    refuse_timed_wait();
  }
  void notify_one() noexcept;
  void notify_all() noexcept;

 private:
  friend class Session;
  void wait_for_notify(ExploredMutex& mutex);
  [[noreturn]] static void refuse_timed_wait() noexcept;

  const int number_;
};

/// Like std::thread.
class ExploredThread {
 public:
  ExploredThread() noexcept = default;
  explicit ExploredThread(UniqueFunction<void()> body);
  ExploredThread(ExploredThread&& other) noexcept : actor_(other.actor_) { other.actor_ = nullptr; }
  ExploredThread& operator=(ExploredThread&& other) noexcept;
  ~ExploredThread();
  bool joinable() const noexcept { return actor_ != nullptr; }
  void join();

 private:
  Actor* actor_ = nullptr;
};

/// The number of the calling thread. This exploration numbers its threads in the order of their
/// start.
std::size_t thread_number() noexcept;

}  // namespace explore

/// A point between two operations on atomics. Another thread may run here.
void explore_point();

#else

inline void explore_point() {}

#endif

}  // namespace detent

// Hook points: where threads meet, and where a test may decide which of them goes on.
//
// Compiled with DETENT_EXPLORE, base/mutex.h and base/thread.h are made of the types below instead
// of the standard library's. Then one thread runs at a time, and at each operation of these types
// an explorer chooses which (tests/explore/explorer.h, which defines them). Only the explorer's
// tests are compiled so; everywhere else this header is one empty function.
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

/// As std::mutex. Requires (all of these types): the caller is a thread of an exploration.
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
  const int number_;  // in the order they are made, to name it in a trace
  bool locked_ = false;
};

/// As std::condition_variable. Waits sometimes end spuriously.
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
  /// Stops the process: real time does not pass in an exploration. Use a ManualClock.
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

/// As std::thread.
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

/// Of the calling thread, in the order in which this exploration's threads were started.
std::size_t thread_number() noexcept;

}  // namespace explore

/// A place between two operations on atomics at which another thread may go on.
void explore_point();

#else

inline void explore_point() {}

#endif

}  // namespace detent

// A thread that its owner joins in the destructor, and that a test can run under an explorer.
#pragma once

#include <concepts>
#include <cstddef>
#include <type_traits>
#include <utility>

#if defined(DETENT_EXPLORE)
#include "base/explore.h"
#else
#include <atomic>
#include <thread>
#endif

namespace detent {

namespace internal {
#if defined(DETENT_EXPLORE)
using BasicThread = explore::ExploredThread;
#else
using BasicThread = std::thread;
#endif
}  // namespace internal

/// Owns at most one running thread. Destroying or replacing it waits until the thread ends, so
/// first tell the thread's work to end. Thread-compatible.
class Thread {
 public:
  /// Owns no thread.
  Thread() noexcept = default;
  /// Runs `body` in a new thread. Throws std::system_error if the system cannot start a thread.
  template <std::invocable F>
  requires(!std::same_as<std::remove_cvref_t<F>, Thread>) explicit Thread(F&& body)
      : thread_(std::forward<F>(body)) {}
  Thread(Thread&&) noexcept = default;
  Thread& operator=(Thread&& other) noexcept {
    join();
    thread_ = std::move(other.thread_);
    return *this;
  }
  ~Thread() { join(); }

  /// Waits until the thread has ended. Returns immediately if there is no thread.
  /// Requires: not called by the thread itself.
  void join() {
    if (thread_.joinable()) thread_.join();
  }

 private:
  internal::BasicThread thread_;
};

/// A small number that identifies the calling thread. No other thread gets the same number.
inline std::size_t thread_number() noexcept {
#if defined(DETENT_EXPLORE)
  return explore::thread_number();
#else
  // Each thread increments it once. Relaxed order is enough, because the numbers only need to
  // differ. It is a mutable global, because a thread keeps its number for all objects that use it.
  static std::atomic<std::size_t> next{0};
  thread_local const std::size_t number = next.fetch_add(1, std::memory_order_relaxed);
  return number;
#endif
}

}  // namespace detent

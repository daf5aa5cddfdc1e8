// Coroutines for tests. Each records its own progress and end. Tests only. They follow the rules
// for g++ 12 at the top of detent/coroutine.h.
#pragma once

#include <coroutine>
#include <exception>
#include <optional>
#include <stop_token>
#include <thread>
#include <utility>

#include "detent/coroutine.h"
#include "runtime/testing/scheduler_test_rig.h"

namespace detent {

/// The result of a sleep. Read it while no thread is running.
struct Waking {
  int count = 0;
  bool slept = false;
  std::thread::id thread;

  void note(bool answer) {
    ++count;
    slept = answer;
    thread = std::this_thread::get_id();
  }
};

/// Ignores the end of a task. An exception of the task is a bug of the test.
class Forget {
 public:
  void operator()(const std::exception_ptr& error) const noexcept {
    if (error) std::terminate();
  }
};

/// Sleeps once.
template <class Rep, class Period>
Task<void> sleep_once(Scheduler& scheduler, std::chrono::duration<Rep, Period> delay,
                      std::stop_token stop, Waking& waking) {
  waking.note(
      co_await sleep_for(scheduler, delay, std::move(stop)));  // NOLINT(bugprone-use-after-move)
}
template <class Timeline, class Duration>
Task<void> sleep_once(Scheduler& scheduler, std::chrono::time_point<Timeline, Duration> until,
                      std::stop_token stop, Waking& waking) {
  waking.note(
      co_await sleep_until(scheduler, until, std::move(stop)));  // NOLINT(bugprone-use-after-move)
}

/// Holds `life` in its frame until `task` has ended.
inline Task<void> holding(LifeToken life, Task<void> task) {
  co_await std::move(task);
  static_cast<void>(life);
}

/// A coroutine that starts immediately. Destroying this object destroys the coroutine, wherever it
/// is suspended.
class HeldCoroutine {
 public:
  struct promise_type {  // NOLINT(readability-identifier-naming): the language's name
    HeldCoroutine get_return_object() {
      return HeldCoroutine(std::coroutine_handle<promise_type>::from_promise(*this));
    }
    std::suspend_never initial_suspend() const noexcept { return {}; }
    std::suspend_always final_suspend() const noexcept { return {}; }
    void return_void() const noexcept {}
    void unhandled_exception() const noexcept { std::terminate(); }
  };

  HeldCoroutine(HeldCoroutine&& other) noexcept : frame_(std::exchange(other.frame_, nullptr)) {}
  HeldCoroutine& operator=(HeldCoroutine&&) = delete;
  ~HeldCoroutine() {
    if (frame_) frame_.destroy();
  }

 private:
  explicit HeldCoroutine(std::coroutine_handle<promise_type> frame) : frame_(frame) {}

  std::coroutine_handle<promise_type> frame_;
};

inline HeldCoroutine hold(Task<void> task) { co_await std::move(task); }

}  // namespace detent

// Coroutines on a Scheduler: sleeping, time limits that stop the limited work, and a task type.
//
//     detent::Task<int> fetch(detent::Scheduler& s, std::stop_token stop) {
//       for (int attempt = 1; co_await detent::sleep_for(s, 100ms, stop); ++attempt) {
//         if (is_there()) co_return attempt;
//       }
//       co_return 0;                                       // stopped
//     }
//     …
//     auto work = [&s](std::stop_token stop) { return fetch(s, std::move(stop)); };
//     std::optional<int> attempt = co_await detent::timeout_after(s, 5s, work);
//
// Where a coroutine resumes after a sleep: on the scheduler's executor, in a job of its own. This
// is true both when the time has come and when the token was stopped. There are two exceptions:
//
// - The scheduler stops while the coroutine sleeps, and drops its timer. The coroutine then resumes
//   on the thread that destroys the job of the timer. With Drain::drop this is the thread that
//   calls `stop`, before `stop` returns.
// - The scheduler has already stopped, or is full. The coroutine then continues immediately, on the
//   same thread.
//
// g++ 12 miscompiles two forms; AddressSanitizer shows both errors. First, it destroys some
// temporaries twice in an expression with co_await: lambdas with captures, aggregates and braced
// lists. Give such a temporary a name first, as in the example above. Second, a coroutine without
// any local variable crashes if a co_await is in the condition of its `if` or loop. Write `const
// bool slept = co_await …` first.
//
// Task awaits by symmetric transfer (G. Nishanov, P0913). In optimised builds, chains and loops of
// tasks therefore use no stack. Read next: detent/internal/sleep_timer.h, which explains how a
// sleep is woken.
#pragma once

#include <chrono>
#include <concepts>
#include <coroutine>
#include <exception>
#include <future>
#include <optional>
#include <stop_token>
#include <type_traits>
#include <utility>
#include <variant>

#include "detent/check.h"
#include "detent/clock.h"
#include "detent/internal/saturate.h"
#include "detent/internal/sleep_timer.h"
#include "detent/scheduler.h"
#include "detent/timer_handle.h"

namespace detent {

// ---- Sleeping -----------------------------------------------------------------------------------

/// The awaitable that sleep_for and sleep_until return. Await it once, in a coroutine of any type.
/// The coroutine may be destroyed while it sleeps, but not while another thread is waking it. To
/// end a sleep from another thread, stop its token instead of destroying the coroutine.
class [[nodiscard]] Sleep final : private internal::Sleeper {
 public:
  Sleep(Scheduler& scheduler, internal::WakeTime until, std::stop_token stop) noexcept
      : scheduler_(scheduler), until_(until), stop_(std::move(stop)) {}

  bool await_ready() const noexcept { return stop_.stop_requested(); }
  bool await_suspend(std::coroutine_handle<> sleeper) noexcept {
    sleeper_ = sleeper;
    return timer_.start(scheduler_, until_, stop_, *this);
  }
  /// Returns true if the time has come. Returns false if the token was stopped first, or if the
  /// scheduler has stopped or is full. A token that is stopped before the co_await ends the sleep
  /// immediately, without suspending.
  bool await_resume() const noexcept { return slept_; }

 private:
  void wake(bool slept) override {
    slept_ = slept;
    sleeper_.resume();
  }

  Scheduler& scheduler_;
  const internal::WakeTime until_;
  const std::stop_token stop_;
  std::coroutine_handle<> sleeper_;
  bool slept_ = false;
  internal::SleepTimer timer_;
};

/// `co_await sleep_for(scheduler, 100ms, stop_token)` suspends the coroutine for 100 ms, counted
/// from the co_await. A delay of 0 or less also resumes through the executor. Check the result in a
/// loop: on a stopped or full scheduler every sleep ends immediately with false.
///
/// Requires: `scheduler` outlives the start of the sleep (not the whole sleep). Cost: as
/// Scheduler::schedule_after.
template <class Rep, class Period>
Sleep sleep_for(Scheduler& scheduler, std::chrono::duration<Rep, Period> delay,
                std::stop_token stop = {}) {
  return Sleep(scheduler, internal::saturate_to_nanoseconds(delay), std::move(stop));
}

/// Suspends the coroutine until an instant. Otherwise as sleep_for.
inline Sleep sleep_until(Scheduler& scheduler, MonotonicTime until, std::stop_token stop = {}) {
  return Sleep(scheduler, until, std::move(stop));
}
/// Suspends the coroutine until a date, with the same rules as Scheduler::schedule_at.
template <class Duration>
Sleep sleep_until(Scheduler& scheduler, std::chrono::sys_time<Duration> until,
                  std::stop_token stop = {}) {
  return Sleep(scheduler, internal::ceil_to_wall_time(until), std::move(stop));
}

template <class Rep, class Period>
Sleep Scheduler::sleep_for(std::chrono::duration<Rep, Period> delay, std::stop_token token) {
  return detent::sleep_for(*this, delay, std::move(token));
}
inline Sleep Scheduler::sleep_until(MonotonicTime deadline, std::stop_token token) {
  return detent::sleep_until(*this, deadline, std::move(token));
}
template <class Duration>
Sleep Scheduler::sleep_until(std::chrono::sys_time<Duration> due, std::stop_token token) {
  return detent::sleep_until(*this, due, std::move(token));
}

// ---- Task ---------------------------------------------------------------------------------------

/// A type that a Task can return: void, or a movable object type.
template <class T>
concept TaskResult = std::is_void_v<T> ||(std::movable<T>&& std::is_object_v<T>);

template <TaskResult T>
class Task;

namespace internal {

/// The common part of the promises of all tasks. A task starts suspended. When it ends, it resumes
/// the coroutine that awaits it.
class TaskPromiseBase {
 public:
  std::suspend_always initial_suspend() const noexcept { return {}; }
  auto final_suspend() const noexcept { return ToContinuation(); }
  void continue_with(std::coroutine_handle<> continuation) noexcept {
    continuation_ = continuation;
  }

 private:
  struct ToContinuation {
    bool await_ready() const noexcept { return false; }
    template <std::derived_from<TaskPromiseBase> Promise>
    std::coroutine_handle<> await_suspend(std::coroutine_handle<Promise> ended) const noexcept {
      return ended.promise().continuation_;
    }
    void await_resume() const noexcept {}
  };

  std::coroutine_handle<> continuation_;  // set before the task starts
};

template <class T>
class TaskPromise final : public TaskPromiseBase {
 public:
  Task<T> get_return_object() noexcept;
  template <std::convertible_to<T> Value>
  void return_value(Value&& value) {
    outcome_.template emplace<1>(std::forward<Value>(value));
  }
  void unhandled_exception() noexcept { outcome_.template emplace<2>(std::current_exception()); }
  T take() {
    if (outcome_.index() == 2) std::rethrow_exception(std::get<2>(std::move(outcome_)));
    return std::get<1>(std::move(outcome_));
  }

 private:
  std::variant<std::monostate, T, std::exception_ptr> outcome_;
};

template <>
class TaskPromise<void> final : public TaskPromiseBase {
 public:
  Task<void> get_return_object() noexcept;
  void return_void() const noexcept {}
  void unhandled_exception() noexcept { error_ = std::current_exception(); }
  void take() {
    if (error_) std::rethrow_exception(std::move(error_));
  }

 private:
  std::exception_ptr error_;
};

}  // namespace internal

/// A coroutine that returns a T, or throws, to its awaiting coroutine. Await it once, with
/// `co_await std::move(task)`; the coroutine starts only then. A Task owns its coroutine:
/// destroying the Task destroys the coroutine's frame at any suspension point. Movable.
/// Thread-compatible: do not use one Task from two threads at the same time. Cost: one allocation,
/// for the frame.
template <TaskResult T = void>
class [[nodiscard]] Task {
 public:
  using promise_type = internal::TaskPromise<T>;
  using Result = T;

  /// Makes a Task that owns no coroutine.
  Task() noexcept = default;
  Task(Task&& other) noexcept : frame_(std::exchange(other.frame_, nullptr)) {}
  Task& operator=(Task&& other) noexcept {
    Task old(std::move(other));
    std::swap(frame_, old.frame_);
    return *this;
  }
  ~Task() {
    if (frame_) frame_.destroy();
  }

  /// Starts the coroutine and waits for its result. Requires: the Task owns a coroutine that has
  /// not been awaited yet. Objects in the frame live until the Task is destroyed.
  auto operator co_await() && noexcept {
    DETENT_CHECK(frame_ != nullptr);
    DETENT_CHECK(!frame_.done());
    return Awaiter(frame_);
  }

 private:
  friend promise_type;
  using Frame = std::coroutine_handle<promise_type>;

  class Awaiter {
   public:
    explicit Awaiter(Frame frame) noexcept : frame_(frame) {}
    bool await_ready() const noexcept { return false; }
    Frame await_suspend(std::coroutine_handle<> awaiting) const noexcept {
      frame_.promise().continue_with(awaiting);
      return frame_;
    }
    T await_resume() const { return frame_.promise().take(); }

   private:
    Frame frame_;
  };

  explicit Task(Frame frame) noexcept : frame_(frame) {}

  Frame frame_;
};

namespace internal {

template <class T>
Task<T> TaskPromise<T>::get_return_object() noexcept {
  return Task<T>(std::coroutine_handle<TaskPromise>::from_promise(*this));
}

inline Task<void> TaskPromise<void>::get_return_object() noexcept {
  return Task<void>(std::coroutine_handle<TaskPromise>::from_promise(*this));
}

/// A coroutine that no other coroutine awaits. It starts immediately and destroys its frame when it
/// ends.
struct Detached {
  struct promise_type {  // NOLINT(readability-identifier-naming): the language's name
    Detached get_return_object() const noexcept { return {}; }
    std::suspend_never initial_suspend() const noexcept { return {}; }
    std::suspend_never final_suspend() const noexcept { return {}; }
    void return_void() const noexcept {}
    void unhandled_exception() const noexcept { std::terminate(); }
  };
};

template <class OnDone>
Detached run_detached(Task<void> task, OnDone on_done) {
  std::exception_ptr error;
  try {
    co_await std::move(task);  // NOLINT(bugprone-use-after-move): it is evaluated once
  } catch (...) {
    error = std::current_exception();
  }
  // The awaited task still owns its frame. Destroy the frame before on_done learns about the end.
  task = Task<void>();
  on_done(std::move(error));
}

template <class T>
Task<void> store_result(Task<T> task, std::optional<T>& result) {
  T value = co_await std::move(task);
  result.emplace(std::move(value));
}

}  // namespace internal

// ---- Starting tasks -----------------------------------------------------------------------------

/// Starts `task` from a normal function: runs it on this thread until its first wait. After the
/// task has ended and is destroyed, calls `on_done` on the thread where the task ended. `on_done`
/// receives the exception that the task threw, or null. If `on_done` throws, the process ends.
template <std::invocable<std::exception_ptr> OnDone>
void spawn(Task<void> task, OnDone on_done) {
  internal::run_detached(std::move(task), std::move(on_done));
}

/// Starts `task` on this thread and blocks until the task has ended and is destroyed. Returns its
/// result, or throws its exception. Requires: the task can continue without this thread. For
/// example, do not call it on a thread of the scheduler's executor.
template <class T>
T sync_wait(Task<T> task) {
  std::promise<void> done;
  std::future<void> ended = done.get_future();
  auto fulfil = [done = std::move(done)](const std::exception_ptr& error) mutable {
    if (error) return done.set_exception(error);
    done.set_value();
  };
  if constexpr (std::is_void_v<T>) {
    spawn(std::move(task), std::move(fulfil));
    ended.get();
  } else {
    std::optional<T> result;
    spawn(internal::store_result(std::move(task), result), std::move(fulfil));
    ended.get();
    return std::move(*result);
  }
}

// ---- Time limits --------------------------------------------------------------------------------

namespace internal {

/// A job that requests a stop when it runs, or at the latest when it is destroyed.
class StopRequest {
 public:
  explicit StopRequest(std::stop_source source) noexcept : source_(std::move(source)) {}
  StopRequest(StopRequest&&) noexcept = default;
  StopRequest& operator=(StopRequest&&) = delete;
  ~StopRequest() { source_.request_stop(); }

  // A stop callback may end the work and release every other reference to the stop state. The copy
  // keeps the stop state alive.
  void operator()() const noexcept { std::stop_source(source_).request_stop(); }

 private:
  std::stop_source source_;
};

template <class Work>
using WorkTask = std::invoke_result_t<Work&, std::stop_token>;
template <class T>
struct Limited {
  using Result = std::optional<T>;
};
template <>
struct Limited<void> {
  using Result = bool;
};

}  // namespace internal

/// Work for timeout_after: a function that takes a stop token and returns a Task.
template <class Work>
concept LimitedWork = std::move_constructible<Work> && std::invocable<Work&, std::stop_token> &&
    std::same_as<internal::WorkTask<Work>, Task<typename internal::WorkTask<Work>::Result>>;

/// Runs `work(token)` for at most `limit`, counted from the co_await. Then it stops the token, and
/// waits until the work has ended. No part of the work runs after timeout_after has returned. Work
/// that ignores its token therefore delays the time-out. The caller's token `stop` also stops the
/// token of the work. This is not a time-out: timeout_after then returns the result of the work.
///
/// Returns: the result of the work; for Task<void>, true. Returns std::nullopt (for Task<void>,
/// false) if the limit expired or the scheduler stopped before the work ended. Returns the same if
/// the scheduler had no room for the timer of the limit. Throws the exception of the work in every
/// case.
///
/// Source: structured concurrency (N. J. Smith, "Timeouts and cancellation for humans", 2018).
template <class Rep, class Period, LimitedWork Work>
Task<typename internal::Limited<typename internal::WorkTask<Work>::Result>::Result> timeout_after(
    Scheduler& scheduler, std::chrono::duration<Rep, Period> limit, Work work,
    std::stop_token stop = {}) {
  const std::stop_source source;
  const std::stop_callback forward(std::move(stop), internal::StopRequest(source));
  TimerHandle timer = scheduler.schedule_after(limit, internal::StopRequest(source));
  auto task = work(source.get_token());
  if constexpr (std::is_void_v<typename internal::WorkTask<Work>::Result>) {
    co_await std::move(task);
    co_return timer.cancel() == CancelResult::cancelled;
  } else {
    std::optional<typename internal::WorkTask<Work>::Result> result = co_await std::move(task);
    if (timer.cancel() != CancelResult::cancelled) result.reset();
    co_return result;
  }
}

}  // namespace detent

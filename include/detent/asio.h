// Boost.Asio support for a Scheduler: run jobs on an io_context, and sleep with any completion
// token (callbacks, use_future, use_awaitable, deferred, …). Requires Boost 1.81; link
// detent::asio.
//
//     boost::asio::io_context io;
//     auto work = boost::asio::make_work_guard(io);  // timers alone do not keep io.run() going
//     detent::AsioExecutor on_io(io.get_executor());
//     detent::Scheduler scheduler({.executor = &on_io});
//     auto timer = scheduler.schedule_after(250ms, [] { … });          // runs in io.run()
//     detent::async_sleep_for(scheduler, 5ms, [](boost::system::error_code error) { … });
//     co_await (read_all(socket) || detent::async_sleep_for(scheduler, 5s, use_awaitable));
//
// Sleeps use the scheduler's wheel and clock, unlike a boost::asio::steady_timer. Tests can
// therefore run them on a ManualClock.
#pragma once

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/append.hpp>
#include <boost/asio/associated_cancellation_slot.hpp>
#include <boost/asio/associated_executor.hpp>
#include <boost/asio/async_result.hpp>
#include <boost/asio/cancellation_type.hpp>
#include <boost/asio/dispatch.hpp>
#include <boost/asio/error.hpp>
#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/post.hpp>
#include <boost/system/error_code.hpp>
#include <chrono>
#include <memory>
#include <stop_token>
#include <utility>

#include "detent/clock.h"
#include "detent/executor.h"
#include "detent/internal/saturate.h"
#include "detent/internal/sleep_timer.h"
#include "detent/scheduler.h"

namespace detent {

/// Posts jobs to a Boost.Asio executor, for example the executor of an io_context, a strand or a
/// thread_pool. Thread-safe.
///
/// A pending timer does not keep io_context::run from returning. A due job does.
///
/// Requires: a thread runs the context. Otherwise due jobs wait. Jobs that still wait when the
/// context is destroyed never run, and Scheduler::stop(Drain::run_due) waits for them.
class AsioExecutor final : public Executor {
 public:
  /// Posts to `executor`. Does not run jobs itself.
  explicit AsioExecutor(boost::asio::any_io_executor executor) : executor_(std::move(executor)) {}

  void execute(Job job) override { boost::asio::post(executor_, std::move(job)); }

 private:
  const boost::asio::any_io_executor executor_;
};

namespace internal {

/// A sleep that calls a completion handler. The object owns itself from `start` until it wakes.
template <class Handler>
class AsyncSleep final : private Sleeper {
 public:
  static void start(Handler handler, Scheduler& scheduler, const WakeTime& until) {
    auto owner = std::unique_ptr<AsyncSleep>(new AsyncSleep(std::move(handler)));
    std::stop_token stop = owner->stop_on_cancellation();
    AsyncSleep* const sleep = owner.release();
    if (sleep->timer_.start(scheduler, until, std::move(stop), *sleep)) return;
    owner.reset(sleep);
    // Asio forbids calling the handler from inside the initiating function, so the call is posted.
    boost::asio::post(owner->work_.get_executor(), owner->completion(false));
  }

 private:
  explicit AsyncSleep(Handler handler)
      : work_(boost::asio::make_work_guard(handler)), handler_(std::move(handler)) {}

  // The slot can be used at any time, even after the sleep has ended. A separate stop source makes
  // that safe.
  std::stop_token stop_on_cancellation() {
    auto slot = boost::asio::get_associated_cancellation_slot(handler_);
    if (!slot.is_connected()) return {};
    std::stop_source source;  // not const, nor the lambda: request_stop() changes it
    slot.assign([source](boost::asio::cancellation_type type) mutable {
      if (type != boost::asio::cancellation_type::none) source.request_stop();
    });
    return source.get_token();
  }

  auto completion(bool slept) {
    const boost::system::error_code error =
        slept ? boost::system::error_code() : boost::asio::error::operation_aborted;
    return boost::asio::append(std::move(handler_), error);
  }

  void wake(bool slept) override {
    const auto work = std::move(work_);
    auto completion = this->completion(slept);
    delete this;  // before the handler is called, as Asio promises
    boost::asio::dispatch(work.get_executor(), std::move(completion));
  }

  boost::asio::executor_work_guard<boost::asio::associated_executor_t<Handler>> work_;
  Handler handler_;
  SleepTimer timer_;
};

/// Starts an AsyncSleep when the completion token launches the operation.
class InitiateSleep {
 public:
  InitiateSleep(Scheduler& scheduler, WakeTime until) noexcept
      : scheduler_(&scheduler), until_(until) {}

  template <class Handler>
  void operator()(Handler&& handler) const {
    AsyncSleep<std::decay_t<Handler>>::start(std::forward<Handler>(handler), *scheduler_, until_);
  }

 private:
  Scheduler* scheduler_;
  WakeTime until_;
};

template <class Token>
auto async_sleep(Scheduler& scheduler, const WakeTime& until, Token&& token) {
  return boost::asio::async_initiate<Token, void(boost::system::error_code)>(
      InitiateSleep(scheduler, until), token);
}

}  // namespace internal

/// A completion token whose handler takes one boost::system::error_code.
template <class Token>
concept SleepToken = boost::asio::completion_token_for<Token, void(boost::system::error_code)>;

/// Sleeps for `delay`, then completes with no error. `delay` counts from the moment when the token
/// starts the operation. A delay of 0 or less is due immediately.
///
/// Errors: the operation completes with boost::asio::error::operation_aborted in two cases. Either
/// the token's cancellation slot is used before the sleep ends (any type of cancellation), or the
/// scheduler stops.
///
/// The handler is dispatched to its associated executor. The sleep counts as outstanding work of
/// that executor. A handler without an executor runs on the scheduler's executor, or on the thread
/// that stops the scheduler. If such a handler throws, the scheduler treats the exception like one
/// thrown by a job.
///
/// Requires: `scheduler` outlives the start of the operation. The handler's context outlives the
/// sleep, so stop the scheduler before the context is destroyed. As Asio demands, do not use one
/// cancellation slot on two threads at the same time.
///
/// Returns: the result type of the token. Cost: one allocation for the sleep and one for its timer.
template <class Rep, class Period, SleepToken Token>
auto async_sleep_for(Scheduler& scheduler, std::chrono::duration<Rep, Period> delay,
                     Token&& token) {
  return internal::async_sleep(scheduler, internal::saturate_to_nanoseconds(delay),
                               std::forward<Token>(token));
}

/// Sleeps until an instant. See async_sleep_for for errors, requirements and cost.
template <SleepToken Token>
auto async_sleep_until(Scheduler& scheduler, MonotonicTime until, Token&& token) {
  return internal::async_sleep(scheduler, until, std::forward<Token>(token));
}
/// Sleeps until a date, with the same rules as Scheduler::schedule_at: the sleep follows the wall
/// clock when the clock is stepped.
template <class Duration, SleepToken Token>
auto async_sleep_until(Scheduler& scheduler, std::chrono::sys_time<Duration> until, Token&& token) {
  return internal::async_sleep(scheduler, internal::ceil_to_wall_time(until),
                               std::forward<Token>(token));
}

}  // namespace detent

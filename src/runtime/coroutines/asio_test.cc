// Boost.Asio together with a scheduler: jobs on an io_context, and sleeps with all kinds of
// completion tokens. The clock is a ManualClock, so the io_context never really waits.
#include "detent/asio.h"

#include <gtest/gtest.h>

#include <boost/asio/awaitable.hpp>
#include <boost/asio/bind_cancellation_slot.hpp>
#include <boost/asio/bind_executor.hpp>
#include <boost/asio/cancellation_signal.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/deferred.hpp>
#include <boost/asio/experimental/awaitable_operators.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/strand.hpp>
#include <boost/asio/thread_pool.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/asio/use_future.hpp>
#include <boost/system/system_error.hpp>
#include <future>
#include <memory>
#include <optional>
#include <thread>
#include <utility>
#include <vector>

#include "base/rng.h"
#include "base/test_seed.h"
#include "runtime/testing/scheduler_test_rig.h"

namespace detent {
namespace {

namespace asio = boost::asio;
using asio::experimental::awaitable_operators::operator||;  // NOLINT(misc-unused-using-decls)
using boost::system::error_code;
using namespace std::chrono_literals;

/// Records the calls of a completion handler.
struct Completion {
  int count = 0;
  error_code error;
  std::thread::id thread;

  auto handler() {
    return [this](error_code given) {
      ++count;
      error = given;
      thread = std::this_thread::get_id();
    };
  }
};

// ---- AsioExecutor -------------------------------------------------------------------------------

TEST(AsioExecutor, RunsJobsInTheContextsRun) {
  asio::io_context io;
  AsioExecutor on_io(io.get_executor());
  SchedulerRig rig({.executor = &on_io});
  std::thread::id thread;
  auto box = std::make_unique<int>(42);
  int answer = 0;
  const TimerHandle timer = rig.scheduler().schedule_after(1ms, [&, b = std::move(box)] {
    thread = std::this_thread::get_id();
    answer = *b;
  });
  rig.advance(1ms);
  EXPECT_EQ(answer, 0);
  EXPECT_EQ(io.run(), 1U);
  EXPECT_EQ(answer, 42);
  EXPECT_EQ(thread, std::this_thread::get_id());
}

TEST(AsioExecutor, SchedulerMayStopWhileItsJobsWaitForAContextThatDoesNotRun) {
  asio::io_context io;
  AsioExecutor on_io(io.get_executor());
  bool has_run = false;
  {
    SchedulerRig rig({.executor = &on_io});
    rig.scheduler().schedule_after(1ms, [&] { has_run = true; }).release();
    rig.advance(1ms);
  }
  io.run();
  EXPECT_FALSE(has_run);
}

// ---- Callbacks ----------------------------------------------------------------------------------

TEST(AsyncSleep, CallsItsHandlerOnTheHandlersExecutorWhenTheTimeHasCome) {
  asio::io_context io;
  SchedulerRig rig;
  Completion done;
  async_sleep_for(rig.scheduler(), 5ms, asio::bind_executor(io, done.handler()));
  rig.advance(5ms - 1ns);
  EXPECT_EQ(io.poll(), 0U);
  EXPECT_FALSE(io.stopped()) << "the sleep is outstanding work";
  rig.advance(1ns);
  EXPECT_EQ(done.count, 0);
  io.run();
  EXPECT_EQ(done.count, 1);
  EXPECT_FALSE(done.error);
  EXPECT_EQ(done.thread, std::this_thread::get_id());
}

TEST(AsyncSleep, UntilAnInstantAndUntilADateEndsThen) {
  asio::io_context io;
  SchedulerRig rig;
  const WallInstant date = rig.clock().wall_now() + 5ms - 1ns;  // rounded up
  Completion instant;
  Completion dated;
  async_sleep_until(rig.scheduler(), rig.clock().now() + 3ms,
                    asio::bind_executor(io, instant.handler()));
  async_sleep_until(rig.scheduler(), date, asio::bind_executor(io, dated.handler()));
  rig.advance(4ms);
  io.poll();
  EXPECT_EQ(instant.count, 1);
  EXPECT_EQ(dated.count, 0);
  rig.advance(1ms);
  io.poll();
  EXPECT_EQ(dated.count, 1);
}

TEST(AsyncSleep, WithoutAnExecutorItsHandlerRunsWhereJobsDo) {
  SchedulerRig rig;
  Completion done;
  std::thread::id driver;
  rig.scheduler().schedule_after(0s, [&] { driver = std::this_thread::get_id(); }).release();
  async_sleep_for(rig.scheduler(), 5ms, done.handler());
  rig.advance(5ms);
  EXPECT_EQ(done.count, 1);
  EXPECT_EQ(done.thread, driver);
}

TEST(AsyncSleep, MoveOnlyHandlerIsDestroyedAfterItsCall) {
  asio::io_context io;
  SchedulerRig rig;
  int alive = 0;
  int alive_inside = 0;
  auto handler = [&, life = std::make_unique<LifeToken>(alive)](error_code) {
    alive_inside = alive;
  };
  async_sleep_for(rig.scheduler(), 5ms, asio::bind_executor(io, std::move(handler)));
  EXPECT_EQ(alive, 1);
  rig.advance(5ms);
  io.run();
  EXPECT_EQ(alive_inside, 1);
  EXPECT_EQ(alive, 0);
}

// ---- Cancellation -------------------------------------------------------------------------------

TEST(AsyncSleep, CancelledBySlotIsAbortedAndItsTimerIsCancelled) {
  asio::io_context io;
  SchedulerRig rig;
  asio::cancellation_signal signal;
  Completion done;
  async_sleep_for(
      rig.scheduler(), 1h,
      asio::bind_cancellation_slot(signal.slot(), asio::bind_executor(io, done.handler())));
  rig.settle();
  signal.emit(asio::cancellation_type::none);
  rig.settle();
  EXPECT_EQ(io.poll(), 0U);
  signal.emit(asio::cancellation_type::total);
  rig.settle();
  io.run();
  EXPECT_EQ(done.count, 1);
  EXPECT_EQ(done.error, asio::error::operation_aborted);
  EXPECT_EQ(rig.scheduler().stats().pending, 0U);
}

TEST(AsyncSleep, SlotMayBeUsedWhenTheSleepIsOver) {
  asio::io_context io;
  SchedulerRig rig;
  asio::cancellation_signal signal;
  Completion done;
  async_sleep_for(
      rig.scheduler(), 5ms,
      asio::bind_cancellation_slot(signal.slot(), asio::bind_executor(io, done.handler())));
  rig.advance(5ms);
  io.run();
  signal.emit(asio::cancellation_type::all);
  rig.settle();
  EXPECT_EQ(done.count, 1);
  EXPECT_FALSE(done.error);
}

TEST(AsyncSleep, EndsWithItsScheduler) {
  asio::io_context io;
  SchedulerRig rig;
  Completion pending;
  Completion refused;
  async_sleep_for(rig.scheduler(), 1h, asio::bind_executor(io, pending.handler()));
  rig.scheduler().stop();
  async_sleep_for(rig.scheduler(), 1h, asio::bind_executor(io, refused.handler()));
  EXPECT_EQ(pending.count + refused.count, 0) << "not from inside the initiating function";
  io.run();
  EXPECT_EQ(pending.count, 1);
  EXPECT_EQ(refused.count, 1);
  EXPECT_EQ(pending.error, asio::error::operation_aborted);
  EXPECT_EQ(refused.error, asio::error::operation_aborted);
}

TEST(AsyncSleep, HandlersThatDidNotRunAreDestroyedWithTheContext) {
  int alive = 0;
  {
    asio::io_context io;
    SchedulerRig rig;
    auto handler = [life = LifeToken(alive)](error_code) {};
    async_sleep_for(rig.scheduler(), 1h, asio::bind_executor(io, std::move(handler)));
  }
  EXPECT_EQ(alive, 0);
}

// ---- Other tokens -------------------------------------------------------------------------------

TEST(AsyncSleep, GivesAFuture) {
  SchedulerRig rig;
  std::future<void> slept = async_sleep_for(rig.scheduler(), 5ms, asio::use_future);
  std::future<void> stopped = async_sleep_for(rig.scheduler(), 1h, asio::use_future);
  rig.advance(5ms);
  slept.get();
  rig.scheduler().stop();
  EXPECT_THROW(stopped.get(), boost::system::system_error);
}

TEST(AsyncSleep, DeferredStartsWhenItIsCalled) {
  asio::io_context io;
  SchedulerRig rig;
  Completion done;
  auto sleep = async_sleep_for(rig.scheduler(), 5ms, asio::deferred);
  rig.advance(5ms);
  EXPECT_EQ(rig.scheduler().stats().scheduled, 0U);
  // Asio wants an rvalue: NOLINTNEXTLINE(performance-move-const-arg)
  std::move(sleep)(asio::bind_executor(io, done.handler()));
  rig.advance(5ms);
  io.run();
  EXPECT_EQ(done.count, 1);
}

asio::awaitable<int> count_sleeps(Scheduler& scheduler) {
  int sleeps = 0;
  for (; sleeps < 3; ++sleeps) co_await async_sleep_for(scheduler, 5ms, asio::use_awaitable);
  co_return sleeps;
}

TEST(AsyncSleep, IsAwaitedByCoroutinesOfAsio) {
  asio::io_context io;
  SchedulerRig rig;
  std::future<int> sleeps = asio::co_spawn(io, count_sleeps(rig.scheduler()), asio::use_future);
  for (int i = 0; i < 3; ++i) {
    io.poll();
    rig.advance(5ms);
  }
  io.run();
  EXPECT_EQ(sleeps.get(), 3);
}

asio::awaitable<std::size_t> first_of(Scheduler& scheduler, std::chrono::milliseconds work) {
  const auto first = co_await (async_sleep_for(scheduler, work, asio::use_awaitable) ||
                               async_sleep_for(scheduler, 5ms, asio::use_awaitable));
  co_return first.index();
}

TEST(AsyncSleep, IsATimeLimitInAsiosOr) {
  asio::io_context io;
  SchedulerRig rig;
  std::future<std::size_t> in_time =
      asio::co_spawn(io, first_of(rig.scheduler(), 4ms), asio::use_future);
  std::future<std::size_t> late =
      asio::co_spawn(io, first_of(rig.scheduler(), 6ms), asio::use_future);
  io.poll();
  rig.advance(4ms);
  io.poll();
  rig.advance(1ms);
  io.poll();
  rig.settle();  // the cancelled sleeps are moved to the present, and end
  io.run();
  EXPECT_EQ(in_time.get(), 0U);
  EXPECT_EQ(late.get(), 1U);
  EXPECT_EQ(rig.scheduler().stats().pending, 0U);
}

// ---- Races --------------------------------------------------------------------------------------

/// A sleep on its own strand. It is cancelled on the strand at about the time at which it ends.
struct Racer {
  explicit Racer(asio::thread_pool& threads) : strand(asio::make_strand(threads)) {}

  asio::strand<asio::thread_pool::executor_type> strand;
  asio::cancellation_signal signal;
  int completions = 0;  // used only on the strand, and after the threads have ended
};

void start(Racer& racer, Scheduler& scheduler, std::chrono::microseconds delay) {
  auto handler = [&racer](error_code) { ++racer.completions; };
  asio::post(racer.strand, [&racer, &scheduler, delay, handler] {
    async_sleep_for(scheduler, delay,
                    asio::bind_cancellation_slot(racer.signal.slot(),
                                                 asio::bind_executor(racer.strand, handler)));
  });
  asio::post(racer.strand, [&racer] { racer.signal.emit(asio::cancellation_type::terminal); });
}

TEST(AsyncSleep, CompletesOnceWhenTimeCancellationAndStopRace) {
  const std::uint64_t seed = test_seed();
  SCOPED_TRACE(replay_hint(seed));
  Rng rng(seed);
  for (int round = 0; round < 50; ++round) {
    asio::thread_pool threads(3);
    AsioExecutor on_threads(threads.get_executor());
    ManualClock clock;
    std::vector<std::unique_ptr<Racer>> racers;
    {
      Scheduler scheduler({.clock = &clock, .executor = &on_threads});
      for (int i = 0; i < 30; ++i) {
        racers.push_back(std::make_unique<Racer>(threads));
        start(*racers.back(), scheduler, std::chrono::microseconds(10 * rng.below(5)));
        clock.advance(std::chrono::microseconds(10 * rng.below(3)));
      }
      if (rng.below(2) == 0) scheduler.stop();
      threads.wait();
    }
    for (const auto& racer : racers) EXPECT_EQ(racer->completions, 1);
  }
}

}  // namespace
}  // namespace detent

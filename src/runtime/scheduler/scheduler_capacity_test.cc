// The limit on the number of timers: what happens to a timer without room, and when room becomes
// free.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <stdexcept>
#include <thread>
#include <utility>
#include <vector>

#include "base/test_seed.h"
#include "detent/scheduler.h"
#include "detent/simulation.h"
#include "runtime/testing/scheduler_test_rig.h"

namespace detent {
namespace {

using namespace std::chrono_literals;
using std::chrono::nanoseconds;

constexpr std::array kWaitingPolicies = {WhenFull::block, WhenFull::run_in_caller};

void ignore(const std::exception_ptr&) {}

TEST(SchedulerCapacity, FailRefusesTimersWithoutRoom) {
  SchedulerRig rig({.capacity = 2});
  int alive = 0;
  int fired = 0;
  const TimerHandle a = rig.scheduler().schedule_after(1h, [] {});
  const TimerHandle b = rig.scheduler().schedule_every({.period = 1h}, [] {});
  const auto job = [&] { return [&fired, token = LifeToken(alive)] { ++fired; }; };
  EXPECT_FALSE(rig.scheduler().schedule_after(0s, job()));
  EXPECT_FALSE(rig.scheduler().schedule_every({.period = 1ms}, job()));
  EXPECT_FALSE(rig.scheduler().schedule_at(WallTime{}, job()));
  EXPECT_EQ(rig.scheduler().schedule_keyed("key", 0s, job()), KeyedResult::refused);
  EXPECT_EQ(alive, 0);
  rig.advance(1s);
  EXPECT_EQ(fired, 0);
  EXPECT_EQ(rig.scheduler().stats().rejected, 4u);
  EXPECT_EQ(rig.scheduler().stats().scheduled, 6u);
  EXPECT_EQ(rig.scheduler().stats().pending, 2u);
  EXPECT_EQ(rig.scheduler().cancel_key("key"), CancelResult::not_pending) << "the key is free";
}

// ---- when room becomes free ---------------------------------------------------------------------

/// Whether a scheduler of capacity 1 has room.
bool has_room(SchedulerRig& rig) {
  TimerHandle timer = rig.scheduler().schedule_after(1h, [] {});
  return timer.cancel() == CancelResult::cancelled;
}

TEST(SchedulerCapacity, CancellingGivesRoomBackOnce) {
  SchedulerRig rig({.capacity = 1});
  TimerHandle timer = rig.scheduler().schedule_after(1h, [] {});
  EXPECT_FALSE(has_room(rig));
  EXPECT_TRUE(timer.expires_after(2h));
  EXPECT_FALSE(has_room(rig)) << "moved, not ended";
  EXPECT_EQ(timer.cancel(), CancelResult::cancelled);
  EXPECT_EQ(timer.cancel(), CancelResult::not_pending);
  EXPECT_TRUE(has_room(rig));
  const TimerHandle only = rig.scheduler().schedule_after(1h, [] {});
  EXPECT_FALSE(has_room(rig)) << "the second cancel gave no room";
}

TEST(SchedulerCapacity, ReplacingAKeyNeedsNoRoomOfItsOwn) {
  SchedulerRig rig({.capacity = 1});
  EXPECT_EQ(rig.scheduler().schedule_keyed("key", 1h, [] {}), KeyedResult::scheduled);
  EXPECT_EQ(rig.scheduler().schedule_keyed(
                "key", 1h, [] {}, SameKey::replace),
            KeyedResult::replaced);
  EXPECT_EQ(rig.scheduler().schedule_keyed("other", 1h, [] {}), KeyedResult::refused);
  EXPECT_EQ(rig.scheduler().cancel_key("key"), CancelResult::cancelled);
  EXPECT_TRUE(has_room(rig));
}

TEST(SchedulerCapacity, ATimerKeepsItsRoomUntilItsLastRunEnds) {
  SchedulerRig rig({.capacity = 1});
  std::vector<bool> room_inside;
  const TimerHandle timer = rig.scheduler().schedule_every(
      {.period = 1ms, .count = 2}, [&] { room_inside.push_back(has_room(rig)); });
  EXPECT_FALSE(has_room(rig));
  rig.advance(1ms);
  EXPECT_FALSE(has_room(rig)) << "between two runs";
  rig.advance(1ms);
  EXPECT_EQ(room_inside, (std::vector{false, false}));
  EXPECT_TRUE(has_room(rig));
}

TEST(SchedulerCapacity, ARunThatThrowsGivesRoomBack) {
  SchedulerRig rig({.error_handler = ignore, .capacity = 1});
  rig.scheduler().schedule_after(1ms, [] { throw std::runtime_error("broken"); }).release();
  rig.advance(1ms);
  EXPECT_TRUE(has_room(rig));
}

TEST(SchedulerCapacity, APeriodicTimerCancelledInsideItsRunGivesRoomBack) {
  SchedulerRig rig({.capacity = 1});
  TimerHandle timer = rig.scheduler().schedule_every(
      {.period = 1ms}, [&] { EXPECT_EQ(timer.cancel(), CancelResult::running); });
  rig.advance(1ms);
  EXPECT_TRUE(has_room(rig));
}

// ---- block --------------------------------------------------------------------------------------

TEST(SchedulerCapacity, BlockWaitsUntilATimerIsCancelled) {
  for (int round = 0; round < 50; ++round) {
    SchedulerRig rig({.capacity = 1, .when_full = WhenFull::block});
    TimerHandle first = rig.scheduler().schedule_after(1h, [] {});
    std::atomic<bool> has_returned = false;
    std::thread caller([&] {
      const TimerHandle second = rig.scheduler().schedule_after(1h, [] {});
      has_returned = true;
      EXPECT_TRUE(second);
    });
    rig.settle();
    EXPECT_FALSE(has_returned);
    EXPECT_EQ(first.cancel(), CancelResult::cancelled);
    caller.join();
    EXPECT_EQ(rig.scheduler().stats().rejected, 0u);
    EXPECT_EQ(rig.scheduler().stats().cancelled, 2u);
  }
}

// Threads schedule timers through a small capacity while the clock runs. All timers must run in the
// end, and the number of timers must never exceed the capacity.
TEST(SchedulerCapacity, BlockLetsEverythingThroughAndNeverMoreThanThereIsRoomFor) {
  constexpr std::size_t kCapacity = 3;
  constexpr int kThreads = 3;
  constexpr int kTimers = 400;
  ThreadPool pool({.threads = 2, .capacity = 4});
  ManualClock clock;
  Scheduler scheduler({.clock = &clock,
                       .executor = &pool,
                       .shards = 1,
                       .capacity = kCapacity,
                       .when_full = WhenFull::block});
  std::atomic<int> runs = 0;
  std::atomic<int> crowded = 0;
  std::vector<std::thread> callers;
  for (int i = 0; i < kThreads; ++i) {
    callers.emplace_back([&] {
      for (int n = 0; n < kTimers; ++n) {
        scheduler.schedule_after(n % 3 * 10us, [&] { ++runs; }).release();
        const SchedulerStats stats = scheduler.stats();
        if (stats.pending + stats.running > kCapacity) ++crowded;
      }
    });
  }
  while (runs + static_cast<int>(kCapacity) < kThreads * kTimers) {
    clock.advance(10us);
    std::this_thread::yield();
  }
  for (std::thread& caller : callers) caller.join();
  clock.advance(30us);
  scheduler.stop(Drain::run_due);
  EXPECT_EQ(runs, kThreads * kTimers);
  EXPECT_EQ(crowded, 0);
  EXPECT_EQ(scheduler.stats().rejected, 0u);
}

// The caller may come before, during or after the stop. It must always return.
TEST(SchedulerCapacity, StopLetsABlockedCallerGo) {
  for (const Drain drain : {Drain::drop, Drain::run_due, Drain::hand_back}) {
    for (int round = 0; round < 100; ++round) {
      SchedulerRig rig({.capacity = 1, .when_full = WhenFull::block});
      int alive = 0;
      int fired = 0;
      const TimerHandle first = rig.scheduler().schedule_after(1h, [] {});
      std::thread caller([&] {
        const TimerHandle second =
            rig.scheduler().schedule_after(0s, [&fired, token = LifeToken(alive)] { ++fired; });
        EXPECT_FALSE(second);
      });
      for (int i = 0; i < round; ++i) std::this_thread::yield();
      rig.scheduler().stop(drain);
      caller.join();
      EXPECT_EQ(alive, 0);
      EXPECT_EQ(fired, 0);
      EXPECT_EQ(rig.scheduler().stats().dropped, 2u);
      EXPECT_EQ(rig.scheduler().stats().rejected, 0u);
    }
  }
}

TEST(SchedulerCapacity, AfterStopATimerIsRefusedByTheStopAndNotForWantOfRoom) {
  for (const WhenFull when_full : {WhenFull::fail, WhenFull::block, WhenFull::run_in_caller}) {
    for (const std::size_t pending : {std::size_t{0}, std::size_t{1}}) {
      SchedulerRig rig({.capacity = 1, .when_full = when_full});
      if (pending != 0) rig.scheduler().schedule_after(1h, [] {}).release();
      rig.scheduler().stop(Drain::drop);
      int fired = 0;
      EXPECT_FALSE(rig.scheduler().schedule_after(0s, [&] { ++fired; }));
      EXPECT_EQ(fired, 0);
      EXPECT_EQ(rig.scheduler().stats().dropped, 1 + pending);
      EXPECT_EQ(rig.scheduler().stats().rejected, 0u);
    }
  }
}

// ---- run in the caller --------------------------------------------------------------------------

TEST(SchedulerCapacity, RunInCallerRunsTheJobInItsCallerWhenItIsDueAndNotBefore) {
  SchedulerRig rig({.capacity = 1, .when_full = WhenFull::run_in_caller});
  const TimerHandle first = rig.scheduler().schedule_after(1h, [] {});
  std::atomic<int> fired = 0;
  int alive = 0;
  std::thread caller([&] {
    const std::thread::id self = std::this_thread::get_id();
    const TimerHandle second =
        rig.scheduler().schedule_after(1ms, [&, self, token = LifeToken(alive)] {
          EXPECT_EQ(std::this_thread::get_id(), self);
          ++fired;
        });
    EXPECT_EQ(fired, 1);
    EXPECT_EQ(alive, 0);
    EXPECT_FALSE(second);
  });
  rig.clock().await_waiters(2);  // the driver and the caller
  rig.clock().advance(1ms - 1ns);
  rig.clock().await_waiters(2);
  EXPECT_EQ(fired, 0);
  rig.clock().advance(1ns);
  caller.join();
  EXPECT_EQ(fired, 1);
  EXPECT_EQ(rig.scheduler().stats().rejected, 1u);
  EXPECT_EQ(rig.scheduler().stats().pending, 1u);
}

TEST(SchedulerCapacity, RunInCallerRunsDueJobsImmediately) {
  SchedulerRig rig({.capacity = 1, .when_full = WhenFull::run_in_caller});
  const TimerHandle first = rig.scheduler().schedule_after(1h, [] {});
  int fired = 0;
  rig.scheduler().schedule_after(-1s, [&] { ++fired; }).release();
  EXPECT_EQ(fired, 1);
  EXPECT_EQ(rig.scheduler().schedule_keyed("key", 0s, [&] { ++fired; }), KeyedResult::refused);
  EXPECT_EQ(fired, 2);
  EXPECT_EQ(rig.scheduler().cancel_key("key"), CancelResult::not_pending) << "the key is free";
}

TEST(SchedulerCapacity, RunInCallerFailsForPeriodicTimers) {
  SchedulerRig rig({.capacity = 1, .when_full = WhenFull::run_in_caller});
  const TimerHandle first = rig.scheduler().schedule_after(1h, [] {});
  int fired = 0;
  EXPECT_FALSE(rig.scheduler().schedule_every({.period = 1ns}, [&] { ++fired; }));
  EXPECT_EQ(fired, 0);
  EXPECT_EQ(rig.scheduler().stats().rejected, 1u);
}

TEST(SchedulerCapacity, AnExceptionOfAJobInItsCallerGoesToTheErrorHandler) {
  SchedulerRig rig({.error_handler = ignore, .capacity = 1, .when_full = WhenFull::run_in_caller});
  const TimerHandle first = rig.scheduler().schedule_after(1h, [] {});
  rig.scheduler().schedule_after(0s, [] { throw std::runtime_error("broken"); }).release();
  EXPECT_EQ(rig.scheduler().stats().errors, 1u);
}

TEST(SchedulerCapacity, StopLetsACallerThatWaitsForItsTimeGoWithoutRunningTheJob) {
  for (const Drain drain : {Drain::drop, Drain::run_due, Drain::hand_back}) {
    SchedulerRig rig({.capacity = 1, .when_full = WhenFull::run_in_caller});
    int alive = 0;
    int fired = 0;
    const TimerHandle first = rig.scheduler().schedule_after(1h, [] {});
    std::thread caller([&] {
      rig.scheduler()
          .schedule_after(1ms, [&fired, token = LifeToken(alive)] { ++fired; })
          .release();
    });
    rig.clock().await_waiters(2);
    rig.scheduler().stop(drain);
    caller.join();
    EXPECT_EQ(fired, 0);
    EXPECT_EQ(alive, 0);
    EXPECT_EQ(rig.scheduler().stats().rejected, 1u);
  }
}

// A test cannot see from outside whether stop() already waits, so it tries many moments.
TEST(SchedulerCapacity, StopWaitsForAJobThatRunsInItsCaller) {
  for (int yields = 0; yields < 50; ++yields) {
    SchedulerRig rig({.capacity = 1, .when_full = WhenFull::run_in_caller});
    const TimerHandle first = rig.scheduler().schedule_after(1h, [] {});
    Gate began;
    bool ended = false;
    std::thread caller([&] {
      rig.scheduler()
          .schedule_after(0s,
                          [&] {
                            began.open();
                            while (rig.scheduler().is_running()) std::this_thread::yield();
                            for (int i = 0; i < yields; ++i) std::this_thread::yield();
                            ended = true;
                          })
          .release();
    });
    began.wait();
    rig.scheduler().stop();
    EXPECT_TRUE(ended);
    caller.join();
  }
}

TEST(SchedulerCapacity, AJobThatRunsInItsCallerMayStop) {
  SchedulerRig rig({.capacity = 1, .when_full = WhenFull::run_in_caller});
  const TimerHandle first = rig.scheduler().schedule_after(1h, [] {});
  rig.scheduler().schedule_after(0s, [&] { rig.scheduler().stop(); }).release();
  rig.scheduler().stop();
  EXPECT_EQ(rig.scheduler().stats().dropped, 1u);
}

// ---- calls that would wait for themselves -------------------------------------------------------

TEST(SchedulerCapacity, InsideAJobThePoliciesThatWaitActAsFail) {
  for (const WhenFull when_full : kWaitingPolicies) {
    SchedulerRig rig({.capacity = 1, .when_full = when_full});
    int fired = 0;
    const TimerHandle timer = rig.scheduler().schedule_after(1ms, [&] {
      EXPECT_FALSE(rig.scheduler().schedule_after(0s, [&] { ++fired; }));
      EXPECT_FALSE(rig.scheduler().schedule_after(1h, [&] { ++fired; }));
    });
    rig.advance(1ms);
    EXPECT_EQ(fired, 0);
    EXPECT_EQ(rig.scheduler().stats().rejected, 2u);
    EXPECT_EQ(rig.scheduler().stats().completed, 1u);
  }
}

TEST(SchedulerCapacity, InsideAJobThatRunsInItsCallerToo) {
  SchedulerRig rig({.capacity = 1, .when_full = WhenFull::run_in_caller});
  const TimerHandle first = rig.scheduler().schedule_after(1h, [] {});
  int fired = 0;
  rig.scheduler()
      .schedule_after(0s, [&] { rig.scheduler().schedule_after(0s, [&] { ++fired; }).release(); })
      .release();
  EXPECT_EQ(fired, 0);
  EXPECT_EQ(rig.scheduler().stats().rejected, 2u);
}

TEST(SchedulerCapacity, InASimulationThePoliciesThatWaitActAsFail) {
  for (const WhenFull when_full : kWaitingPolicies) {
    Simulation simulation(1, {.scheduler = {.capacity = 1, .when_full = when_full}});
    int fired = 0;
    const TimerHandle first = simulation.scheduler().schedule_after(1ms, [&] { ++fired; });
    EXPECT_FALSE(simulation.scheduler().schedule_after(0s, [&] { ++fired; }));
    EXPECT_FALSE(simulation.scheduler().schedule_after(1h, [&] { ++fired; }));
    simulation.run_for(2h);
    EXPECT_EQ(fired, 1);
    EXPECT_EQ(simulation.scheduler().stats().rejected, 2u);
  }
}

// ---- all at once --------------------------------------------------------------------------------

// Threads schedule, cancel and move timers while time passes, and the scheduler stops in the
// middle. With every policy, each timer must end in exactly one of the counts, and no job may run
// early.
TEST(SchedulerCapacity, EveryTimerEndsOnceUnderEveryPolicy) {
  const std::uint64_t seed = test_seed();
  SCOPED_TRACE(replay_hint(seed));
  for (const WhenFull when_full : {WhenFull::fail, WhenFull::block, WhenFull::run_in_caller}) {
    ManualClock clock;
    std::atomic<int> early = 0;
    Scheduler scheduler({.clock = &clock, .capacity = 5, .when_full = when_full});
    std::atomic<int> at_work = 3;
    std::vector<std::thread> callers;
    for (std::uint64_t i = 0; i < 3; ++i) {
      callers.emplace_back([&, i] {
        Rng rng(seed + i);
        std::array<TimerHandle, 4> timers;
        for (int step = 0; step < 1000 && scheduler.is_running(); ++step) {
          TimerHandle& timer = timers.at(rng.below(4));
          const MonotonicTime due = clock.now() + nanoseconds{rng.below(100'000)};
          if (rng.below(3) == 0) timer.expires_after(200us);  // later than its present deadline
          timer = scheduler.schedule_at(due, [&, due] { early += clock.now() < due ? 1 : 0; });
        }
        for (TimerHandle& timer : timers) timer.release();
        --at_work;
      });
    }
    for (int step = 0; at_work > 0; ++step) {
      clock.advance(20us);
      std::this_thread::yield();
      if (step == 1000) scheduler.stop(Drain::run_due);
    }
    for (std::thread& caller : callers) caller.join();
    scheduler.stop();
    const SchedulerStats stats = scheduler.stats();
    EXPECT_EQ(stats.scheduled, stats.completed + stats.cancelled + stats.dropped + stats.rejected);
    EXPECT_EQ(stats.pending + stats.running, 0u);
    EXPECT_EQ(early, 0);
  }
}

}  // namespace
}  // namespace detent

// The end of a scheduler with each Drain, from every thread. Also an idle scheduler: which events
// wake its driver, which events must not wake it, and how the driver follows the wall clock.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <memory>
#include <optional>
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

constexpr std::array kDrains = {Drain::drop, Drain::run_due, Drain::run_pending, Drain::hand_back};

struct OpensWhenDestroyed {
  void operator()(Gate* gate) const { gate->open(); }
};
using Opener = std::unique_ptr<Gate, OpensWhenDestroyed>;

/// Calls stop(Drain::run_pending) on its own thread. When the constructor returns, the scheduler
/// refuses new timers and has dropped periodic timers.
class PendingStop {
 public:
  explicit PendingStop(Scheduler& scheduler) {
    scheduler.schedule_every({.period = 1h}, [opener = Opener(&closed_)] {}).release();
    thread_ = std::thread([this, &scheduler] {
      scheduler.stop(Drain::run_pending);
      has_returned_ = true;
    });
    closed_.wait();
  }
  ~PendingStop() { thread_.join(); }
  PendingStop(const PendingStop&) = delete;
  PendingStop& operator=(const PendingStop&) = delete;

  bool has_returned() const { return has_returned_; }

 private:
  Gate closed_;
  std::atomic<bool> has_returned_ = false;  // whether stop has returned
  std::thread thread_;
};

// ---- run_pending --------------------------------------------------------------------------------

TEST(SchedulerRunPending, RunsOneShotsEachAtItsTimeAndDropsPeriodicOnes) {
  SchedulerRig rig;
  std::vector<nanoseconds> fired;
  int periodic = 0;
  const auto job = [&] { fired.push_back(rig.clock().now().time_since_epoch()); };
  for (const auto due : {1h, 2h, 3h}) rig.scheduler().schedule_after(due, job).release();
  rig.scheduler().schedule_every({.period = 30min}, [&] { ++periodic; }).release();
  {
    const PendingStop stop(rig.scheduler());
    EXPECT_FALSE(rig.scheduler().is_running());
    EXPECT_FALSE(rig.scheduler().schedule_after(0s, job));
    for (int i = 0; i < 5; ++i) {
      rig.settle();
      EXPECT_FALSE(stop.has_returned());
      rig.clock().advance(30min);
    }
    rig.settle();
    EXPECT_EQ(fired, (std::vector<nanoseconds>{1h, 2h}));
    rig.clock().advance(30min);
  }
  EXPECT_EQ(fired, (std::vector<nanoseconds>{1h, 2h, 3h}));
  EXPECT_EQ(periodic, 0);
  EXPECT_EQ(rig.scheduler().stats().completed, 3u);
  EXPECT_EQ(rig.scheduler().stats().dropped, 3u) << "two periodic timers and one refused timer";
}

TEST(SchedulerRunPending, RefusesTimersThatItsJobsSchedule) {
  ThreadPool pool({.threads = 2});
  for (Executor* const executor :
       {static_cast<Executor*>(nullptr), static_cast<Executor*>(&pool)}) {
    SchedulerRig rig({.executor = executor});
    std::atomic<int> refused = 0;
    rig.scheduler()
        .schedule_after(
            1ms,
            [&] {
              if (!rig.scheduler().schedule_after(0s, [] {})) ++refused;
              if (rig.scheduler().schedule_keyed("a", 0s, [] {}) == KeyedResult::refused) {
                ++refused;
              }
            })
        .release();
    {
      const PendingStop stop(rig.scheduler());
      rig.clock().advance(1ms);
    }
    EXPECT_EQ(refused, 2);
  }
}

TEST(SchedulerRunPending, ReturnsWhenTheLastTimerIsCancelled) {
  SchedulerRig rig;
  TimerHandle timer = rig.scheduler().schedule_after(1h, [] { FAIL() << "it was cancelled"; });
  {
    const PendingStop stop(rig.scheduler());
    rig.settle();
    EXPECT_EQ(timer.cancel(), CancelResult::cancelled);
  }
  EXPECT_EQ(rig.scheduler().stats().cancelled, 1u);
}

TEST(SchedulerRunPending, FollowsTheWallClockToTheEnd) {
  SchedulerRig rig;
  const WallTime start = std::chrono::floor<std::chrono::milliseconds>(rig.clock().wall_now());
  int fired = 0;
  rig.scheduler().schedule_at(start + 24h, [&] { ++fired; }).release();
  {
    const PendingStop stop(rig.scheduler());
    rig.settle();
    rig.clock().step_wall(24h);
    rig.clock().advance(1s);
  }
  EXPECT_EQ(fired, 1);
}

TEST(SchedulerRunPending, ReturnsImmediatelyIfNoTimerIsPending) {
  SchedulerRig rig;
  EXPECT_TRUE(rig.scheduler().stop(Drain::run_pending).empty());
}

// ---- stop from every thread ---------------------------------------------------------------------

// A job and two other threads stop the scheduler while other timers are due, pending and periodic.
// All calls of `stop` must return, and every timer must end once.
void stop_from_everywhere(Drain drain, Executor* executor, std::uint64_t seed) {
  Rng rng(seed);
  std::atomic<int> alive = 0;
  const auto token = [&] {
    ++alive;
    return std::shared_ptr<void>(nullptr, [&](void*) { --alive; });
  };
  std::atomic<int> runs = 0;
  SchedulerRig rig({.executor = executor, .shards = 2});
  rig.scheduler().schedule_after(1ms, [&] { rig.scheduler().stop(drain); }).release();
  for (int i = 0; i < 200; ++i) {
    const nanoseconds delay{rng.below(2'000'000)};
    rig.scheduler().schedule_after(delay, [&, t = token()] { ++runs; }).release();
    rig.scheduler().schedule_every({.period = delay + 1us}, [&, t = token()] { ++runs; }).release();
  }
  std::atomic<int> stopping = 2;
  std::atomic<std::size_t> handed_back = 0;
  const auto stop = [&] {
    handed_back += rig.scheduler().stop(drain).size();
    EXPECT_FALSE(rig.scheduler().is_running());
    --stopping;
  };
  for (std::uint32_t i = rng.below(30); i > 0; --i) rig.clock().advance(50us);
  std::thread one(stop);
  std::thread other(stop);
  while (stopping > 0) {
    rig.clock().advance(100us);
    std::this_thread::yield();
  }
  one.join();
  other.join();
  const int runs_until_now = runs;
  const SchedulerStats stats = rig.scheduler().stats();
  EXPECT_EQ(stats.scheduled, 401u);
  EXPECT_EQ(stats.completed + stats.dropped, 401u);
  EXPECT_GE(stats.dropped, handed_back);
  EXPECT_EQ(stats.pending + stats.running, 0u);
  if (drain == Drain::run_pending) {
    EXPECT_EQ(stats.completed, 201u);
  }
  rig.clock().advance(1h);
  EXPECT_EQ(runs, runs_until_now) << "no job runs after stop";
  EXPECT_EQ(alive, 0);
}

TEST(SchedulerStopFromEverywhere, EveryDrainEndsOnTheDriversThread) {
  const std::uint64_t seed = test_seed();
  SCOPED_TRACE(replay_hint(seed));
  for (std::uint64_t round = 0; round < 10; ++round) {
    for (const Drain drain : kDrains) stop_from_everywhere(drain, nullptr, seed + round);
  }
}

TEST(SchedulerStopFromEverywhere, EveryDrainEndsOnAPool) {
  const std::uint64_t seed = test_seed();
  SCOPED_TRACE(replay_hint(seed));
  ThreadPool pool({.threads = 2, .capacity = 16});
  for (std::uint64_t round = 0; round < 10; ++round) {
    for (const Drain drain : kDrains) stop_from_everywhere(drain, &pool, seed + round);
  }
}

TEST(SchedulerStopFromEverywhere, ItDoesNotRunFromTheMomentAJobStopsIt) {
  SchedulerRig rig;
  EXPECT_TRUE(rig.scheduler().is_running());
  bool inside = true;
  rig.scheduler()
      .schedule_after(0s,
                      [&] {
                        rig.scheduler().stop();
                        inside = rig.scheduler().is_running();
                      })
      .release();
  rig.scheduler().stop(Drain::run_due);
  EXPECT_FALSE(inside && rig.scheduler().stats().runs == 1);
  EXPECT_FALSE(rig.scheduler().is_running());
}

TEST(DefaultScheduler, RunsJobsAndIsTheSameForAll) {
  Gate fired;
  default_scheduler().schedule_after(0s, [&] { fired.open(); }).release();
  fired.wait();
  EXPECT_EQ(&default_scheduler(), &default_scheduler());
  EXPECT_TRUE(default_scheduler().is_running());
}

// ---- steps of the wall clock --------------------------------------------------------------------

WallTime wall_of(SchedulerRig& rig) {
  return std::chrono::floor<std::chrono::milliseconds>(rig.clock().wall_now());
}

TEST(SchedulerWallStep, ForwardIsNoticedWithinTheWallCheck) {
  SchedulerRig rig({.wall_check = 5s});
  int dated = 0;
  int delayed = 0;
  const TimerHandle a = rig.scheduler().schedule_at(wall_of(rig) + 1h, [&] { ++dated; });
  const TimerHandle b = rig.scheduler().schedule_after(1h, [&] { ++delayed; });
  rig.settle();
  rig.clock().step_wall(1h);
  rig.advance(5s - 1ns);
  EXPECT_EQ(dated, 0);
  rig.advance(1ns);
  EXPECT_EQ(dated, 1);
  EXPECT_EQ(delayed, 0);
}

TEST(SchedulerWallStep, BackIsNoticedWithinTheWallCheck) {
  SchedulerRig rig;
  const WallTime date = wall_of(rig) + 10min;
  TimerHandle timer = rig.scheduler().schedule_after(1min, [] {}, {.name = "moved"});
  EXPECT_TRUE(timer.expires_at(date));
  rig.settle();
  rig.clock().step_wall(-3min);
  rig.advance(1s);
  const std::vector<TimerInfo> timers = rig.scheduler().pending_timers();
  ASSERT_EQ(timers.size(), 1u);
  EXPECT_EQ(timers[0].deadline, MonotonicTime{13min});
  EXPECT_EQ(timers[0].date, date);
}

// The driver already sleeps for another timer when the first date is scheduled, or when a timer is
// moved to a date.
TEST(SchedulerWallStep, IsNoticedAlsoForADateThatComesWhileTheDriverSleepsForAnEarlierTimer) {
  for (const bool is_moved : {false, true}) {
    SchedulerRig rig({.shards = 1});
    int dated = 0;
    const TimerHandle earlier = rig.scheduler().schedule_after(1h, [] {});
    TimerHandle timer = rig.scheduler().schedule_after(2h, [&] { ++dated; });
    rig.settle();
    const WallTime date = wall_of(rig) + 3h;
    if (is_moved) {
      EXPECT_TRUE(timer.expires_at(date));
    } else {
      timer = rig.scheduler().schedule_at(date, [&] { ++dated; });
    }
    rig.settle();
    rig.clock().step_wall(3h);
    rig.advance(1s);
    EXPECT_EQ(dated, 1);
  }
}

TEST(SchedulerWallStep, WithoutAWallCheckItIsNoticedWhenTheDriverIsAwakeAnyway) {
  SchedulerRig rig({.wall_check = 0s});
  int dated = 0;
  const TimerHandle a = rig.scheduler().schedule_at(wall_of(rig) + 1h, [&] { ++dated; });
  rig.settle();
  const std::uint64_t wakeups = rig.scheduler().stats().wakeups;
  rig.clock().step_wall(1h);
  rig.advance(10s);
  EXPECT_EQ(dated, 0);
  EXPECT_LE(rig.scheduler().stats().wakeups, wakeups + 1) << "there is no check";
  const TimerHandle b = rig.scheduler().schedule_after(0s, [] {});
  rig.advance(10us);
  EXPECT_EQ(dated, 1);
}

// ---- idle ---------------------------------------------------------------------------------------

TEST(SchedulerIdle, TheDriverSleepsWhileThereIsNoWork) {
  SchedulerRig rig;
  rig.scheduler().schedule_after(1ms, [] {}).release();
  rig.settle();
  rig.advance(1ms);
  const std::uint64_t wakeups = rig.scheduler().stats().wakeups;
  for (int day = 0; day < 365; ++day) rig.advance(24h);
  EXPECT_EQ(rig.scheduler().stats().wakeups, wakeups);
}

TEST(SchedulerIdle, LaterTimersDoNotWakeTheDriverThatSleepsForAnEarlierOne) {
  SchedulerRig rig({.shards = 1});
  const TimerHandle first = rig.scheduler().schedule_after(100us, [] {});
  rig.settle();
  const std::uint64_t wakeups = rig.scheduler().stats().wakeups;
  std::vector<TimerHandle> timers;
  for (int i = 0; i < 1000; ++i) {
    timers.push_back(rig.scheduler().schedule_after(1ms + i * 1ms, [] {}));
    EXPECT_TRUE(timers.back().expires_after(1s + i * 1s));
  }
  timers.clear();
  rig.settle();
  EXPECT_EQ(rig.scheduler().stats().wakeups, wakeups);
}

// Each level covers six bits of the tick. 3.2e12 ticks need seven levels, and each level may wake
// the driver once.
TEST(SchedulerIdle, ATimerAYearAheadWakesTheDriverAtMostEightTimes) {
  Simulation simulation(1);
  int fired = 0;
  const TimerHandle timer = simulation.scheduler().schedule_after(24h * 365, [&] { ++fired; });
  simulation.run_for(24h * 365);
  EXPECT_EQ(fired, 1);
  EXPECT_LE(simulation.scheduler().stats().wakeups, 8u);
}

TEST(SchedulerIdle, ATimerAtMostAnHourAheadWakesTheDriverAtMostFourTimesAndOnceForItself) {
  const std::uint64_t seed = test_seed();
  SCOPED_TRACE(replay_hint(seed));
  Rng rng(seed);
  Simulation simulation(seed);
  for (int round = 0; round < 1000; ++round) {
    const std::uint64_t before = simulation.scheduler().stats().wakeups;
    const TimerHandle timer = simulation.scheduler().schedule_after(
        std::chrono::microseconds{rng.below(3'600'000'000)}, [] {});
    simulation.run_for(1h);
    ASSERT_LE(simulation.scheduler().stats().wakeups - before, 1 + 4 + 1u)
        << "woken by us, at most four times, and to fire";
  }
}

TEST(SchedulerIdle, ADateWakesTheDriverOnceAWallCheck) {
  Simulation simulation(1, {.scheduler = {.wall_check = 10s}});
  const WallTime start =
      std::chrono::floor<std::chrono::milliseconds>(simulation.clock().wall_now());
  TimerHandle timer = simulation.scheduler().schedule_at(start + 24h, [] {});
  simulation.run_for(1h);
  EXPECT_GE(simulation.scheduler().stats().wakeups, 360u);
  EXPECT_LE(simulation.scheduler().stats().wakeups, 360u + 8u);
  timer.cancel();
  simulation.run_for(10s);
  const std::uint64_t wakeups = simulation.scheduler().stats().wakeups;
  simulation.run_for(1h);
  EXPECT_LE(simulation.scheduler().stats().wakeups, wakeups + 1) << "there is no date any more";
}

// ---- no lost wake-up ----------------------------------------------------------------------------

// Threads schedule earlier and earlier timers on their own shards, while the driver falls asleep
// and is woken. Afterwards time moves to each deadline, earliest first, and the timer must have
// run.
TEST(SchedulerIdle, AnEarlierTimerOfAnyThreadWakesTheDriver) {
  constexpr int kThreads = 3;
  constexpr int kTimers = 100;
  for (int round = 0; round < 20; ++round) {
    SchedulerRig rig({.shards = kThreads});
    std::atomic<int> fired = 0;
    std::vector<std::thread> threads;
    for (int i = 0; i < kThreads; ++i) {
      threads.emplace_back([&, i] {
        for (int n = kTimers; n > 0; --n) {
          const nanoseconds due = (n * kThreads + i) * 10us;
          rig.scheduler().schedule_at(MonotonicTime{due}, [&] { ++fired; }).release();
        }
      });
    }
    for (std::thread& thread : threads) thread.join();
    rig.settle();
    rig.advance((kThreads - 1) * 10us);
    for (int expected = 1; expected <= kThreads * kTimers; ++expected) {
      rig.advance(10us);
      ASSERT_EQ(fired, expected);
    }
  }
}

}  // namespace
}  // namespace detent

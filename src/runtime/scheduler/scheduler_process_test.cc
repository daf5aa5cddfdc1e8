// A scheduler and its process: its state at exit, and in a child process of fork().
#include <gtest/gtest.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <vector>

#include "detent/delay_map.h"
#include "detent/executor.h"
#include "detent/idle_timeouts.h"
#include "detent/scheduler.h"
#include "detent/simulation.h"
#include "detent/timer_group.h"
#include "runtime/testing/scheduler_test_rig.h"

namespace detent {
namespace {

using namespace std::chrono_literals;

// ---- exit ---------------------------------------------------------------------------------------

/// Uses the default scheduler in its destructor, when static objects are destroyed.
class UsesItAtExit {
 public:
  UsesItAtExit() = default;
  ~UsesItAtExit() {
    const bool is_refused = !default_scheduler().schedule_after(0s, [] {});
    if (is_refused && !default_scheduler().is_running()) std::fputs("it refuses timers", stderr);
  }
  UsesItAtExit(const UsesItAtExit&) = delete;
  UsesItAtExit& operator=(const UsesItAtExit&) = delete;
};

// The object is constructed before the scheduler, so its destructor runs after the scheduler's end.
TEST(DefaultSchedulerExitDeathTest, AStaticDestructorMayUseItAndIsRefused) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_EXIT(
      {
        static const UsesItAtExit user;
        static const TimerHandle far = default_scheduler().schedule_after(1h, [] {});
        std::exit(EXIT_SUCCESS);
      },
      testing::ExitedWithCode(EXIT_SUCCESS), "it refuses timers");
}

TEST(DefaultSchedulerExitDeathTest, AJobMayExitTheProcess) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_EXIT(
      {
        default_scheduler().schedule_after(0s, [] { std::exit(EXIT_SUCCESS); }).release();
        Gate never;
        never.wait();
      },
      testing::ExitedWithCode(EXIT_SUCCESS), "");
}

// ---- fork ---------------------------------------------------------------------------------------
//
// A death test in the style "fast" calls fork().

TEST(SchedulerForkDeathTest, ToScheduleOrMoveATimerInAChildProcessIsABug) {
  GTEST_FLAG_SET(death_test_style, "fast");
  SchedulerRig rig;
  TimerHandle timer = rig.scheduler().schedule_after(1h, [] {});
  TimerGroup group(rig.scheduler());
  EXPECT_DEATH(rig.scheduler().schedule_after(1s, [] {}).release(), "made before fork");
  EXPECT_DEATH(rig.scheduler().schedule_keyed("key", 1s, [] {}), "made before fork");
  EXPECT_DEATH(group.schedule_after(1s, [] {}).release(), "made before fork");
  EXPECT_DEATH(timer.expires_after(1s), "made before fork");
}

TEST(SchedulerForkDeathTest, InAChildProcessItsEndDoesNotWaitForTheDriver) {
  GTEST_FLAG_SET(death_test_style, "fast");
  auto scheduler = std::make_unique<Scheduler>();
  TimerHandle timer = scheduler->schedule_after(1h, [] {});
  EXPECT_EXIT(
      {
        bool is_dead = !scheduler->is_running() && !timer.is_pending();
        is_dead = is_dead && timer.cancel_and_wait() == CancelResult::not_pending;
        is_dead = is_dead && scheduler->stop(Drain::run_pending).empty();
        scheduler.reset();
        std::_Exit(is_dead ? EXIT_SUCCESS : EXIT_FAILURE);
      },
      testing::ExitedWithCode(EXIT_SUCCESS), "");
  EXPECT_TRUE(scheduler->is_running()) << "here it goes on";
  EXPECT_EQ(timer.cancel(), CancelResult::cancelled);
}

// Another thread of the parent may hold any lock, so the child must not take a lock.
TEST(SchedulerForkDeathTest, InAChildProcessThereAreNoTimers) {
  GTEST_FLAG_SET(death_test_style, "fast");
  SchedulerRig rig;
  Scheduler& scheduler = rig.scheduler();
  scheduler.schedule_keyed("key", 1h, [] {});
  EXPECT_DEATH(scheduler.schedule_keyed(
                   "key", 1s, [] {}, SameKey::replace),
               "made before fork");
  EXPECT_EXIT(
      {
        bool has_none = scheduler.cancel_key("key") == CancelResult::not_pending;
        has_none = has_none && !scheduler.find_key("key") && scheduler.stats().pending == 0;
        has_none = has_none && scheduler.pending_timers().empty();
        has_none = has_none && scheduler.lateness().total.count == 0;
        has_none = has_none && scheduler.forecast(2h, 1) == std::vector<std::uint64_t>{0};
        std::_Exit(has_none ? EXIT_SUCCESS : EXIT_FAILURE);
      },
      testing::ExitedWithCode(EXIT_SUCCESS), "");
  EXPECT_EQ(scheduler.stats().pending, 1u) << "here it goes on";
}

TEST(SchedulerForkDeathTest, InAChildProcessDestructorsDoNotWaitForCallbacksOfTheParent) {
  GTEST_FLAG_SET(death_test_style, "fast");
  Scheduler scheduler;
  Gate begun;
  Gate expired;
  Gate go_on;
  auto idle = std::make_unique<IdleTimeouts>(
      scheduler, IdleTimeoutsOptions{.timeout = 1ms, .on_idle = [&](std::uint64_t) {
                                       begun.open();
                                       go_on.wait();
                                     }});
  IdleTimeouts::Connection connection = idle->add(1);
  begun.wait();
  EXPECT_EXIT(
      {
        idle.reset();
        std::_Exit(EXIT_SUCCESS);
      },
      testing::ExitedWithCode(EXIT_SUCCESS), "");
  Scheduler other;
  auto map = std::make_unique<DelayMap<int, int>>(DelayMapOptions<int, int>{.on_expire =
                                                                                [&](int, int) {
                                                                                  expired.open();
                                                                                  go_on.wait();
                                                                                },
                                                                            .scheduler = &other});
  map->insert_or_assign(1, 1, 1ms);
  expired.wait();
  EXPECT_EXIT(
      {
        map.reset();
        std::_Exit(EXIT_SUCCESS);
      },
      testing::ExitedWithCode(EXIT_SUCCESS), "");
  go_on.open();
  connection.remove();
}

TEST(SchedulerForkDeathTest, ASimulationContinuesInAChildProcess) {
  GTEST_FLAG_SET(death_test_style, "fast");
  Simulation simulation(1);
  int runs = 0;
  EXPECT_EXIT(
      {
        simulation.scheduler().schedule_after(1h, [&] { ++runs; }).release();
        simulation.run_for(1h);
        std::_Exit(runs == 1 ? EXIT_SUCCESS : EXIT_FAILURE);
      },
      testing::ExitedWithCode(EXIT_SUCCESS), "");
}

TEST(ThreadPoolForkDeathTest, InAChildProcessItRunsNoJobsAndEndsImmediately) {
  GTEST_FLAG_SET(death_test_style, "fast");
  auto pool = std::make_unique<ThreadPool>(ThreadPoolOptions{.threads = 2});
  EXPECT_DEATH(pool->execute([] {}), "made before fork");
  EXPECT_EXIT(
      {
        pool.reset();
        std::_Exit(EXIT_SUCCESS);
      },
      testing::ExitedWithCode(EXIT_SUCCESS), "");
}

}  // namespace
}  // namespace detent

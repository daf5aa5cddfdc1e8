// The explorer itself: it must replay runs, find faults, and find none in correct code.
#include "explorer.h"

#include <gtest/gtest.h>

#include <memory>
#include <set>
#include <string>

#include "base/mutex.h"
#include "base/thread.h"
#include "tests/explore/mini_scheduler_rig.h"
#include "tests/explore/schedules_rig.h"

namespace detent::explore {
namespace {

using namespace std::chrono_literals;

constexpr std::uint64_t kEnough = 2000;  // a planted fault must be found within so many schedules

/// Adds one, with a hook point between the read and the write.
void add_one(int& sum) {
  const int before = sum;
  explore_point();
  sum = before + 1;
}

void adds_under_a_lock(Rng&, Findings& findings) {
  Mutex mutex;
  int sum = 0;
  const auto add = [&] {
    MutexLock lock(mutex);
    add_one(sum);
  };
  {
    Thread first(add);
    Thread second(add);
  }
  findings.expect(sum == 2, "both additions count");
}

void adds_without_a_lock(Rng&, Findings& findings) {
  int sum = 0;
  {
    Thread first([&] { add_one(sum); });
    Thread second([&] { add_one(sum); });
  }
  findings.expect(sum == 2, "both additions count");
}

/// A waiter that does not check a condition before it waits. It misses an earlier notification.
void waits_without_looking(Rng&, Findings&) {
  Mutex mutex;
  CondVar changed;
  Thread waiter([&] {
    MutexLock lock(mutex);
    changed.wait(mutex);
  });
  changed.notify_one();
}

void never_ends(Rng&, Findings&) {
  bool done = false;
  Thread waiter([&] {
    while (!done) explore_point();
  });
  await_idle();  // never returns, because the waiter never waits
  done = true;
}

/// One timer is scheduled, and in half of the runs cancelled, while time passes.
Scenario mini_scheduler(Fault fault) {
  return [fault](Rng& rng, Findings& findings) {
    ManualClock clock;
    MiniScheduler scheduler(clock, fault);
    bool cancelled = false;
    const MonotonicTime deadline{rng.below(2) * 1ms};
    {
      const bool cancels = rng.below(2) == 0;
      Thread user([&] {
        scheduler.schedule(deadline);
        cancelled = cancels && scheduler.cancel();
      });
      clock.advance(1ms);
      scheduler.fired();
    }
    await_idle();
    const int fired = scheduler.fired();
    findings.expect(!(cancelled && fired > 0), "a cancelled timer does not fire");
    findings.expect(cancelled || fired == 1, "a timer that is due has fired when all is idle");
  };
}

TEST(Explorer, ReplaysARunFromItsSeed) {
  const std::uint64_t seed = test_seed();
  SCOPED_TRACE(replay_hint(seed));
  Explorer explorer;
  const auto run = [&](std::uint64_t plan_seed) {
    return explorer
        .run({.seed = plan_seed, .length = 100},
             [] {
               Rng rng(7);
               Findings findings;
               mini_scheduler(Fault::none)(rng, findings);
             })
        .trace;
  };
  std::set<std::size_t> lengths;
  for (std::uint64_t i = 0; i < 100; ++i) {
    const std::vector<Step> once = run(seed + i);
    EXPECT_EQ(once, run(seed + i));
    lengths.insert(once.size());
  }
  EXPECT_GT(lengths.size(), 1u) << "every seed makes the same run";
}

TEST(Explorer, LetsOneThreadAtATimeHoldAMutex) {
  const auto failure = explore(test_seed(), kEnough, adds_under_a_lock);
  EXPECT_FALSE(failure) << failure->what;
}

TEST(Explorer, FindsAnUpdateThatIsLostWithoutALock) {
  const auto failure = explore(test_seed(), kEnough, adds_without_a_lock);
  ASSERT_TRUE(failure);
  EXPECT_EQ(failure->ending, Ending::completed);
}

TEST(Explorer, FindsAWaitThatMissesItsNotification) {
  const auto failure = explore(test_seed(), kEnough, waits_without_looking);
  ASSERT_TRUE(failure);
  EXPECT_EQ(failure->ending, Ending::deadlock);
}

TEST(Explorer, EndsARunThatDoesNotEnd) {
  const auto failure = explore(test_seed(), 1, never_ends);
  ASSERT_TRUE(failure);
  EXPECT_EQ(failure->ending, Ending::endless);
}

TEST(Explorer, WorksAfterADeadlock) {
  Explorer explorer;
  const auto runs = std::make_shared<int>(0);
  for (int i = 0; i < 3; ++i) {
    const Outcome& stuck = explorer.run({}, [] {
      Mutex mutex;
      CondVar changed;
      MutexLock lock(mutex);
      for (;;) changed.wait(mutex);
    });
    EXPECT_EQ(stuck.ending, Ending::deadlock);
    EXPECT_EQ(explorer.run({}, [runs] { ++*runs; }).ending, Ending::completed);
  }
  EXPECT_EQ(*runs, 3);
}

TEST(Explorer, FindsNothingInACorrectMiniScheduler) {
  const auto failure = explore(test_seed(), 5 * kEnough, mini_scheduler(Fault::none));
  EXPECT_FALSE(failure) << failure->what;
}

/// Explores a mini scheduler with `fault`. The fault must be found, and found again with its seed
/// alone.
Failure find(Fault fault) {
  const auto failure = explore(test_seed(), kEnough, mini_scheduler(fault));
  if (!failure) {
    ADD_FAILURE() << "not found in " << kEnough << " schedules";
    return {};
  }
  const auto again = explore(failure->seed, 1, mini_scheduler(fault));
  EXPECT_TRUE(again && again->schedule == 1) << "not found again by " << failure->what;
  return *failure;
}

TEST(Explorer, FindsAWakeUpThatIsLost) {
  const Failure failure = find(Fault::publishes_late);
  EXPECT_NE(failure.what.find("a timer that is due"), std::string::npos) << failure.what;
}

TEST(Explorer, FindsACancelThatRacesAFire) {
  const Failure failure = find(Fault::cancels_in_two_steps);
  EXPECT_NE(failure.what.find("a cancelled timer"), std::string::npos) << failure.what;
}

TEST(Explorer, FindsLocksTakenInBothOrders) {
  const Failure failure = find(Fault::locks_both_ways);
  EXPECT_EQ(failure.ending, Ending::deadlock) << failure.what;
}

}  // namespace
}  // namespace detent::explore

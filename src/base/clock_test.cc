#include "detent/clock.h"

#include <gtest/gtest.h>

#include <atomic>
#include <thread>
#include <vector>

namespace detent {
namespace {

using namespace std::chrono_literals;

constexpr MonotonicTime at(std::chrono::nanoseconds since_start) {
  return MonotonicTime{since_start};
}

TEST(ManualClock, StandsStillUntilAdvanced) {
  ManualClock clock;
  EXPECT_EQ(clock.now(), at(0ns));
  EXPECT_EQ(clock.wall_now(), std::chrono::sys_days{std::chrono::year{2020} / 1 / 1});
  clock.advance(5s);
  EXPECT_EQ(clock.now(), at(5s));
  EXPECT_EQ(clock.wall_now(), std::chrono::sys_days{std::chrono::year{2020} / 1 / 1} + 5s);
}

TEST(ManualClock, StepsWallTimeAlone) {
  ManualClock clock(WallInstant{1h});
  clock.step_wall(-30min);
  EXPECT_EQ(clock.wall_now(), WallInstant{30min});
  EXPECT_EQ(clock.now(), at(0ns));
}

TEST(ManualClock, WaitReturnsAtOnceWhenTheTimeHasCome) {
  ManualClock clock;
  clock.advance(1s);
  Doorbell bell;
  EXPECT_FALSE(clock.wait(bell, at(1s)));
  EXPECT_FALSE(clock.wait(bell, at(0s)));
}

TEST(ManualClock, WaitTakesARingThatCameBefore) {
  ManualClock clock;
  Doorbell bell;
  bell.ring();
  bell.ring();
  EXPECT_TRUE(clock.wait(bell, std::nullopt));
  EXPECT_FALSE(clock.wait(bell, at(0s))) << "both rings were one";
}

TEST(ManualClock, AdvanceWakesASleeperExactlyAtItsTime) {
  ManualClock clock;
  Doorbell bell;
  std::atomic<bool> woke = false;
  std::thread sleeper([&] {
    EXPECT_FALSE(clock.wait(bell, at(10s)));
    EXPECT_EQ(clock.now(), at(10s));
    woke = true;
  });
  clock.await_waiters(1);
  clock.advance(10s - 1ns);
  clock.await_waiters(1);
  EXPECT_FALSE(woke);
  clock.advance(1ns);
  sleeper.join();
  EXPECT_TRUE(woke);
}

TEST(ManualClock, RingWakesASleeperThatHasNoTime) {
  ManualClock clock;
  Doorbell bell;
  std::thread sleeper([&] { EXPECT_TRUE(clock.wait(bell, std::nullopt)); });
  clock.await_waiters(1);
  bell.ring();
  sleeper.join();
}

// After each ring, await_waiters must not count the thread until it has handled the ring.
TEST(ManualClock, AwaitWaitersWaitsForTheEffectsOfARing) {
  ManualClock clock;
  Doorbell bell;
  std::atomic<int> answered = 0;
  std::atomic<bool> stop = false;
  std::thread sleeper([&] {
    while (!stop) {
      if (clock.wait(bell, std::nullopt)) ++answered;
    }
  });
  for (int ring = 1; ring <= 1000; ++ring) {
    bell.ring();
    clock.await_waiters(1);
    ASSERT_EQ(answered, ring);
  }
  stop = true;
  bell.ring();
  sleeper.join();
}

// A thread is not idle while it waits for another thread to do work for it.
TEST(ManualClock, AwaitWaitersDoesNotCountThreadsThatWaitForWork) {
  ManualClock clock;
  Doorbell bell;
  Doorbell asked;
  Doorbell done(Doorbell::Ringer::work);
  SystemClock of_worker;
  std::atomic<int> answered = 0;
  std::atomic<bool> stop = false;
  std::thread worker([&] {
    while (of_worker.wait(asked, std::nullopt)) {
      done.ring();
      if (stop) return;
    }
  });
  std::thread sleeper([&] {
    while (clock.wait(bell, std::nullopt) && !stop) {
      asked.ring();
      if (clock.wait(done, std::nullopt)) ++answered;
    }
  });
  for (int ring = 1; ring <= 1000; ++ring) {
    bell.ring();
    clock.await_waiters(1);
    EXPECT_EQ(answered, ring);
    if (testing::Test::HasFailure()) break;
  }
  stop = true;
  bell.ring();
  sleeper.join();
  asked.ring();
  worker.join();
}

TEST(ManualClock, WakesEachOfSeveralSleepersAtItsOwnTime) {
  ManualClock clock;
  std::vector<Doorbell> bells(3);
  std::atomic<int> awake = 0;
  std::vector<std::thread> sleepers;
  for (int i = 0; i < 3; ++i) {
    sleepers.emplace_back([&, i] {
      EXPECT_FALSE(clock.wait(bells[static_cast<std::size_t>(i)], at((i + 1) * 1s)));
      ++awake;
    });
  }
  for (int i = 0; i < 3; ++i) {
    clock.await_waiters(3 - i);
    clock.advance(1s);
    clock.await_waiters(2 - i);
    sleepers[static_cast<std::size_t>(i)].join();
    EXPECT_EQ(awake, i + 1);
  }
}

TEST(ManualClock, StopsAtTheEndsOfTime) {
  ManualClock clock;
  clock.advance(1h);
  clock.advance(std::chrono::nanoseconds::max());
  EXPECT_EQ(clock.now(), MonotonicTime::max());
  EXPECT_EQ(clock.wall_now(), WallInstant::max());
  clock.step_wall(std::chrono::nanoseconds::min());
  clock.step_wall(std::chrono::nanoseconds::min());
  EXPECT_EQ(clock.wall_now(), WallInstant::min());
}

TEST(SystemClock, NeverStepsBack) {
  const SystemClock clock;
  MonotonicTime last = clock.now();
  for (int i = 0; i < 1000; ++i) {
    const MonotonicTime now = clock.now();
    ASSERT_GE(now, last);
    last = now;
  }
}

TEST(SystemClock, WaitEndsAtItsTimeAndNotBefore) {
  SystemClock clock;
  Doorbell bell;
  const MonotonicTime until = clock.now() + 200us;
  EXPECT_FALSE(clock.wait(bell, until));
  EXPECT_GE(clock.now(), until);
}

TEST(SystemClock, WaitTakesARing) {
  SystemClock clock;
  Doorbell bell;
  bell.ring();
  EXPECT_TRUE(clock.wait(bell, std::nullopt));
  std::thread ringer([&] { bell.ring(); });
  EXPECT_TRUE(clock.wait(bell, clock.now() + 1h));
  ringer.join();
}

}  // namespace
}  // namespace detent

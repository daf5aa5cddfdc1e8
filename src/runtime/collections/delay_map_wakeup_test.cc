// DelayMap with a scheduler that wakes it: when it calls on_expire, how many wake-ups it needs, and
// what happens when the map or the scheduler ends.
#include <gtest/gtest.h>

#include <chrono>
#include <memory>
#include <thread>
#include <utility>
#include <vector>

#include "detent/delay_map.h"
#include "detent/scheduler.h"
#include "runtime/testing/delay_map_test_rig.h"
#include "runtime/testing/scheduler_test_rig.h"

namespace detent {
namespace {

using namespace std::chrono_literals;

TEST(DelayMapWakeup, ReportsEntriesOnTimeWithOneTimerOfTheScheduler) {
  SchedulerRig rig;
  Expired expired;
  DelayMap<int, int> map({.on_expire = write_to(expired), .scheduler = &rig.scheduler()});
  for (int i = 1; i <= 1000; ++i) map.insert_or_assign(i, i, std::chrono::milliseconds{10 * i});
  EXPECT_EQ(rig.scheduler().stats().pending, 1u);
  for (int i = 1; i <= 1000; ++i) {
    rig.advance(10ms - 1ns);
    ASSERT_EQ(expired.size(), static_cast<std::size_t>(i - 1));
    rig.advance(1ns);
    ASSERT_EQ(expired.size(), static_cast<std::size_t>(i));
  }
  EXPECT_EQ(rig.scheduler().stats().pending, 0u) << "no deadlines, no wake-ups";
}

TEST(DelayMapWakeup, IsWokenForAnEntryThatIsEarlierThanAllOthers) {
  SchedulerRig rig;
  Expired expired;
  DelayMap<int, int> map({.on_expire = write_to(expired), .scheduler = &rig.scheduler()});
  map.insert_or_assign(1, 1, 1h);
  map.insert_or_assign(2, 2, 1s);
  rig.settle();
  map.insert_or_assign(3, 3, 1ms);
  EXPECT_EQ(rig.scheduler().stats().pending, 1u);
  rig.advance(1ms);
  EXPECT_EQ(expired, (Expired{{3, 3}}));
  map.touch(1, 10ms);
  rig.advance(10ms);
  EXPECT_EQ(expired, (Expired{{3, 3}, {1, 1}}));
}

TEST(DelayMapWakeup, WakesOnceForEntriesWithinOneResolution) {
  SchedulerRig rig;
  Expired expired;
  DelayMap<int, int> map(
      {.on_expire = write_to(expired), .resolution = 1s, .scheduler = &rig.scheduler()});
  for (int i = 1; i <= 999; ++i) map.insert_or_assign(i, i, std::chrono::milliseconds{i});
  rig.settle();
  rig.advance(999ms);
  EXPECT_TRUE(expired.empty());
  EXPECT_TRUE(map.empty()) << "exact, whatever the resolution";
  rig.advance(1ms);
  EXPECT_EQ(expired.size(), 999u);
  EXPECT_LE(rig.scheduler().stats().runs, 3u);
}

TEST(DelayMapWakeup, ExpiresManyEntriesInSeveralWakeupsOfBoundedWork) {
  SchedulerRig rig;
  std::size_t expired = 0;
  DelayMap<int, int> map(
      {.on_expire = [&](int, int) { ++expired; }, .scheduler = &rig.scheduler()});
  for (int i = 0; i < 10'000; ++i) map.insert_or_assign(i, i, 1s);
  rig.settle();
  rig.advance(1s);
  EXPECT_EQ(expired, 10'000u);
  EXPECT_GE(rig.scheduler().stats().runs, 10u);
}

TEST(DelayMapWakeup, SetsNewDeadlinesInsideOnExpireOfTheScheduler) {
  SchedulerRig rig;
  int rounds = 0;
  DelayMap<int, int>* self = nullptr;
  DelayMap<int, int> map({.on_expire =
                              [&](int key, int value) {
                                ++rounds;
                                self->insert_or_assign(key, value, 1s);
                                self->touch(2, 1h);
                              },
                          .scheduler = &rig.scheduler()});
  self = &map;
  map.insert_or_assign(1, 1, 1s);
  map.insert_or_assign(2, 2, 1500ms);
  rig.settle();
  for (int i = 1; i <= 5; ++i) {
    rig.advance(1s);
    EXPECT_EQ(rounds, i);
  }
  EXPECT_EQ(map.size(), 2u);
}

TEST(DelayMapWakeup, ReportsEntriesThatACallFoundExpiredDuringOnExpire) {
  SchedulerRig rig;
  Expired expired;
  Gate entered;
  Gate go_on;
  DelayMap<int, int> map({.on_expire =
                              [&](int key, int value) {
                                expired.emplace_back(key, value);
                                entered.open();
                                go_on.wait();
                              },
                          .scheduler = &rig.scheduler()});
  map.insert_or_assign(1, 1, 1s);
  map.insert_or_assign(2, 2, 2s);
  rig.clock().advance(1s);
  entered.wait();
  rig.clock().advance(1s);
  EXPECT_TRUE(map.empty());
  go_on.open();
  rig.settle();
  EXPECT_EQ(expired, (Expired{{1, 1}, {2, 2}}));
}

TEST(DelayMapWakeup, WorksWithoutWakeUpsAfterItsSchedulerHasStopped) {
  SchedulerRig rig;
  Expired expired;
  DelayMap<int, int> map({.on_expire = write_to(expired), .scheduler = &rig.scheduler()});
  map.insert_or_assign(1, 1, 1s);
  rig.scheduler().stop();
  map.insert_or_assign(2, 2, 500ms);
  DelayMap<int, int> late({.on_expire = write_to(expired), .scheduler = &rig.scheduler()});
  late.insert_or_assign(3, 3, 1s);
  rig.clock().advance(1s);
  EXPECT_FALSE(map.contains(1));
  EXPECT_TRUE(map.empty() && late.empty());
  EXPECT_TRUE(expired.empty());
  EXPECT_EQ(map.expire() + late.expire(), 3u);
  EXPECT_EQ(expired.size(), 3u);
}

TEST(DelayMapWakeup, IsNotUsedByAJobThatItsSchedulerHandedBack) {
  SchedulerRig rig;
  Expired expired;
  std::vector<PendingJob> jobs;
  {
    DelayMap<int, int> map({.on_expire = write_to(expired), .scheduler = &rig.scheduler()});
    map.insert_or_assign(1, 1, 1s);
    jobs = rig.scheduler().stop(Drain::hand_back);
    rig.clock().advance(1s);
    ASSERT_EQ(jobs.size(), 1u);
  }
  jobs.front().job();
  EXPECT_TRUE(expired.empty());
}

TEST(DelayMapWakeup, WaitsForAnOnExpireThatRunsBeforeItIsGone) {
  SchedulerRig rig;
  Gate entered;
  Gate go_on;
  bool done = false;  // not atomic: the destructor orders the accesses
  auto map = std::make_unique<DelayMap<int, int>>(
      DelayMapOptions<int, int>{.on_expire =
                                    [&](int, int) {
                                      entered.open();
                                      go_on.wait();
                                      done = true;
                                    },
                                .scheduler = &rig.scheduler()});
  map->insert_or_assign(1, 1, 1s);
  rig.clock().advance(1s);
  entered.wait();
  map->insert_or_assign(2, 2, 1s);
  std::thread destroyer([&] {
    map.reset();
    EXPECT_TRUE(done);
  });
  for (int i = 0; i < 100; ++i) std::this_thread::yield();
  go_on.open();
  destroyer.join();
  rig.settle();
  EXPECT_EQ(rig.scheduler().stats().pending, 0u);
}

TEST(DelayMapWakeupDeathTest, MustNotBeDestroyedInsideItsOnExpire) {
  const auto destroy_inside = [](bool with_scheduler) {
    SchedulerRig rig;
    std::unique_ptr<DelayMap<int, int>> map;
    map = std::make_unique<DelayMap<int, int>>(
        DelayMapOptions<int, int>{.on_expire = [&](int, int) { map.reset(); },
                                  .clock = &rig.clock(),
                                  .scheduler = with_scheduler ? &rig.scheduler() : nullptr});
    map->insert_or_assign(1, 1, 1s);
    rig.advance(1s);
    if (!with_scheduler) map->expire();
  };
  testing::FLAGS_gtest_death_test_style = "threadsafe";
  EXPECT_DEATH(destroy_inside(true), "running_on_");
  EXPECT_DEATH(destroy_inside(false), "handing_out_ == 0");
}

}  // namespace
}  // namespace detent

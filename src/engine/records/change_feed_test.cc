#include "engine/records/change_feed.h"

#include <gtest/gtest.h>

#include <thread>

namespace detent {
namespace {

using namespace std::chrono_literals;

TaskChange change(std::uint64_t id) { return {.id = TaskId{id}, .queue = "q"}; }

/// Whether the bell was rung since the last wait for it.
bool was_rung(ChangeFeed& feed) {
  ManualClock clock;
  return clock.wait(feed.bell(), clock.now());
}

TEST(ChangeFeed, GivesOnlyPublishedChanges) {
  ChangeFeed feed;
  feed.watch();
  feed.note(change(1));
  EXPECT_TRUE(feed.take().changes.empty());
  feed.publish();
  feed.note(change(2));
  feed.drop();
  feed.note(change(3));
  feed.publish();
  const ChangeFeed::Taken taken = feed.take();
  EXPECT_EQ(taken.changes, (std::vector{change(1), change(3)}));
  EXPECT_EQ(taken.missed, 0u);
  EXPECT_TRUE(feed.take().changes.empty());
}

TEST(ChangeFeed, RingsOnceUntilTheChangesAreTaken) {
  ChangeFeed feed;
  feed.watch();
  feed.publish();
  EXPECT_FALSE(was_rung(feed));
  feed.note(change(1));
  feed.publish();
  EXPECT_TRUE(was_rung(feed));
  feed.note(change(2));
  feed.publish();
  EXPECT_FALSE(was_rung(feed));
  feed.take();
  feed.note(change(3));
  feed.publish();
  EXPECT_TRUE(was_rung(feed));
}

TEST(ChangeFeed, CountsTheChangesThatHaveNoRoom) {
  ChangeFeed feed;
  feed.watch();
  const std::uint64_t most = ChangeFeed::kMaxChanges;
  for (std::uint64_t i = 1; i <= most + 3; ++i) feed.note(change(i));  // of one turn
  feed.publish();
  feed.note(change(0));  // of a later one
  feed.publish();
  ChangeFeed::Taken taken = feed.take();
  ASSERT_EQ(taken.changes.size(), most);
  EXPECT_EQ(taken.changes.back(), change(most));
  EXPECT_EQ(taken.missed, 4u);

  for (std::uint64_t i = 1; i < most; ++i) {
    feed.note(change(i));
    feed.publish();
  }
  feed.note(change(most));
  feed.note(change(0));  // the part of a turn for which there is no room
  feed.publish();
  taken = feed.take();
  EXPECT_EQ(taken.changes.size(), most);
  EXPECT_EQ(taken.changes.back(), change(most));
  EXPECT_EQ(taken.missed, 1u);
}

TEST(ChangeFeed, DropsChangesWithoutAWatcher) {
  ChangeFeed feed;
  EXPECT_FALSE(feed.is_watched());
  feed.watch();
  EXPECT_TRUE(feed.is_watched());
  feed.note(change(1));
  feed.publish();
  feed.note(change(2));
  feed.unwatch();
  EXPECT_FALSE(feed.is_watched());
  feed.publish();
  feed.watch();
  EXPECT_TRUE(feed.take().changes.empty());
}

TEST(ChangeFeed, PassesChangesBetweenThreads) {
  ChangeFeed feed;
  feed.watch();
  constexpr std::uint64_t kCount = 20'000;
  std::thread engine([&feed] {
    for (std::uint64_t i = 1; i <= kCount; ++i) {
      feed.note(change(i));
      if (i % 7 == 0 || i == kCount) feed.publish();
    }
  });
  SystemClock clock;
  std::uint64_t told = 0;
  std::uint64_t last = 0;
  while (told < kCount) {
    clock.wait(feed.bell(), std::nullopt);
    const ChangeFeed::Taken taken = feed.take();
    for (const TaskChange& each : taken.changes) {
      EXPECT_GT(each.id.value, last);
      last = each.id.value;
    }
    told += taken.changes.size() + taken.missed;
  }
  engine.join();
  EXPECT_EQ(told, kCount);
}

}  // namespace
}  // namespace detent

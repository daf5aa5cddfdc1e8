#include "engine/records/staging.h"

#include <gtest/gtest.h>

namespace detent {
namespace {

StoredTask stored(std::uint64_t id, std::int64_t at_ms) {
  const WallTime at{std::chrono::milliseconds{at_ms}};
  StoredTask task{.place = {.at = at, .id = TaskId{id}}, .task = {}};
  task.task.id = TaskId{id};
  task.task.due_at = at;
  return task;
}

TEST(Staging, SeveralChangesOfATaskAreOneWriteFromItsFirstPlaceToItsLast) {
  Staging staging;
  staging.put(stored(1, 10).place, stored(1, 20));
  staging.put(stored(1, 20).place, stored(1, 30));
  const WriteBatch batch = staging.take();
  ASSERT_EQ(batch.puts.size(), 1u);
  EXPECT_EQ(batch.puts[0].from, stored(1, 10).place);
  EXPECT_EQ(batch.puts[0].to.place, stored(1, 30).place);
  EXPECT_TRUE(batch.erases.empty());
}

TEST(Staging, ATaskMadeAndRemovedInOneTurnIsNotWritten) {
  Staging staging;
  staging.put(std::nullopt, stored(1, 10));
  staging.erase(stored(1, 10).place);
  EXPECT_TRUE(staging.take().empty());
}

TEST(Staging, ATaskMovedAndThenRemovedIsErasedFromWhereTheStoreHasIt) {
  Staging staging;
  staging.put(stored(1, 10).place, stored(1, 20));
  staging.erase(stored(1, 20).place);
  const WriteBatch batch = staging.take();
  EXPECT_TRUE(batch.puts.empty());
  ASSERT_EQ(batch.erases.size(), 1u);
  EXPECT_EQ(batch.erases[0], stored(1, 10).place);
}

TEST(Staging, FindTellsUntouchedFromRemoved) {
  Staging staging;
  EXPECT_EQ(staging.find(TaskId{1}), nullptr);
  staging.erase(stored(1, 10).place);
  ASSERT_NE(staging.find(TaskId{1}), nullptr);
  EXPECT_FALSE(staging.find(TaskId{1})->to);
}

TEST(Staging, TakeLeavesItEmptyAndKeepsTheOrderOfFirstTouch) {
  Staging staging;
  staging.put(std::nullopt, stored(2, 10));
  staging.put(std::nullopt, stored(1, 10));
  staging.put(stored(2, 10).place, stored(2, 20));
  const WriteBatch batch = staging.take();
  ASSERT_EQ(batch.puts.size(), 2u);
  EXPECT_EQ(batch.puts[0].to.place.id, TaskId{2});
  EXPECT_EQ(batch.puts[1].to.place.id, TaskId{1});
  EXPECT_TRUE(staging.empty());
  EXPECT_EQ(staging.find(TaskId{1}), nullptr);
}

TEST(Staging, TellsTheTasksOfAQueueThatWereNotRemoved) {
  Staging staging;
  for (std::uint64_t id = 1; id <= 3; ++id) {
    StoredTask task = stored(id, 10);
    task.task.queue = id == 2 ? "other" : "q";
    staging.put(std::nullopt, task);
  }
  staging.erase(stored(3, 10).place);
  EXPECT_EQ(staging.tasks_of("q"), std::vector{TaskId{1}});
}

TEST(StagingDeathTest, ATaskIsNeverStagedFromTwoPlaces) {
  Staging staging;
  staging.put(stored(1, 10).place, stored(1, 20));
  EXPECT_DEATH(staging.put(stored(1, 10).place, stored(1, 30)), "check failed");
  EXPECT_DEATH(staging.put(std::nullopt, stored(1, 30)), "check failed");
  EXPECT_DEATH(staging.erase(stored(1, 10).place), "check failed");
  staging.erase(stored(1, 20).place);
  EXPECT_DEATH(staging.erase(stored(1, 20).place), "check failed");
  staging.put(std::nullopt, stored(1, 30));
}

}  // namespace
}  // namespace detent

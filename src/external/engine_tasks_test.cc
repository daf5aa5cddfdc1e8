#include "external/engine_tasks.h"

#include <gtest/gtest.h>

#include <optional>
#include <string>

#include "engine/testing/engine_fixture.h"

namespace detent {
namespace {

class EngineTasksTest : public EngineFixture {
 protected:
  void schedule_many(int count, bool with_key) {
    for (int i = 0; i < count; ++i) {
      ScheduleRequest made = request("q", 48h);
      if (with_key) made.key = "k" + std::to_string(i);
      ASSERT_TRUE(engine_->schedule(made));
    }
    settle();
  }

  int commands_ = 0;
  bool is_refusing_ = false;
  EngineTasks tasks_{[this](EngineThread::Command command) {
    if (is_refusing_) return false;
    ++commands_;
    command(*engine_);
    settle();
    return true;
  }};
  WallTime day_ = wall_now() + 24h;
};

TEST_F(EngineTasksTest, FarTasksAreThoseWithoutAKeyDueAfterAnInstant) {
  schedule_many(3, true);
  const TaskId far = schedule("q", 48h);
  schedule("q", 23h);
  const std::vector<Task> found = tasks_.far_tasks(day_, 9).value();
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(found[0], engine_->get(far).value().task);
  EXPECT_TRUE(tasks_.far_tasks(day_ + 24h, 9).value().empty());
}

TEST_F(EngineTasksTest, ManyTasksWithKeysAreReadInPartsSoThatTheEngineStaysFree) {
  schedule_many(static_cast<int>(EngineTasks::kMostLookedAt), true);
  schedule_many(5, false);
  EXPECT_EQ(tasks_.far_tasks(day_, 3).value().size(), 0u);
  EXPECT_EQ(tasks_.far_tasks(day_, 3).value().size(), 3u);
  EXPECT_EQ(tasks_.far_tasks(day_, 3).value().size(), 2u) << "it continues after the last task";
  EXPECT_EQ(tasks_.far_tasks(day_, 3).value().size(), 0u) << "it starts from the beginning";
}

TEST_F(EngineTasksTest, ChangesAreDurable) {
  schedule("q", 48h);
  const std::vector<Task> far = tasks_.far_tasks(day_, 9).value();
  ASSERT_TRUE(tasks_.mark(far));
  crash_and_open();
  EXPECT_TRUE(tasks_.is_here_or_marked(far[0].id).value());
  EXPECT_EQ(tasks_.marked(9).value(), std::vector{far[0].id});
  const ExternalStamp first{.generation = 1, .tasks = 1, .complete_at = day_};
  EXPECT_EQ(tasks_.hand_over(far, first).value(), 1u);
  crash_and_open();
  EXPECT_FALSE(tasks_.is_here_or_marked(far[0].id).value());
  EXPECT_EQ(tasks_.stamp().value(), first);
  EXPECT_EQ(tasks_.put_back(far).value(), 1u);
  crash_and_open();
  EXPECT_EQ(tasks_.marked(9).value(), std::vector{far[0].id});
  const std::vector<TaskId> ids{far[0].id};
  const ExternalStamp second{.generation = 2, .tasks = 0, .complete_at = day_ + 1h};
  ASSERT_TRUE(tasks_.unmark(ids, second));
  crash_and_open();
  EXPECT_EQ(tasks_.stamp().value(), second);
  ASSERT_TRUE(tasks_.unmark(ids, std::nullopt));
  EXPECT_EQ(tasks_.stamp().value(), second);
  EXPECT_TRUE(tasks_.marked(9).value().empty());
  EXPECT_EQ(engine_->get(far[0].id).value().task, far[0]);
}

TEST_F(EngineTasksTest, ACommandThatTheEngineRefusesIsAnError) {
  schedule("q", 48h);
  const std::vector<Task> far = tasks_.far_tasks(day_, 9).value();
  is_refusing_ = true;
  EXPECT_EQ(tasks_.mark(far).error().code, ErrorCode::unavailable);
  EXPECT_EQ(tasks_.hand_over(far, {}).error().code, ErrorCode::unavailable);
  EXPECT_EQ(tasks_.marked(9).error().code, ErrorCode::unavailable);
}

}  // namespace
}  // namespace detent

// The owner of the tasks under a name in Redis: tasks of two data folders are never mixed. The
// tests use a real redis-server. tests/durability/remote_detent_test.cc tests the same with another
// detent server.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "external/far_tasks.h"
#include "external/far_tasks_rig.h"
#include "external/redis_scheduler.h"
#include "external/redis_server_rig.h"

namespace detent {
namespace {

using namespace std::chrono_literals;  // NOLINT(google-build-using-namespace): literals only

using test::example_task;

constexpr WallTime kStart{std::chrono::milliseconds{1'700'000'000'000}};

class RedisFolder : public testing::Test {
 protected:
  void SetUp() override { ASSERT_EQ(server_.start(), ""); }
  std::unique_ptr<RedisScheduler> of_folder(std::string folder) const {
    RedisOptions options = server_.options();
    options.folder = std::move(folder);
    return RedisScheduler::create(std::move(options)).value();
  }
  RedisReply say(const std::vector<std::string>& words) const {
    const std::vector<std::string_view> command(words.begin(), words.end());
    const auto connection =
        RedisConnection::open(parse_redis_address(server_.socket()).value(), {}).value();
    EXPECT_TRUE(connection->send(command));
    return connection->receive().value();
  }
  static Result<void> put(RedisScheduler& redis, std::uint64_t id) {
    const Task task = example_task(id, kStart);
    return redis.put(std::span(&task, 1));
  }
  static void expect_refused(const Error& error) {
    EXPECT_EQ(error.code, ErrorCode::invalid_argument) << error.message;
    EXPECT_NE(error.message.find("of another data folder"), std::string::npos) << error.message;
  }

  test::RedisServer server_;
};

TEST_F(RedisFolder, AnotherFolderIsRefusedWhileTasksAreThereAndTheErrorSaysWhatToDo) {
  const auto first = of_folder("first");
  ASSERT_TRUE(put(*first, 256));
  const auto second = of_folder("second");
  const std::array ids{TaskId{256}};
  const auto refused = put(*second, 256);
  ASSERT_FALSE(refused);
  expect_refused(refused.error());
  EXPECT_NE(refused.error().message.find("?name=NAME"), std::string::npos);
  EXPECT_NE(refused.error().message.find("redis-cli -s '" + server_.socket() +
                                         "' DEL '{detent:default}:records' "
                                         "'{detent:default}:due' '{detent:default}:claims'"),
            std::string::npos)
      << refused.error().message;
  expect_refused(second->find(ids[0]).error());
  expect_refused(second->cancel(ids[0]).error());
  expect_refused(second->take({.now = kStart, .until = kStart}).error());
  expect_refused(second->forget(ids).error());
  expect_refused(second->size().error());
  EXPECT_EQ(first->find(ids[0]).value(), example_task(256, kStart)) << "the owner is not disturbed";

  say({"DEL", "{detent:default}:records", "{detent:default}:due", "{detent:default}:claims"});
  EXPECT_TRUE(put(*second, 256));
  expect_refused(put(*of_folder("first"), 257).error());
}

TEST_F(RedisFolder, ANameWithoutTasksCanBeTakenAndThePreviousOwnerIsThenRefused) {
  const auto first = of_folder("first");
  ASSERT_TRUE(put(*first, 256));
  ASSERT_TRUE(first->forget(std::array{TaskId{256}}));
  const auto second = of_folder("second");
  ASSERT_TRUE(put(*second, 256));
  EXPECT_EQ(first->find(TaskId{256}).error().code, ErrorCode::unavailable) << "the task of another";
  expect_refused(first->find(TaskId{256}).error());
  expect_refused(put(*first, 256).error());
  EXPECT_EQ(second->size().value(), 1U);
  ASSERT_TRUE(second->forget(std::array{TaskId{256}}));
  EXPECT_TRUE(put(*first, 256)) << "the name has no tasks any more";
}

TEST_F(RedisFolder, WithoutTheFolderKeyTasksBelongToTheFirstServerThatConnects) {
  ASSERT_TRUE(put(*of_folder("first"), 256));
  ASSERT_EQ(say({"DEL", "{detent:default}:folder"}).integer, 1);
  const auto second = of_folder("second");
  EXPECT_EQ(second->size().value(), 1U);
  EXPECT_EQ(say({"GET", "{detent:default}:folder"}).text, "second");
  expect_refused(of_folder("first")->size().error());
}

TEST_F(RedisFolder, ACopyOfAFolderOwnsTheSameTasks) {
  ASSERT_TRUE(put(*of_folder("first"), 256));
  EXPECT_EQ(of_folder("first")->find(TaskId{256}).value(), example_task(256, kStart));
}

TEST_F(RedisFolder, TwoFoldersThatShareANameLoseNoTask) {
  struct Side {
    test::FakeLocal local;
    std::map<TaskId, Task> all;
    std::unique_ptr<RedisScheduler> redis;
    std::unique_ptr<FarTasks> far;
  };
  ManualClock clock;
  const auto now = std::chrono::floor<std::chrono::milliseconds>(clock.wall_now());
  std::array<Side, 2> sides;
  for (Side& side : sides) {
    const bool is_first = &side == sides.data();
    const std::string name = is_first ? "first" : "second";
    for (std::uint64_t id = 1; id <= 100; ++id) {
      Task task = example_task(id, now + (is_first ? 3h : 6h) + std::chrono::minutes{id});
      task.queue = name;
      side.local.tasks.emplace(task.id, task);
      side.all.emplace(task.id, task);
    }
    side.redis = of_folder(name);
    side.far =
        std::make_unique<FarTasks>(side.local, *side.redis, clock, FarTasksOptions{.batch = 30}, 1);
  }
  std::array<std::uint64_t, 2> most{};  // the most tasks that were away, for each side
  for (int minute = 0; minute < 60 * 8; ++minute) {
    for (std::size_t i = 0; i < sides.size(); ++i) {
      sides.at(i).far->step();
      most.at(i) = std::max(most.at(i), sides.at(i).all.size() - sides.at(i).local.tasks.size());
    }
    clock.advance(1min);
  }
  for (const Side& side : sides) EXPECT_EQ(side.local.tasks, side.all);
  EXPECT_EQ(most[0], 100U);
  EXPECT_GT(most[1], 0U) << "it takes over after the tasks of the first have come back";
}

}  // namespace
}  // namespace detent

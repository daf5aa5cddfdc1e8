// A real redis-server that loses its data, or gets an older state back, with a real engine on the
// other side. far_tasks_test.cc tests losses in general. tests/durability/remote_detent_test.cc
// tests them with another detent server.
#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/testing/test_folder.h"
#include "engine/testing/engine_fixture.h"
#include "external/engine_tasks.h"
#include "external/redis_scheduler.h"
#include "external/redis_server_rig.h"

namespace detent {
namespace {

class RedisLoss : public EngineFixture {
 protected:
  void SetUp() override {
    ASSERT_EQ(server_.start(), "");
    connect();
  }
  /// Connects as a server does when it starts.
  void connect() {
    far_.reset();
    redis_ = RedisScheduler::create(server_.options()).value();
    far_.emplace(tasks_, *redis_, clock_, options_, 1);
  }
  /// Steps until no work is left. The second round is needed if the first step finds
  /// the connection closed.
  void steps() {
    for (int i = 0; i < 2; ++i) {
      while (far_->step() <= clock_.now()) {
      }
    }
  }
  std::vector<TaskId> schedule_far(int count) {
    std::vector<TaskId> ids;
    for (int i = 0; i < count; ++i) ids.push_back(schedule("q", 48h));
    steps();
    return ids;
  }
  void say(const std::vector<std::string>& words) const {
    const std::vector<std::string_view> command(words.begin(), words.end());
    const auto connection =
        RedisConnection::open(parse_redis_address(server_.socket()).value(), {}).value();
    ASSERT_TRUE(connection->send(command));
    ASSERT_NE(connection->receive().value().kind, RedisReply::Kind::error);
  }
  /// The message about the loss, or "" if there is none.
  std::string lost() const {
    const std::optional<Error>& lost = far_->stats().lost;
    return lost ? lost->message : "";
  }

  test::RedisServer server_;
  FarTasksOptions options_{.near = 1h, .far = 2h, .batch = 100};
  EngineTasks tasks_{[this](EngineThread::Command command) {
    command(*engine_);
    settle();
    return true;
  }};
  std::unique_ptr<RedisScheduler> redis_;
  std::optional<FarTasks> far_;
};

TEST_F(RedisLoss, FlushAllIsReportedUntilItIsAcceptedAndHidesNoTask) {
  const std::vector<TaskId> ids = schedule_far(500);
  ASSERT_EQ(redis_->size().value(), 500u);
  EXPECT_EQ(lost(), "");
  say({"FLUSHALL"});
  for (int i = 0; i < 2; ++i) EXPECT_FALSE(far_->find(ids[0])) << "it must be an error";
  steps();
  EXPECT_NE(lost().find("it has lost changes: its generation is 0"), std::string::npos) << lost();
  EXPECT_NE(lost().find("it keeps 0 tasks and kept 500"), std::string::npos) << lost();
  crash_and_open();
  connect();
  const TaskId next = schedule("q", 48h);
  steps();
  EXPECT_NE(lost(), "") << "a restart must not accept the loss";
  EXPECT_TRUE(state_of(next)) << "no more tasks are handed over";
  const std::string command =
      "redis-cli -s '" + server_.socket() + "' SET '{detent:default}:generation' ";
  const std::size_t at = lost().find(command);
  ASSERT_NE(at, std::string::npos) << lost();
  say({"SET", "{detent:default}:generation", lost().substr(at + command.size())});
  steps();
  EXPECT_EQ(lost(), "");
  EXPECT_EQ(redis_->size().value(), 1u) << "tasks are handed over again";
  EXPECT_FALSE(far_->find(ids[0]).value());
}

TEST_F(RedisLoss, AnOlderLogIsReportedAndBringsNoCancelledTaskBack) {
  const TestFolder backup;
  std::vector<TaskId> ids = schedule_far(500);
  server_.kill();
  server_.copy_log_to(backup / "log");
  ASSERT_EQ(server_.start(), "");
  const TaskId missing = schedule_far(300).back();
  for (std::size_t i = 0; i < 100; ++i) {
    ASSERT_TRUE(far_->fetch(ids[i]).value());
    ASSERT_TRUE(engine_->cancel(ids[i]));
    settle();
  }
  steps();
  ASSERT_EQ(redis_->size().value(), 700u);
  server_.kill();
  server_.put_log_back(backup / "log");
  ASSERT_EQ(server_.start(), "");
  crash_and_open();
  connect();
  steps();
  EXPECT_NE(lost().find("it keeps 500 tasks and kept 700"), std::string::npos) << lost();
  EXPECT_FALSE(far_->find(ids[0]).value()) << "cancelled";
  EXPECT_TRUE(far_->find(ids[100]).value());
  EXPECT_FALSE(far_->find(missing)) << "the task may be lost, so it must be an error";
  advance(48h);
  steps();
  settle();
  std::vector<TaskId> leased = lease_ids("q", 1'000);
  std::ranges::sort(leased);
  ids.erase(ids.begin(), ids.begin() + 100);
  EXPECT_EQ(leased, ids) << "each remaining task must come once, and in time";
  steps();
  EXPECT_EQ(redis_->size().value(), 0u);
}

}  // namespace
}  // namespace detent

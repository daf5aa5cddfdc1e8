// Redis is killed, hangs or comes back. Every task that it accepted survives, and a call that timed
// out has no effect later.
#include <gtest/gtest.h>

#include <array>
#include <chrono>
#include <latch>
#include <memory>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/thread.h"
#include "external/far_tasks.h"
#include "external/far_tasks_rig.h"
#include "external/redis_scheduler.h"
#include "external/redis_server_rig.h"

namespace detent {
namespace {

using namespace std::chrono_literals;  // NOLINT(google-build-using-namespace): literals only

using test::example_task;
using test::RedisServer;

constexpr WallTime kStart{std::chrono::milliseconds{1'700'000'000'000}};
constexpr TakeRequest kAll{
    .now = kStart, .until = kStart + std::chrono::hours{1}, .limit = 1'000'000};

std::unique_ptr<RedisScheduler> open(RedisOptions options) {
  return RedisScheduler::create(std::move(options)).value();
}

TEST(RedisCrash, AcceptedTasksSurviveKillNine) {
  RedisServer server;
  ASSERT_EQ(server.start(), "");
  const auto redis = open(server.options());
  std::vector<Task> tasks;
  for (std::uint64_t id = 1; id <= 300; ++id) tasks.push_back(example_task(id, kStart));
  ASSERT_TRUE(redis->put(tasks));
  ASSERT_EQ(redis->take({.now = kStart, .until = kStart, .limit = 100})->tasks.size(), 100U);
  ASSERT_TRUE(redis->forget(std::array{TaskId{1}, TaskId{2}}));
  ASSERT_EQ(redis->cancel(TaskId{300}).value(), CancelOutcome::cancelled);
  server.kill();
  const auto down = redis->size();
  ASSERT_FALSE(down);
  EXPECT_EQ(down.error().code, ErrorCode::unavailable);
  EXPECT_NE(down.error().message.find(server.socket() + ": cannot connect"), std::string::npos);
  ASSERT_EQ(server.start(), "");
  EXPECT_EQ(redis->size().value(), 297U);
  EXPECT_EQ(redis->take(kAll)->tasks.size(), 199U) << "claims must survive, too";
}

TEST(RedisCrash, ARedisKilledDuringPutsHasAllAcceptedTasks) {
  RedisServer server;
  ASSERT_EQ(server.start(), "");
  const auto redis = open(server.options());
  std::latch is_busy(1);
  Thread killer([&server, &is_busy] {
    is_busy.wait();
    server.kill_only();
  });
  constexpr std::uint64_t kBatch = 500;
  std::uint64_t accepted = 0;
  std::uint64_t last_id = 0;
  for (bool is_up = true; is_up;) {
    std::vector<Task> tasks;
    for (std::uint64_t i = 0; i < kBatch; ++i) tasks.push_back(example_task(++last_id, kStart));
    is_up = redis->put(tasks).has_value();
    if (is_up) accepted = last_id;
    if (last_id == 4 * kBatch || (!is_up && last_id < 4 * kBatch)) is_busy.count_down();
  }
  killer.join();
  server.kill();
  ASSERT_EQ(server.start(), "");
  std::set<TaskId> there;
  const auto taken = redis->take(kAll);
  ASSERT_TRUE(taken) << taken.error().message;
  for (const Task& task : taken->tasks) {
    EXPECT_EQ(task, example_task(task.id.value, kStart));
    there.insert(task.id);
  }
  for (std::uint64_t id = 1; id <= accepted; ++id) EXPECT_TRUE(there.contains(TaskId{id})) << id;
  EXPECT_LE(there.size(), accepted + kBatch);
}

TEST(RedisCrash, ACallToAHangingRedisTimesOutAndALaterCallSucceeds) {
  RedisServer server;
  ASSERT_EQ(server.start(), "");
  const auto redis = open(server.options());
  ASSERT_TRUE(redis->put(std::array{example_task(1, kStart)}));
  server.pause();
  RedisOptions impatient = server.options();
  impatient.timeouts.command = 20ms;
  const auto late = open(impatient)->size();
  ASSERT_FALSE(late);
  EXPECT_EQ(late.error().code, ErrorCode::unavailable);
  EXPECT_NE(late.error().message.find("no answer within 20 ms"), std::string::npos);
  server.go_on();
  EXPECT_EQ(redis->size().value(), 1U);
}

TEST(RedisCrash, ACommandOfAnEarlierSessionDoesNothing) {
  RedisServer server;
  ASSERT_EQ(server.start(), "");
  const auto given_up = RedisSession::open(server.options()).value();
  // send() only buffers the command until receive(). So the command arrives after the next session.
  ASSERT_TRUE(given_up->send(RedisScript::forget, std::array{std::string("0000000000000001")}));
  const auto redis = open(server.options());
  ASSERT_TRUE(redis->put(std::array{example_task(1, kStart)}));
  EXPECT_FALSE(given_up->receive());
  EXPECT_EQ(redis->size().value(), 1U);
}

TEST(RedisCrash, SendingToADeadRedisIsAnErrorAndDoesNotKillTheProcess) {
  RedisServer server;
  ASSERT_EQ(server.start(), "");
  const auto connection =
      RedisConnection::open(parse_redis_address(server.socket()).value(), {}).value();
  server.kill();
  const std::string large(1'000'000, 'x');
  const auto sent = connection->send(std::array<std::string_view, 2>{"ECHO", large});
  ASSERT_FALSE(sent);
  EXPECT_EQ(sent.error().code, ErrorCode::unavailable);
}

TEST(RedisCrash, FarTasksLoseNoTaskWhileRedisIsKilledAndStartedAgain) {
  RedisServer server;
  ASSERT_EQ(server.start(), "");
  const auto redis = open(server.options());
  ManualClock clock;
  test::FakeLocal local;
  const auto now = std::chrono::floor<std::chrono::milliseconds>(clock.wall_now());
  std::set<TaskId> all;
  for (std::uint64_t id = 1; id <= 500; ++id) {
    const Task task = example_task(id, now + 3h + std::chrono::minutes{id % 120});
    local.tasks.emplace(task.id, task);
    all.insert(task.id);
  }
  FarTasks far(local, *redis, clock, {.batch = 50}, 1);
  for (int i = 0; i < 4; ++i) far.step();
  server.kill();
  far.step();
  EXPECT_EQ(far.stats().errors, 1U);
  ASSERT_EQ(server.start(), "");
  for (int i = 0; i < 10; ++i) far.step();
  EXPECT_TRUE(local.tasks.empty());
  EXPECT_EQ(redis->size().value(), 500U);
  for (int hour = 0; hour < 6; ++hour) {
    server.kill();
    far.step();
    ASSERT_EQ(server.start(), "");
    clock.advance(1h);
    for (int i = 0; i < 12; ++i) far.step();
  }
  EXPECT_EQ(redis->size().value(), 0U);
  std::set<TaskId> here;
  for (const auto& [id, task] : local.tasks) here.insert(id);
  EXPECT_EQ(here, all);
  EXPECT_TRUE(local.marks.empty());
}

}  // namespace
}  // namespace detent

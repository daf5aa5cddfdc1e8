// Runs the server process with a real Redis that keeps its far tasks. Both are killed with kill -9
// in turn, while tasks move to Redis and back. Time is real: a task is far if it is due in 8 s or
// later.
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdlib>
#include <map>
#include <string>
#include <vector>

#include "base/testing/test_folder.h"
#include "external/redis_scheduler.h"
#include "external/redis_server_rig.h"
#include "tests/durability/child_server.h"
#include "tests/support/client_of.h"

namespace detent {
namespace {

using namespace std::chrono_literals;  // NOLINT(google-build-using-namespace): literals only
using std::chrono::milliseconds;

class External : public ::testing::Test {
 protected:
  void start_both() {
    ASSERT_EQ(redis_.start(), "");
    ASSERT_TRUE(server_.start());
  }
  void kill_redis() {
    redis_.kill();
    ASSERT_EQ(redis_.start(), "");
  }
  void kill_server() {
    server_.kill();
    ASSERT_TRUE(server_.start());
  }
  Client client() const { return test::client_of(server_.url()); }
  void schedule(std::size_t count, milliseconds delay) {
    Client now = client();
    const std::vector<client::NewTask> tasks(count, {.queue = "q", .due = delay});
    const auto answers = now.schedule_many(tasks).value();
    for (const auto& answer : answers) handed_out_.emplace(answer.value().id, 0);
  }
  /// Leases ready tasks, waits a moment for them, and completes them.
  void work() {
    Client now = client();
    const auto tasks = now.lease("q", {.max = 1'000, .wait = 200ms}).value();
    std::vector<std::string> leases;
    for (const client::LeasedTask& task : tasks) {
      ++handed_out_.at(task.id);
      latest_ = std::max(latest_, task.lateness);
      leases.push_back(task.lease);
    }
    done_ += tasks.size();
    if (leases.empty()) return;
    const auto outcomes = now.complete(leases).value();
    for (const auto outcome : outcomes) EXPECT_EQ(outcome, client::LeaseStatus::done);
  }
  /// The number of tasks in the server's own store.
  std::size_t here() {
    std::size_t count = 0;
    for (const client::Queue& queue : client().queues().value()) {
      count += queue.scheduled + queue.ready + queue.leased;
    }
    return count;
  }
  void await_here(std::size_t count) {
    while (here() != count) work();
  }
  void expect_nothing_left_behind() {
    ASSERT_EQ(server_.stop(), 0);
    EXPECT_EQ(RedisScheduler::create(redis_.options()).value()->size().value(), 0u);
    const std::string check = std::string(DETENT_BINARY) + " check --data " + (folder_ / "data");
    EXPECT_EQ(std::system((check + " > /dev/null").c_str()), 0);
  }

  test::RedisServer redis_;
  TestFolder folder_;
  ChildServer server_{{.program = DETENT_BINARY,
                       .data = folder_ / "data",
                       .flags = {"--window", "1s", "--external-after", "8s", "--external",
                                 "redis+unix://" + redis_.socket()}}};
  std::map<std::uint64_t, int> handed_out_;  // the number of deliveries of each task
  std::size_t done_ = 0;
  milliseconds latest_{0};
};

TEST_F(External, EveryTaskComesBackAndIsHandedOutOnceWhoeverIsKilled) {
  constexpr std::size_t kTasks = 10'000;
  start_both();
  for (std::size_t i = 0; i < 10; ++i) {
    schedule(kTasks / 10, 20s + milliseconds{400 * i});
    if (i % 3 == 0) kill_redis();
    if (i % 3 == 1) kill_server();
  }
  await_here(0);
  EXPECT_EQ(done_, 0u) << "all are in Redis";
  kill_server();
  kill_redis();
  for (std::size_t rounds = 0; done_ < kTasks; ++rounds) {
    work();
    if (here() == 0 || rounds % 8 != 7) continue;
    rounds % 16 == 7 ? kill_redis() : kill_server();
  }
  for (const auto& [id, times] : handed_out_) EXPECT_EQ(times, 1) << id;
  EXPECT_EQ(handed_out_.size(), kTasks);
  RecordProperty("latest_ms", std::to_string(latest_.count()));
  expect_nothing_left_behind();
}

TEST_F(External, WithoutRedisWhatIsNearGoesOnAndWhatIsAwayCanOnlyWait) {
  start_both();
  schedule(2, 12s);
  await_here(0);
  const std::uint64_t cancelled = handed_out_.begin()->first;
  EXPECT_EQ(client().get(cancelled).value().state, client::TaskState::scheduled);
  redis_.kill();

  const ClientResult<void> refused = client().cancel(cancelled);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, ClientError::Code::unavailable);
  EXPECT_NE(refused.error().message.find("external scheduler"), std::string::npos)
      << refused.error().message;
  EXPECT_FALSE(client().get(cancelled));
  schedule(1, 1s);
  schedule(1, 3600s);
  while (done_ < 1) work();
  EXPECT_EQ(here(), 1u) << "what is far stays";

  ASSERT_EQ(redis_.start(), "");
  EXPECT_TRUE(client().cancel(cancelled));
  EXPECT_EQ(client().get(cancelled).error().code, ClientError::Code::not_found);
  while (done_ < 2) work();
  EXPECT_EQ(handed_out_.at(cancelled), 0);
  await_here(0);
  EXPECT_TRUE(client().cancel(handed_out_.rbegin()->first)) << "the one due in an hour";
}

}  // namespace
}  // namespace detent

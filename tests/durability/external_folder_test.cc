// Two server processes use the same place for their far tasks, or a server has lost its data
// folder. No task may be lost. The server that comes second is refused, and continues by itself
// when the place is free. Time is real: a task is far if it is due in 8 s or later.
#include <gtest/gtest.h>

#include <array>
#include <chrono>
#include <cstddef>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/testing/test_folder.h"
#include "external/redis_server_rig.h"
#include "tests/durability/child_server.h"
#include "tests/support/client_of.h"

namespace detent {
namespace {

using namespace std::chrono_literals;  // NOLINT(google-build-using-namespace): literals only
using std::chrono::milliseconds;

/// One of the servers, and the deliveries of its tasks. Its tasks must not mix with the other
/// server's.
class Side {
 public:
  Side(std::string name, const std::string& data)
      : name_(std::move(name)),
        server_({.program = DETENT_BINARY,
                 .data = data,
                 .flags = {"--window", "1s", "--external-after", "8s", "--external"}}) {}

  ChildServer& server() { return server_; }
  /// Schedules tasks that are delivered during the test.
  void schedule(std::size_t count) {
    const client::Payload payload{client::Payload::Kind::bytes, name_};
    const std::vector<client::NewTask> tasks(
        count, {.queue = name_, .payload = payload, .due = milliseconds{16s}});
    const auto answers = client().schedule_many(tasks).value();
    for (const auto& answer : answers) handed_out_.emplace(answer.value().id, 0);
  }
  /// Schedules a task that stays far during the test.
  std::uint64_t schedule_far() const {
    return client().schedule({.queue = name_, .due = milliseconds{1h}}).value().id;
  }
  void work() {
    Client now = client();
    std::vector<std::string> leases;
    const auto tasks = now.lease(name_, {.max = 1'000, .wait = 200ms}).value();
    for (const client::LeasedTask& task : tasks) {
      ++handed_out_.at(task.id);
      EXPECT_EQ(task.payload.data, name_);
      leases.push_back(task.lease);
    }
    done_ += leases.size();
    if (leases.empty()) return;
    ASSERT_TRUE(now.complete(leases));
  }
  std::size_t done() const { return done_; }
  void expect_each_once() const {
    for (const auto& [id, times] : handed_out_) EXPECT_EQ(times, 1) << name_ << id;
    EXPECT_EQ(handed_out_.size(), done_);
  }
  std::size_t here() const {
    const auto queue = client().queue(name_);
    return queue ? queue->scheduled + queue->ready + queue->leased : 0;
  }
  std::size_t refusals() const {
    const std::string log = server_.log();
    const std::string words = "of another data folder";
    std::size_t count = 0;
    for (std::size_t at = 0; (at = log.find(words, at)) != std::string::npos; ++at) ++count;
    return count;
  }
  Client client() const { return test::client_of(server_.url()); }

 private:
  std::string name_;
  ChildServer server_;
  std::map<std::uint64_t, int> handed_out_;  // the number of deliveries of each task
  std::size_t done_ = 0;
};

class ExternalFolder : public ::testing::Test {
 protected:
  void start(const std::string& external) {
    for (Side* side : {&first_, &second_}) side->server().options().flags.push_back(external);
    ASSERT_TRUE(first_.server().start());
  }
  /// Both servers run at the same time, with equal task ids. Each delivers its own tasks. The
  /// second one keeps its far tasks.
  void work_at_once() {
    constexpr std::size_t kTasks = 500;
    far_task_ = first_.schedule_far();
    first_.schedule(kTasks);
    while (first_.here() != 0) first_.work();
    ASSERT_TRUE(second_.server().start());
    second_.schedule(kTasks);
    while (second_.refusals() == 0) second_.work();
    while (first_.done() < kTasks || second_.done() < kTasks) {
      first_.work();
      second_.work();
    }
    first_.expect_each_once();
    second_.expect_each_once();
    EXPECT_EQ(second_.refusals(), 1U) << second_.server().log();
  }
  /// The first server leaves far tasks in the place, and the second one is refused.
  void leave_tasks() {
    first_.schedule_far();
    far_task_ = first_.schedule_far();
    while (first_.here() != 0) first_.work();
    first_.server().kill();
    ASSERT_TRUE(second_.server().start());
    second_.schedule_far();
    while (second_.refusals() == 0) second_.work();
    EXPECT_EQ(second_.here(), 1U);
    const auto others = second_.client().get(far_task_);
    EXPECT_EQ(others.error().code, ClientError::Code::unavailable);
    EXPECT_NE(others.error().message.find("of another data folder"), std::string::npos)
        << others.error().message;
  }
  void await_handed_over() {
    while (second_.here() != 0) second_.work();
  }

  TestFolder folder_;
  std::uint64_t far_task_ = 0;  // the last far task of the first server
  Side first_{"first", folder_ / "first"};
  Side second_{"second", folder_ / "second"};
};

class RedisFolders : public ExternalFolder {
 protected:
  void SetUp() override {
    ASSERT_EQ(redis_.start(), "");
    start("redis+unix://" + redis_.socket());
  }
  test::RedisServer redis_;
};

TEST_F(RedisFolders, WhoComesLaterIsRefusedAndGoesOnOnceTheNameIsEmpty) {
  work_at_once();
  second_.schedule_far();
  ASSERT_TRUE(first_.client().cancel(far_task_));
  await_handed_over();
}

TEST_F(RedisFolders, ANewOneIsRefusedUntilTheTasksThatLieThereAreGivenUp) {
  leave_tasks();
  const std::string keys = "{detent:default}:";
  const auto connection =
      RedisConnection::open(parse_redis_address(redis_.socket()).value(), {}).value();
  const std::array names{keys + "records", keys + "due", keys + "claims"};
  ASSERT_TRUE(
      connection->send(std::array<std::string_view, 4>{"DEL", names[0], names[1], names[2]}));
  ASSERT_EQ(connection->receive().value().integer, 2);
  await_handed_over();
}

class RemoteFolders : public ExternalFolder {
 protected:
  void SetUp() override {
    ASSERT_TRUE(far_.start());
    start(far_.url() + "?queue=far");
  }
  ChildServer far_{
      {.program = DETENT_BINARY, .data = folder_ / "far", .flags = {"--window", "1s"}}};
};

TEST_F(RemoteFolders, WhoComesLaterIsRefused) { work_at_once(); }

TEST_F(RemoteFolders, ANewOneIsRefusedUntilTheTasksThatLieThereAreGivenUp) {
  leave_tasks();
  Client far = test::client_of(far_.url());
  EXPECT_EQ(far.purge("far").value(), 2U);
  ASSERT_TRUE(far.cancel(client::TaskKey{"far.folder", "folder"}));
  await_handed_over();
}

}  // namespace
}  // namespace detent

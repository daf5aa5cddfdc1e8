// Requests for tasks of a queue with partitions, which the front of a node sends to other nodes.
#include "server/cluster/forwarded_request.h"

#include <gtest/gtest.h>

#include <cstddef>
#include <optional>
#include <set>
#include <sstream>
#include <string>
#include <utility>

#include "base/log/log.h"
#include "detent/clock.h"
#include "protocol/json/queue_codec.h"
#include "server/testing/cluster_front_fixture.h"

namespace detent::server {
namespace {

/// A clock that runs a function at the next read of the time.
class HookedClock final : public Clock {
 public:
  MonotonicTime now() const noexcept override {
    if (auto then = std::exchange(on_now, {})) then();
    return clock_.now();
  }
  WallInstant wall_now() const noexcept override { return clock_.wall_now(); }
  bool wait(Doorbell& bell, std::optional<MonotonicTime> until) noexcept override {
    return clock_.wait(bell, until);
  }

  mutable UniqueFunction<void()> on_now;  // once

 private:
  SystemClock clock_;
};

/// Two shards, both at other nodes, and a queue that is on both.
class PartitionedFrontTest : public ClusterFrontTest {
 protected:
  PartitionedFrontTest() { update("10.0.0.3:7070"); }

  void update(const std::string& second, PartitionedQueues partitioned = {{"q", 2}}) {
    update(wide_, std::move(partitioned), second);
  }
  static void update(ClusterFront& front, PartitionedQueues partitioned,
                     const std::string& second = "10.0.0.3:7070") {
    front.update({.members = {{"b", "10.0.0.2:7070"}, {"c", second}},
                  .owners = {{0, "b", 1, false}, {1, "c", 1, false}},
                  .held_until = {},
                  .partitioned = std::move(partitioned)});
  }
  void set_partitioned(PartitionedQueues partitioned) {
    update("10.0.0.3:7070", std::move(partitioned));
  }
  /// Asks without waiting. Call 0 goes to the first node, and call 1 to the other node.
  void ask_late(Client& worker, const std::string& body) {
    worker.ask(wide_, lease_request(body));
    ASSERT_EQ(caller_.calls.size(), 1u);
    caller_.be_slow(0);
    ASSERT_EQ(caller_.calls.size(), 2u) << "the other is asked meanwhile";
    EXPECT_NE(caller_.calls[0].address, caller_.calls[1].address);
  }
  void expect_released(std::size_t call, std::size_t of) {
    ASSERT_EQ(caller_.calls.size(), call + 1);
    EXPECT_EQ(caller_.calls[call].request.target, "/v1/leases/release");
    EXPECT_EQ(header(caller_.calls[call], "detent-shard"),
              header(caller_.calls[of], "detent-shard"));
    caller_.answer(call, {.status = 200, .body = "{}"});
  }
  static net::HttpResponse nothing() { return {.status = 200, .body = R"({"tasks":[]})"}; }
  /// A worker that waits at both nodes, with the calls 2 and 3.
  void wait_at_both(Client& worker) {
    worker.ask(wide_, lease_request());
    for (std::size_t call = 0; call < 2; ++call) {
      ASSERT_EQ(caller_.calls.size(), call + 1) << "one after the other";
      EXPECT_EQ(caller_.calls[call].request.body, "{}") << "none waits";
      caller_.answer(call, nothing());
    }
    ASSERT_EQ(caller_.calls.size(), 4u);
    EXPECT_NE(header(caller_.calls[2], "detent-shard"), header(caller_.calls[3], "detent-shard"));
    for (std::size_t call = 2; call < 4; ++call) {
      EXPECT_EQ(caller_.calls[call].request.body, R"({"wait":"30s"})");
    }
  }

  ClusterFront wide_{{.shards = 2, .node = "a"}, shards_, here_, link_, clock_,
                     [this] { ++strays_; }};
};

TEST_F(PartitionedFrontTest, TheFirstPartitionWithATaskEndsTheOtherWaitAndLateLeasesGoBack) {
  Client worker;
  wait_at_both(worker);
  EXPECT_FALSE(worker.is_answered());
  caller_.answer(3, leased());
  EXPECT_EQ(worker.answer().body, leased().body);
  ASSERT_EQ(caller_.calls.size(), 5u);
  EXPECT_EQ(caller_.calls[4].request.target, "/v1/cluster/end-wait");
  EXPECT_EQ(header(caller_.calls[4], "detent-call"), header(caller_.calls[2], "detent-call"));
  caller_.answer(2, leased());  // it had been on its way
  ASSERT_EQ(caller_.calls.size(), 6u);
  EXPECT_EQ(caller_.calls[5].request.target, "/v1/leases/release");
  EXPECT_EQ(header(caller_.calls[5], "detent-shard"), header(caller_.calls[2], "detent-shard"));
  caller_.answer(5, {.status = 200, .body = "{}"});
  caller_.answer(4, {.status = 200, .body = "{}"});
  EXPECT_EQ(caller_.calls.size(), 6u);
}

TEST_F(PartitionedFrontTest, AWorkerThatGoesAwayWaitsAtNoPartition) {
  Client worker;
  wait_at_both(worker);
  worker.go_away();
  ASSERT_EQ(caller_.calls.size(), 6u);
  for (std::size_t call = 4; call < 6; ++call) {
    EXPECT_EQ(caller_.calls[call].request.target, "/v1/cluster/end-wait");
  }
  for (const std::size_t call : {2u, 3u}) caller_.answer(call, nothing());
}

TEST_F(PartitionedFrontTest, WhenAPartitionCannotBeReachedAWaitEndsWithThat) {
  Client worker;
  wait_at_both(worker);
  update("10.0.0.4:7070");
  EXPECT_EQ(worker.answer().status, 503);
  for (const std::size_t call : {2u, 3u}) caller_.answer(call, nothing());
}

TEST_F(PartitionedFrontTest, AWorkerWhoseHomeShardHasNoOwnerIsAnsweredImmediately) {
  wide_.update({.members = {}, .owners = {}, .held_until = {}, .partitioned = {{"q", 2}}});
  Client worker;
  worker.ask(wide_, lease_request());
  EXPECT_EQ(worker.answer().status, 503);
  EXPECT_TRUE(caller_.calls.empty());
}

TEST_F(PartitionedFrontTest, AfterAChangeOfAQueueTheNodeLooksAgain) {
  Client client;
  client.ask(wide_, {.method = "PATCH", .target = "/v1/queues/r", .headers = {}, .body = "{}"});
  EXPECT_EQ(strays_, 0);
  caller_.answer(0, {.status = 409, .body = "{}"});
  EXPECT_EQ(client.answer().status, 409);
  EXPECT_EQ(strays_, 1);
}

TEST_F(PartitionedFrontTest, ADividedQueueIsDividedForTheNextRequest) {
  Client client;
  client.ask(
      wide_,
      {.method = "PATCH", .target = "/v1/queues/r", .headers = {}, .body = R"({"partitions":2})"});
  const QueueView view{.stats = {.queue = "r"}, .settings = {.partitions = 2}};
  for (std::size_t call = 0; call < 2; ++call) {
    ASSERT_EQ(caller_.calls.size(), call + 1);
    caller_.answer(call, {.status = 200, .body = json::render_queue(view)});
  }
  EXPECT_EQ(client.answer().status, 200);
  EXPECT_EQ(strays_, 1);
  EXPECT_EQ(wide_.shard_map()->partitions_of("r"), 2u);
  EXPECT_EQ(wide_.shard_map()->partitions_of("q"), 2u) << "the other is as it was";
  update("10.0.0.3:7070");
  EXPECT_EQ(wide_.shard_map()->partitions_of("r"), 1u) << "as the table says";
}

// ---- a node that hangs ----

TEST_F(PartitionedFrontTest, ANodeThatHangsHoldsUpNoTasksOfOthersAndWhatItLeasesLateGoesBack) {
  Client worker;
  ask_late(worker, "");
  caller_.answer(1, leased());
  EXPECT_EQ(worker.answer().body, leased().body);
  EXPECT_EQ(caller_.calls.size(), 2u) << "it does not wait there, so there is nothing to end";
  caller_.answer(0, leased());
  expect_released(2, 0);
}

TEST_F(PartitionedFrontTest, ALateAnswerIsUsedIfNoOtherAnswerCame) {
  Client worker;
  ask_late(worker, "");
  caller_.answer(0, leased());
  EXPECT_EQ(worker.answer().body, leased().body);
  caller_.answer(1, leased());
  expect_released(2, 1);
}

TEST_F(PartitionedFrontTest, ARequestWithoutAWaitIsEmptyOnlyAfterAllNodesHaveAnswered) {
  Client worker;
  ask_late(worker, "");
  caller_.answer(1, nothing());
  EXPECT_FALSE(worker.is_answered());
  caller_.answer(0, nothing());
  EXPECT_EQ(worker.answer().body, nothing().body);
}

TEST_F(PartitionedFrontTest, AWaitingWorkerAlsoWaitsAtALateNode) {
  Client worker;
  ask_late(worker, R"({"wait":"30s"})");
  caller_.answer(1, nothing());
  ASSERT_EQ(caller_.calls.size(), 4u);
  for (const std::size_t call : {2u, 3u}) {
    EXPECT_EQ(caller_.calls[call].request.body, R"({"wait":"30s"})");
  }
  caller_.answer(0, leased());  // the wait there will get it
  expect_released(4, 0);
  EXPECT_FALSE(worker.is_answered());
  caller_.answer(2, leased());
  EXPECT_EQ(worker.answer().body, leased().body);
}

TEST_F(PartitionedFrontTest, ANodeThatHangsIsAskedOnceUntilItAnswers) {
  Client first;
  ask_late(first, "");
  caller_.answer(1, leased());
  for (std::size_t round = 0; round < 4; ++round) {  // whosever turn it is
    Client worker;
    worker.ask(wide_, lease_request(""));
    ASSERT_EQ(caller_.calls.size(), round + 3);
    ASSERT_EQ(caller_.calls.back().address, caller_.calls[1].address);
    caller_.answer(round + 2, nothing());
    ASSERT_TRUE(worker.is_answered()) << "without the other";
    EXPECT_EQ(worker.answer().status, 503) << "nobody knows whether it has tasks";
  }
  Client reader;
  reader.ask(wide_, {.method = "GET", .target = "/v1/stats", .headers = {}, .body = ""});
  EXPECT_EQ(caller_.calls.size(), 8u) << "what only it can answer it is asked";
  caller_.answer(0, nothing());
  Client again;
  again.ask(wide_, lease_request(""));
  ASSERT_EQ(caller_.calls.size(), 9u);
  caller_.answer(8, nothing());
  ASSERT_EQ(caller_.calls.size(), 10u);
  EXPECT_NE(caller_.calls[8].address, caller_.calls[9].address);
}

TEST_F(PartitionedFrontTest, WhenTheQuestionFailsAnotherFindsOutAndNobodyWaitsForIt) {
  Client first;
  ask_late(first, "");
  caller_.answer(1, leased());
  caller_.fail(0);
  std::size_t asked = 0;
  std::size_t call = 2;
  for (int turn = 0; turn < 4; ++turn) {
    Client worker;
    worker.ask(wide_, lease_request(""));
    for (; call < caller_.calls.size(); ++call) {
      if (caller_.calls[call].address == caller_.calls[0].address) {
        ++asked;
      } else {
        caller_.answer(call, leased());
      }
    }
    EXPECT_TRUE(worker.is_answered());
  }
  EXPECT_EQ(asked, 1u);
}

TEST_F(PartitionedFrontTest, AShardThatIsStuckTakesNothingFromAnotherOfItsNode) {
  update("10.0.0.2:7070");  // both are there
  Client first;
  first.ask(wide_, lease_request(""));
  caller_.be_slow(0);
  ASSERT_EQ(caller_.calls.size(), 2u) << "it may be the shard alone";
  EXPECT_NE(header(caller_.calls[0], "detent-shard"), header(caller_.calls[1], "detent-shard"));
  caller_.answer(1, leased());
  EXPECT_EQ(first.answer().body, leased().body);
  for (std::size_t round = 0; round < 4; ++round) {  // whosever turn it is
    Client worker;
    worker.ask(wide_, lease_request(""));
    ASSERT_EQ(caller_.calls.size(), round + 3);
    EXPECT_EQ(header(caller_.calls.back(), "detent-shard"),
              header(caller_.calls[1], "detent-shard"));
    caller_.answer(round + 2, leased());
    EXPECT_EQ(worker.answer().body, leased().body);
  }
  caller_.answer(0, nothing());
  std::set<std::string> asked;
  for (std::size_t round = 0; round < 2; ++round) {
    Client worker;
    worker.ask(wide_, lease_request(""));
    asked.insert(header(caller_.calls.back(), "detent-shard"));
    caller_.answer(caller_.calls.size() - 1, leased());
  }
  EXPECT_EQ(asked.size(), 2u);
}

TEST_F(PartitionedFrontTest, RequestsToOtherShardsOfAHangingNodeDoNotWait) {
  update("10.0.0.2:7070");
  Client first;
  first.ask(wide_, lease_request(""));
  caller_.be_slow(0);
  ASSERT_EQ(caller_.calls.size(), 2u);
  for (int turn = 0; turn < 2; ++turn) {
    Client worker;
    worker.ask(wide_, lease_request(""));
    ASSERT_TRUE(worker.is_answered());
    EXPECT_EQ(worker.answer().status, 503);
  }
  EXPECT_EQ(caller_.calls.size(), 2u) << "each shard is asked once";
  for (const std::size_t call : {0u, 1u}) caller_.answer(call, nothing());
  EXPECT_EQ(first.answer().body, nothing().body);
}

TEST_F(PartitionedFrontTest, ANodeThatIsSlowAgainAndAgainIsLoggedOnceAMinute) {
  std::ostringstream log;
  configure_log({.out = &log});
  for (int i = 0; i < 3; ++i) {
    Client worker;
    worker.ask(wide_, lease_request(""));
    const std::size_t call = caller_.calls.size() - 1;
    caller_.be_slow(call);
    for (const std::size_t at : {call, call + 1}) caller_.answer(at, nothing());
    EXPECT_TRUE(worker.is_answered());
  }
  configure_log({.level = LogLevel::error});
  const std::string text = log.str();
  for (const std::string line : {"a node is slow to answer", "a node answers again"}) {
    const std::size_t first = text.find(line);
    ASSERT_NE(first, std::string::npos) << text;
    EXPECT_EQ(text.find(line + " address=" + caller_.calls[0].address, first + 1),
              std::string::npos)
        << text;
  }
}

TEST_F(PartitionedFrontTest, ANodeThatLeftIsNotSuspectWhenItComesBack) {
  Client first;
  ask_late(first, "");
  caller_.answer(1, leased());
  wide_.update({.members = {}, .owners = {}, .held_until = {}, .partitioned = {{"q", 2}}});
  set_partitioned({{"q", 2}});
  std::set<std::string> asked;
  for (std::size_t call = 2; call < 6; call += 2) {
    Client worker;
    worker.ask(wide_, lease_request(""));
    for (const std::size_t at : {call, call + 1}) {
      ASSERT_EQ(caller_.calls.size(), at + 1);
      asked.insert(caller_.calls[at].address);
      caller_.answer(at, nothing());
    }
    EXPECT_EQ(worker.answer().body, nothing().body);
  }
  EXPECT_EQ(asked.size(), 2u);
}

// ---- a queue that is divided while somebody waits ----

TEST_F(PartitionedFrontTest, AWaitThatBeganBeforeAQueueWasDividedGoesOnAtAllOfIt) {
  set_partitioned({});
  Client worker;
  worker.ask(wide_, lease_request());
  ASSERT_EQ(caller_.calls.size(), 1u);
  set_partitioned({{"another", 2}});
  EXPECT_EQ(caller_.calls.size(), 1u) << "this one is where it was";
  set_partitioned({{"q", 2}});
  ASSERT_EQ(caller_.calls.size(), 3u);
  EXPECT_EQ(caller_.calls[1].request.target, "/v1/cluster/end-wait");
  EXPECT_EQ(header(caller_.calls[1], "detent-call"), header(caller_.calls[0], "detent-call"));
  for (const std::size_t call : {2u, 3u}) {
    ASSERT_EQ(caller_.calls.size(), call + 1);
    caller_.answer(call, nothing());
  }
  ASSERT_EQ(caller_.calls.size(), 6u);
  EXPECT_NE(caller_.calls[4].address, caller_.calls[5].address);
  for (const std::size_t call : {4u, 5u}) {
    const std::string& body = caller_.calls[call].request.body;
    EXPECT_TRUE(body.starts_with(R"({"wait_ms":)")) << body;
  }
  caller_.answer(0, leased());  // it had been on its way
  expect_released(6, 0);
  EXPECT_FALSE(worker.is_answered());
  caller_.answer(5, leased());
  EXPECT_EQ(worker.answer().body, leased().body);
}

TEST_F(PartitionedFrontTest, AQueueThatIsDividedWhileItsFirstQuestionIsPutIsFollowed) {
  set_partitioned({});
  caller_.on_call = [this] { set_partitioned({{"q", 2}}); };
  Client worker;
  worker.ask(wide_, lease_request());  // it follows no queue before it has asked
  ASSERT_EQ(caller_.calls.size(), 3u);
  EXPECT_EQ(caller_.calls[1].request.target, "/v1/cluster/end-wait");
  EXPECT_EQ(header(caller_.calls[1], "detent-call"), header(caller_.calls[0], "detent-call"));
  caller_.answer(2, leased());
  EXPECT_EQ(worker.answer().body, leased().body);
  caller_.answer(0, leased());
  expect_released(3, 0);
}

TEST_F(PartitionedFrontTest, AQueueThatIsMovedWhileItsWaitIsPlannedIsPlannedOnceMoreNotTwiceAsked) {
  HookedClock clock;
  ClusterFront front({.shards = 2, .node = "a"}, shards_, here_, link_, clock, [] {});
  update(front, {});
  Client worker;
  worker.ask(front, lease_request());
  ASSERT_EQ(caller_.calls.size(), 1u);
  clock.on_now = [&] { update(front, {}); };  // planning a request reads the time
  update(front, {{"q", 2}});
  EXPECT_FALSE(clock.on_now);
  ASSERT_EQ(caller_.calls.size(), 3u);
  EXPECT_EQ(caller_.calls[1].request.target, "/v1/cluster/end-wait");
  EXPECT_EQ(header(caller_.calls[1], "detent-call"), header(caller_.calls[0], "detent-call"));
  EXPECT_EQ(caller_.calls[2].address, caller_.calls[0].address);
  caller_.answer(2, leased());
  EXPECT_EQ(worker.answer().body, leased().body);
  caller_.answer(0, nothing());
  caller_.answer(1, {.status = 200, .body = "{}"});
}

TEST_F(PartitionedFrontTest, WhoeverDividesAQueueHasTheWaitsAtThisNodeGoOn) {
  Client worker;
  worker.ask(wide_, {.method = "POST",
                     .target = "/v1/queues/r/lease",
                     .headers = {{"host", "localhost"}},
                     .body = R"({"wait":"30s"})"});
  Client client;
  client.ask(
      wide_,
      {.method = "PATCH", .target = "/v1/queues/r", .headers = {}, .body = R"({"partitions":2})"});
  const QueueView view{.stats = {.queue = "r"}, .settings = {.partitions = 2}};
  for (const std::size_t call : {1u, 2u}) {
    caller_.answer(call, {.status = 200, .body = json::render_queue(view)});
  }
  EXPECT_EQ(client.answer().status, 200);
  ASSERT_EQ(caller_.calls.size(), 5u);
  EXPECT_EQ(caller_.calls[3].request.target, "/v1/cluster/end-wait");
  caller_.answer(4, leased());
  EXPECT_EQ(worker.answer().body, leased().body);
}

TEST_F(PartitionedFrontTest, AnAnsweredOrAbandonedRequestFollowsNoQueue) {
  set_partitioned({});
  Client answered;
  answered.ask(wide_, lease_request());
  caller_.answer(0, leased());
  Client gone;
  gone.ask(wide_, lease_request());
  gone.go_away();
  const std::size_t calls = caller_.calls.size();
  set_partitioned({{"q", 2}});
  EXPECT_EQ(caller_.calls.size(), calls);
}

}  // namespace
}  // namespace detent::server

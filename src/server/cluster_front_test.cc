// The door of one node: its shards are real, the other nodes are a caller that notes what they are
// asked and answers when the test says so.
#include "server/cluster_front.h"

#include <gtest/gtest.h>

#include <atomic>
#include <future>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "protocol/json/answer_parser.h"
#include "protocol/json/queue_renderer.h"
#include "server/one_shard_fixture.h"
#include "server/shard_jobs.h"

namespace detent::server {
namespace {

/// A client's request, and what became of it.
class Client {
 public:
  void ask(ClusterFront& front, net::HttpRequest request) {
    auto exchange = std::make_shared<net::LocalExchange>(
        [answer = answer_](std::optional<net::HttpResponse> response) {
          answer->set_value(std::move(response).value_or(net::HttpResponse{.status = 500}));
          return true;
        });
    exchange_ = exchange;
    front.handle(std::move(request), net::Responder(std::move(exchange)));
  }
  void go_away() {
    if (const auto exchange = exchange_.lock()) exchange->abandon();
  }
  bool is_answered() const { return future_.wait_for(0s) == std::future_status::ready; }
  net::HttpResponse answer() { return future_.get(); }

 private:
  std::shared_ptr<std::promise<net::HttpResponse>> answer_ =
      std::make_shared<std::promise<net::HttpResponse>>();
  std::future<net::HttpResponse> future_ = answer_->get_future();
  std::weak_ptr<net::LocalExchange> exchange_;
};

net::HttpRequest lease_request(const std::string& body = R"({"wait":"30s"})") {
  return {.method = "POST",
          .target = "/v1/queues/q/lease",
          .headers = {{"host", "localhost"}},
          .body = body};
}

/// A cluster of one shard.
class ClusterFrontTest : public OneShardTest {
 protected:
  static constexpr std::size_t kMostCalls = 4;

  void serve() {
    open_shard();
    hold(kLease);
  }
  /// As far as the front knows this node has the shard at that epoch.
  void hold(const ShardLease& lease) {
    front_.update({.members = {{"a", "10.0.0.1:7070"}},
                   .owners = {{0, "a", lease.epoch, false}},
                   .held_until = {{lease, clock_.now() + 1h}}});
  }
  /// Another has it.
  void give_to(const std::string& node, const std::string& address) {
    front_.update({.members = {{"a", "10.0.0.1:7070"}, {node, address}},
                   .owners = {{0, node, 7, false}},
                   .held_until = {}});
  }
  void await_worker() {
    const net::HttpRequest stats{
        .method = "GET", .target = "/v1/stats", .headers = {{"host", "localhost"}}, .body = ""};
    while (ask_shard(stats).body.find(R"("waiting_workers":1)") == std::string::npos) {
    }
  }
  /// A worker of the shard's gets the task, without waiting for a lease to run out.
  void expect_free() {
    const auto tasks =
        json::parse_leased_tasks(ask_shard(lease_request(R"({"wait":"20s"})")).body).value();
    EXPECT_EQ(tasks.size(), 1u);
  }
  static net::HttpRequest jobs_request() {
    return {.method = "POST", .target = std::string(kJobsTarget), .headers = {}, .body = ""};
  }
  static net::HttpResponse leased() {
    return {
        .status = 200,
        .body =
            R"({"tasks":[{"id":"256","queue":"q","payload":1,"attempt":1,)"
            R"("priority":5,"due_at":"2026-01-01T00:00:00.000Z","lateness_ms":0,"lease":"1-256",)"
            R"("lease_until":"2026-01-01T00:01:00.000Z","headers":{}}]})"};
  }

  std::atomic<int> strays_{0};
  ClusterFront front_{{.shards = 1, .node = "a", .max_calls_to_a_node = kMostCalls},
                      shards_,
                      here_,
                      link_,
                      clock_,
                      [this] { ++strays_; }};
};

TEST_F(ClusterFrontTest, ALeaseThatIsHeldBackIsGivenBackAtOnce) {
  serve();
  Client worker;
  worker.ask(front_, lease_request());
  await_worker();
  give_to("b", "10.0.0.2:7070");
  put_task();
  EXPECT_EQ(worker.answer().status, 503);
  expect_free();
}

TEST_F(ClusterFrontTest, AnEngineOfAnEarlierEpochHandsNothingOut) {
  serve();
  Client worker;
  worker.ask(front_, lease_request());
  await_worker();
  hold({.shard = 0, .epoch = 3});  // it was another's in between
  put_task();
  EXPECT_EQ(worker.answer().status, 503);
}

TEST_F(ClusterFrontTest, AnotherNodeIsShownWhatAShardReadsAndNoMore) {
  give_to("b", "10.0.0.2:7070");
  Client client;
  net::HttpRequest request = lease_request();
  request.peer = "10.9.9.9";
  request.headers.emplace_back("cookie", std::string(15'000, 'c'));
  request.headers.emplace_back("authorization", "Bearer dt_1");
  client.ask(front_, std::move(request));
  ASSERT_EQ(caller_.calls.size(), 1u);
  const FakeCaller::Call& call = caller_.calls[0];
  EXPECT_EQ(call.address, "10.0.0.2:7070");
  EXPECT_EQ(header(call, "cookie"), "");
  EXPECT_EQ(header(call, "authorization"), "Bearer dt_1");
  EXPECT_EQ(header(call, "detent-shard"), "0");
  EXPECT_EQ(header(call, "detent-cluster"), "s");
  EXPECT_EQ(header(call, "detent-host"), "localhost");
  EXPECT_EQ(header(call, "detent-peer"), "10.9.9.9");
  caller_.answer(0, {.status = 200, .body = "{}"});
  EXPECT_EQ(client.answer().body, "{}");
}

TEST_F(ClusterFrontTest, OfAWorkerThatGoesAwayTheWaitIsEndedAndTheLeaseGivenBack) {
  give_to("b", "10.0.0.2:7070");
  Client worker;
  worker.ask(front_, lease_request());
  worker.go_away();
  ASSERT_EQ(caller_.calls.size(), 2u);
  EXPECT_EQ(caller_.calls[1].address, "10.0.0.2:7070");
  EXPECT_EQ(caller_.calls[1].request.target, "/v1/cluster/end-wait");
  EXPECT_EQ(header(caller_.calls[1], "detent-cluster"), "s");
  EXPECT_FALSE(header(caller_.calls[0], "detent-call").empty());
  EXPECT_EQ(header(caller_.calls[1], "detent-call"), header(caller_.calls[0], "detent-call"));
  EXPECT_FALSE(caller_.calls[0].is_abandoned) << "its answer may hold a lease";
  caller_.answer(0, leased());
  ASSERT_EQ(caller_.calls.size(), 3u);
  EXPECT_EQ(caller_.calls[2].request.target, "/v1/leases/release");
  EXPECT_EQ(caller_.calls[2].request.body, R"({"leases":["1-256"]})");
  caller_.answer(2, {.status = 200, .body = "{}"});
}

TEST_F(ClusterFrontTest, AnotherRequestOfOneWhoGoesAwayIsCutOff) {
  give_to("b", "10.0.0.2:7070");
  Client client;
  client.ask(front_, {.method = "GET", .target = "/v1/queues", .headers = {}, .body = ""});
  client.go_away();
  ASSERT_EQ(caller_.calls.size(), 1u);
  EXPECT_TRUE(caller_.calls[0].is_abandoned);
}

TEST_F(ClusterFrontTest, WhenAShardMovesTheNewOwnerIsGivenBackWhatTheOldHandedOut) {
  give_to("b", "10.0.0.2:7070");
  Client worker;
  worker.ask(front_, lease_request());
  Client reader;
  reader.ask(front_, {.method = "GET", .target = "/v1/queues/q", .headers = {}, .body = ""});
  give_to("c", "10.0.0.3:7070");
  EXPECT_EQ(worker.answer().status, 503);
  EXPECT_EQ(reader.answer().status, 503);
  EXPECT_FALSE(caller_.calls[0].is_abandoned);
  EXPECT_TRUE(caller_.calls[1].is_abandoned);
  caller_.answer(0, leased());
  ASSERT_EQ(caller_.calls.size(), 3u);
  EXPECT_EQ(caller_.calls[2].address, "10.0.0.3:7070");
  EXPECT_EQ(caller_.calls[2].request.target, "/v1/leases/release");
  caller_.answer(2, {.status = 200, .body = "{}"});
}

TEST_F(ClusterFrontTest, ANodeIsAskedByABoundedNumberAtATime) {
  give_to("b", "10.0.0.2:7070");
  std::vector<Client> clients(kMostCalls + 2);
  const net::HttpRequest read{
      .method = "GET", .target = "/v1/queues/q", .headers = {{"host", "localhost"}}, .body = ""};
  for (std::size_t i = 0; i <= kMostCalls; ++i) clients[i].ask(front_, read);
  ASSERT_EQ(caller_.calls.size(), kMostCalls);
  const net::HttpResponse refused = clients[kMostCalls].answer();
  EXPECT_EQ(refused.status, 503);
  EXPECT_EQ(refused.header("retry-after"), "1");
  caller_.answer(0, {.status = 200, .body = "{}"});
  clients.back().ask(front_, read);
  EXPECT_EQ(caller_.calls.size(), kMostCalls + 1);
}

TEST_F(ClusterFrontTest, HalfOfTheCallsToANodeMayWaitForTasks) {
  give_to("b", "10.0.0.2:7070");
  std::vector<Client> workers(kMostCalls / 2 + 2);
  for (std::size_t i = 0; i <= kMostCalls / 2; ++i) workers[i].ask(front_, lease_request());
  ASSERT_EQ(caller_.calls.size(), kMostCalls / 2);
  EXPECT_EQ(workers[kMostCalls / 2].answer().status, 503);
  net::HttpResponse refused;
  (void)front_.ask({.shard = 0, .request = jobs_request(), .may_wait = true},
                   [&](net::HttpResponse response) {
                     refused = std::move(response);
                     return true;
                   });
  EXPECT_EQ(refused.status, 503);
  EXPECT_EQ(strays_, 0) << "the shard is where it was";
  Client reader;
  reader.ask(front_, {.method = "GET", .target = "/v1/queues/q", .headers = {}, .body = ""});
  EXPECT_EQ(caller_.calls.size(), kMostCalls / 2 + 1);
  caller_.answer(0, {.status = 200, .body = "{}"});
  workers.back().ask(front_, lease_request());
  EXPECT_EQ(caller_.calls.size(), kMostCalls / 2 + 2);
}

TEST_F(ClusterFrontTest, NoNodeIsAskedByMoreThanItTakesOfOneAddress) {
  ClusterFront front{{.shards = 1, .node = "a"}, shards_, here_, link_, clock_, [] {}};
  for (const auto& [address, most] :
       {std::pair{"10.0.0.2:7070", 900u}, std::pair{"127.0.0.1:7070", 4'096u}}) {
    front.update({.members = {{"a", "10.0.0.1:7070"}, {"b", address}},
                  .owners = {{0, "b", 7, false}},
                  .held_until = {}});
    caller_.calls.clear();
    for (unsigned i = 0; i < most + 10; ++i) {
      (void)front.ask({.shard = 0, .request = jobs_request()},
                      [](const net::HttpResponse&) { return true; });
    }
    EXPECT_EQ(caller_.calls.size(), most);
  }
}

TEST_F(ClusterFrontTest, WhatBeanstalkClientsAskedIsCutOffWithItsNodeNotWhenTheShardMoves) {
  give_to("b", "10.0.0.2:7070");
  int status = 0;
  (void)front_.ask({.shard = 0, .request = jobs_request()}, [&](const net::HttpResponse& response) {
    status = response.status;
    return true;
  });
  front_.update({.members = {{"a", "10.0.0.1:7070"}, {"b", "10.0.0.2:7070"}},
                 .owners = {{0, "a", 8, false}},
                 .held_until = {}});
  EXPECT_EQ(status, 0);
  EXPECT_FALSE(caller_.calls[0].is_abandoned);
  give_to("c", "10.0.0.3:7070");
  EXPECT_EQ(status, 503);
  EXPECT_TRUE(caller_.calls[0].is_abandoned);
}

TEST_F(ClusterFrontTest, AWaitHasTheNameOfNoneBeforeARestart) {
  ClusterFront again{{.shards = 1, .node = "a"}, shards_, here_, link_, clock_, [] {}};
  give_to("b", "10.0.0.2:7070");
  again.update({.members = {{"a", "10.0.0.1:7070"}, {"b", "10.0.0.2:7070"}},
                .owners = {{0, "b", 7, false}},
                .held_until = {}});
  Client before;
  Client after;
  before.ask(front_, lease_request());
  after.ask(again, lease_request());
  ASSERT_EQ(caller_.calls.size(), 2u);
  EXPECT_NE(header(caller_.calls[0], "detent-call"), header(caller_.calls[1], "detent-call"));
  for (std::size_t i = 0; i < 2; ++i) caller_.answer(i, {.status = 200, .body = "{}"});
}

TEST_F(ClusterFrontTest, AScraperOfANodeThatStopsIsToldToTryAgain) {
  here_engine_.stop();
  Client scraper;
  scraper.ask(
      front_,
      {.method = "GET", .target = "/metrics", .headers = {{"host", "localhost"}}, .body = ""});
  EXPECT_EQ(scraper.answer().status, 503);
}

TEST_F(ClusterFrontTest, WhoeverAsksAShardIsAnsweredBeforeItsEndIsOver) {
  serve();
  Client worker;
  worker.ask(front_, lease_request());
  await_worker();
  shards_.end();
  EXPECT_TRUE(worker.is_answered());
  EXPECT_FALSE(shards_.find(0));
}

TEST_F(ClusterFrontTest, AWaitOfAnotherNodesWorkerIsEndedByItsName) {
  serve();
  const net::HttpHeaders of_node{{"detent-cluster", "s"},
                                 {"detent-shard", "0"},
                                 {"detent-host", "localhost"},
                                 {"detent-call", "b-1"}};
  net::HttpRequest request = lease_request();
  request.headers = of_node;
  Client worker;
  worker.ask(front_, std::move(request));
  await_worker();
  Client end;
  end.ask(front_,
          {.method = "POST", .target = "/v1/cluster/end-wait", .headers = of_node, .body = ""});
  EXPECT_EQ(end.answer().status, 200);
  EXPECT_EQ(worker.answer().body, R"({"tasks":[]})");
  put_task();
  expect_free();
}

TEST_F(ClusterFrontTest, AnEndThatOvertakesItsWaitEndsIt) {
  serve();
  const net::HttpHeaders of_node{{"detent-cluster", "s"},
                                 {"detent-shard", "0"},
                                 {"detent-host", "localhost"},
                                 {"detent-call", "b-1"}};
  Client end;
  end.ask(front_,
          {.method = "POST", .target = "/v1/cluster/end-wait", .headers = of_node, .body = ""});
  EXPECT_EQ(end.answer().status, 200);
  net::HttpRequest request = lease_request();
  request.headers = of_node;
  Client worker;
  worker.ask(front_, request);
  EXPECT_TRUE(worker.is_answered());
  EXPECT_EQ(worker.answer().body, R"({"tasks":[]})");
  Client next;
  next.ask(front_, std::move(request));
  await_worker();
  EXPECT_FALSE(next.is_answered()) << "an end is of one wait";
  next.go_away();
  put_task();
  expect_free();
}

/// Keeps the engine of a shard busy until it is let go.
class Hang {
 public:
  explicit Hang(ServedShard& shard) {
    shard.ask_figures([this](const ClusterFigures&) {
      hangs_.set_value();
      goes_on_.get_future().wait();
    });
    hangs_.get_future().wait();
  }
  void let_go() { goes_on_.set_value(); }

 private:
  std::promise<void> hangs_;
  std::promise<void> goes_on_;
};

TEST_F(ClusterFrontTest, FiguresAreShownWhileAnEngineHangs) {
  serve();
  put_task();
  const net::HttpRequest metrics{
      .method = "GET", .target = "/metrics", .headers = {{"host", "localhost"}}, .body = ""};
  Client before;
  before.ask(front_, metrics);
  EXPECT_NE(before.answer().body.find("\ndetent_scheduled_total 1\n"), std::string::npos);
  give_to("b", "10.0.0.2:7070");  // it is cut off from the database, too
  Hang hang(*shards_.find(0));
  Client during;
  during.ask(front_, metrics);
  while (!during.is_answered()) shards_.look_at_pages();
  EXPECT_NE(during.answer().body.find("\ndetent_scheduled_total 1\n"), std::string::npos);
  hang.let_go();
}

TEST_F(ClusterFrontTest, AShardWhoseEngineHangsDoesNotWork) {
  serve();
  std::promise<void> works;
  std::future<void> seen = works.get_future();
  Hang hang(*shards_.find(0));
  shards_.find(0)->ask_whether_it_works([&works] { works.set_value(); });
  EXPECT_EQ(seen.wait_for(0s), std::future_status::timeout);
  hang.let_go();
  seen.wait();
}

// ---- a queue with partitions ----

/// Two shards, both at other nodes, and a queue that is on both.
class PartitionedFrontTest : public ClusterFrontTest {
 protected:
  PartitionedFrontTest() { update("10.0.0.3:7070"); }

  void update(const std::string& second) {
    wide_.update({.members = {{"b", "10.0.0.2:7070"}, {"c", second}},
                  .owners = {{0, "b", 1, false}, {1, "c", 1, false}},
                  .held_until = {},
                  .partitioned = {{"q", 2}}});
  }
  static net::HttpResponse nothing() { return {.status = 200, .body = R"({"tasks":[]})"}; }
  /// A worker that waits at both: by calls 2 and 3.
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

TEST_F(PartitionedFrontTest, AWorkerWhoseHomeNobodyHasIsAnsweredAtOnce) {
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

TEST_F(PartitionedFrontTest, WhoDividedAQueueFindsItDividedAtOnce) {
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

}  // namespace
}  // namespace detent::server

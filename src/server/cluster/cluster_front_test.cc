#include "server/cluster/cluster_front.h"

#include <gtest/gtest.h>

#include <future>
#include <string>
#include <utility>
#include <vector>

#include "protocol/json/answer_codec.h"
#include "server/testing/cluster_front_fixture.h"

namespace detent::server {
namespace {

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

TEST_F(ClusterFrontTest, AMissingNodeIsReportedAndCounted) {
  front_.update({.members = {{"a", "10.0.0.1:7070"}},
                 .owners = {{0, "a", 2, false}},
                 .held_until = {},
                 .missing = {{"b", "10.0.0.2:7070", 5s}}});
  const std::string told = front_.render();
  EXPECT_NE(told.find(R"("missing":[{"node":"b","address":"10.0.0.2:7070","missing_ms":5000}])"),
            std::string::npos)
      << told;
  EXPECT_EQ(front_.nodes().alive, 1u);
  EXPECT_EQ(front_.nodes().missing, 1u);
}

TEST_F(ClusterFrontTest, AnEngineOfAnEarlierEpochHandsNothingOut) {
  serve();
  Client worker;
  worker.ask(front_, lease_request());
  await_worker();
  hold({.shard = 0, .epoch = 3});  // another node had the shard in between
  put_task();
  EXPECT_EQ(worker.answer().status, 503);
}

TEST_F(ClusterFrontTest, OnlyTheHeadersThatAShardReadsAreForwarded) {
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

TEST_F(ClusterFrontTest, WhenAWorkerDisconnectsItsWaitEndsAndItsLeaseIsReleased) {
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

TEST_F(ClusterFrontTest, WhenAClientDisconnectsAnOrdinaryRequestIsCutOff) {
  give_to("b", "10.0.0.2:7070");
  Client client;
  client.ask(front_, {.method = "GET", .target = "/v1/queues", .headers = {}, .body = ""});
  client.go_away();
  ASSERT_EQ(caller_.calls.size(), 1u);
  EXPECT_TRUE(caller_.calls[0].is_abandoned);
}

TEST_F(ClusterFrontTest, WhenAShardMovesUnwantedLeasesAreReleasedAtTheNewOwner) {
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
  EXPECT_TRUE(refused.body.starts_with(R"({"type":"urn:detent:error:unavailable")"))
      << refused.body;
  caller_.answer(0, {.status = 200, .body = "{}"});
  clients.back().ask(front_, read);
  EXPECT_EQ(caller_.calls.size(), kMostCalls + 1);
}

// Each call needs a socket. A wait at the old owner of the shard lasts until it is answered.
TEST_F(ClusterFrontTest, AllNodesTogetherAreAskedByABoundedNumberAtATime) {
  give_to("b", "10.0.0.2:7070");
  std::vector<Client> workers(kMostCalls / 2);
  for (Client& worker : workers) worker.ask(front_, lease_request());
  give_to("c", "10.0.0.3:7070");
  std::vector<Client> clients(kMostCalls);
  const net::HttpRequest read{
      .method = "GET", .target = "/v1/queues/q", .headers = {{"host", "localhost"}}, .body = ""};
  for (Client& client : clients) client.ask(front_, read);
  EXPECT_EQ(caller_.calls.size(), kMostCallsToAll);
  EXPECT_EQ(clients.back().answer().status, 503);
}

TEST_F(ClusterFrontTest, HalfOfTheCallsToAllNodesMayWaitForTasks) {
  give_to("b", "10.0.0.2:7070");
  std::vector<Client> workers(kMostCallsToAll / 2);
  for (Client& worker : workers) worker.ask(front_, lease_request());
  give_to("c", "10.0.0.3:7070");
  Client waits;
  waits.ask(front_, lease_request());
  EXPECT_EQ(waits.answer().status, 503);
  Client reader;
  reader.ask(front_, {.method = "GET", .target = "/v1/queues/q", .headers = {}, .body = ""});
  EXPECT_EQ(caller_.calls.size(), workers.size() + 1);
  caller_.answer(0, {.status = 200, .body = "{}"});
  Client next;
  next.ask(front_, lease_request());
  EXPECT_EQ(caller_.calls.size(), workers.size() + 2);
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

TEST_F(ClusterFrontTest, QuestionsOfBeanstalkClientsEndWithTheNodeNotWithTheShard) {
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

TEST_F(ClusterFrontTest, AScraperOfANodeThatStopsGetsThePageWithoutShards) {
  shards_.end();
  Client scraper;
  scraper.ask(
      front_,
      {.method = "GET", .target = "/metrics", .headers = {{"host", "localhost"}}, .body = ""});
  const net::HttpResponse page = scraper.answer();
  EXPECT_EQ(page.status, 200);
  EXPECT_NE(page.body.find("detent_build_info"), std::string::npos);
  EXPECT_NE(page.body.find("detent_lateness_seconds_bucket{le=\"0.001"), std::string::npos)
      << page.body;
}

TEST_F(ClusterFrontTest, TheRoutesOfANodeRefuseRequestsThatNeedAShard) {
  std::promise<net::HttpResponse> answer;
  here_.handle({.method = "POST",
                .target = "/v1/tasks",
                .headers = {{"host", "localhost"}},
                .body = R"({"queue":"q","payload":1})"},
               net::Responder(std::make_shared<net::LocalExchange>(
                   [&answer](std::optional<net::HttpResponse> response) {
                     answer.set_value(*std::move(response));
                     return true;
                   })));
  EXPECT_EQ(answer.get_future().get().status, 503);
}

TEST_F(ClusterFrontTest, RequestsAreAnsweredBeforeTheEndOfAShard) {
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

TEST(PeerWaits, EndsOfAllWaitsOfANodeMayComeBeforeThem) {
  constexpr int kWaits = 2'048;  // half of the limit of calls from one node to another
  PeerWaits waits;
  for (int i = 0; i < kWaits; ++i) waits.end("b-" + std::to_string(i));
  int ended = 0;
  for (int i = 0; i < kWaits; ++i) waits.keep("b-" + std::to_string(i), [&ended] { ++ended; });
  EXPECT_EQ(ended, kWaits);
  waits.keep("b-0", [&ended] { ++ended; });
  EXPECT_EQ(ended, kWaits) << "an end is of one wait";
}

/// Keeps the engine of a shard busy until release.
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

}  // namespace
}  // namespace detent::server

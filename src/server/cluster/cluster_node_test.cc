// Nodes of a cluster in one process: real sockets between them, a lease table and disks in memory.
// Cases that need whole processes (kill -9, a database that stops) are in tests/cluster.
#include "server/cluster/cluster_node.h"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <future>
#include <memory>
#include <set>
#include <sstream>
#include <string>
#include <thread>
#include <utility>

#include "base/log/log.h"
#include "base/testing/count_of.h"
#include "protocol/json/answer_codec.h"
#include "server/testing/cluster_node_fixture.h"
#include "tests/support/raw_socket.h"

namespace detent::server {
namespace {

class ClusterNodeTest : public TwoNodesTest {
 protected:
  /// The number of accepted tasks in the metrics of a node.
  static int counted(TestNode& node) {
    constexpr std::string_view kName = "\ndetent_scheduled_total ";
    const net::HttpResponse page = node.send("GET", "/metrics");
    EXPECT_EQ(page.status, 200);
    const std::size_t at = page.body.find(kName);
    return at == std::string::npos ? -1 : std::stoi(page.body.substr(at + kName.size()));
  }
  static std::string queue(int number) { return "q" + std::to_string(number); }
  static std::string put(int number) {
    return R"({"queue":")" + queue(number) + R"(","payload":)" + std::to_string(number) + "}";
  }
  static json::LeasedTaskAnswer lease_of(const net::HttpResponse& answer) {
    const auto tasks = json::parse_leased_tasks(answer.body).value();
    EXPECT_EQ(tasks.size(), 1u) << answer.body;
    return tasks.at(0);
  }
};

TEST_F(ClusterNodeTest, AnyNodeAnswersForAnyQueue) {
  std::set<ShardNumber> shards;
  for (int i = 0; i < 20; ++i) {
    TestNode& one = i % 2 == 0 ? a_ : b_;
    TestNode& other = i % 2 == 0 ? b_ : a_;
    ASSERT_EQ(one.ask("POST", "/v1/tasks", put(i)).status, 201);
    shards.insert(shard_of_queue(queue(i), kShards));
    const net::HttpResponse leased = other.ask("POST", "/v1/queues/" + queue(i) + "/lease", "{}");
    ASSERT_EQ(leased.status, 200);
    const json::LeasedTaskAnswer task = lease_of(leased);
    EXPECT_EQ(task.payload.data, std::to_string(i));
    EXPECT_EQ(task.id.shard(), shard_of_queue(queue(i), kShards));
    EXPECT_EQ(one.ask("GET", "/v1/tasks/" + to_string(task.id)).status, 200);
    const auto done =
        one.ask("POST", "/v1/leases/complete", R"({"leases":[")" + task.lease + R"("]})");
    EXPECT_EQ(done.body, R"({"results":[{"status":"done"}]})");
    EXPECT_EQ(other.ask("GET", "/v1/tasks/" + to_string(task.id)).status, 404);
  }
  EXPECT_GT(shards.size(), 4u);
}

TEST_F(ClusterNodeTest, TheShardsAreDividedAndAllOfThemAnswer) {
  settle();
  std::string batch;
  for (int i = 0; i < 50; ++i) batch += put(i) + "\n";
  const auto accepted =
      a_.send("POST", "/v1/tasks/batch", batch, {{"content-type", "application/x-ndjson"}});
  EXPECT_EQ(json::parse_schedule_results(accepted.body).value().size(), 50u);
  for (TestNode* node : {&a_, &b_}) {
    EXPECT_NE(node->send("GET", "/v1/stats?queues=0").body.find(R"("ready":50)"),
              std::string::npos);
    EXPECT_NE(node->send("GET", "/metrics").body.find("detent_scheduled_total"), std::string::npos);
  }
}

TEST_F(ClusterNodeTest, ALongPollIsPassedOnAndSoIsItsEnd) {
  settle();
  // One of the two nodes must forward the request.
  for (TestNode* node : {&a_, &b_}) {
    std::thread worker([node] {
      const auto client = node->new_client();
      const net::HttpRequest request{.method = "POST",
                                     .target = "/v1/queues/" + queue(1) + "/lease",
                                     .headers = {},
                                     .body = R"({"wait":"60s"})"};
      EXPECT_EQ(lease_of(client->send(request).value()).payload.data, "1");
    });
    while (a_.send("GET", "/v1/stats?queues=0").body.find(R"("waiting_workers":1)") ==
           std::string::npos) {
    }
    EXPECT_EQ(a_.send("POST", "/v1/tasks", put(1)).status, 201);
    worker.join();
  }
}

TEST_F(ClusterNodeTest, AWorkerThatGoesAwayWaitsNoMore) {
  settle();
  for (TestNode* node : {&a_, &b_}) {
    // A client that gives up closes its connection.
    const auto impatient =
        net::HttpClient::create("http://" + node->address(), std::chrono::milliseconds{300})
            .value();
    EXPECT_FALSE(impatient->send({.method = "POST",
                                  .target = "/v1/queues/" + queue(1) + "/lease",
                                  .headers = {},
                                  .body = R"({"wait":"60s"})"}));
  }
  while (a_.send("GET", "/v1/stats?queues=0").body.find(R"("waiting_workers":0)") ==
         std::string::npos) {
  }
  EXPECT_EQ(a_.send("POST", "/v1/tasks", put(1)).status, 201);
  EXPECT_EQ(lease_of(b_.send("POST", "/v1/queues/" + queue(1) + "/lease", "{}")).payload.data, "1");
}

TEST_F(ClusterNodeTest, ANodeThatStopsHandsItsShardsOverWithTheirLeases) {
  settle();
  std::vector<std::string> leases;
  for (int i = 0; i < 20; ++i) {
    ASSERT_EQ(a_.send("POST", "/v1/tasks", put(i)).status, 201);
    if (i % 2 == 0) continue;
    leases.push_back(lease_of(a_.send("POST", "/v1/queues/" + queue(i) + "/lease", "{}")).lease);
  }
  b_.stop();
  for (const std::string& lease : leases) {
    EXPECT_EQ(a_.ask("POST", "/v1/leases/complete", R"({"leases":[")" + lease + R"("]})").body,
              R"({"results":[{"status":"done"}]})");
  }
  for (int i = 0; i < 20; i += 2) {
    EXPECT_EQ(lease_of(a_.ask("POST", "/v1/queues/" + queue(i) + "/lease", "{}")).payload.data,
              std::to_string(i));
  }
  EXPECT_NE(a_.send("GET", "/v1/cluster").body.find(R"("node":"a","address")"), std::string::npos);
}

TEST_F(ClusterNodeTest, LeasesStayValidIfTheNewOwnerCannotOpenTheirShardsAtFirst) {
  settle();
  std::vector<std::string> leases;
  for (int i = 0; i < 20; ++i) {
    ASSERT_EQ(a_.send("POST", "/v1/tasks", put(i)).status, 201);
    leases.push_back(lease_of(a_.send("POST", "/v1/queues/" + queue(i) + "/lease", "{}")).lease);
  }
  world_.fail_opens(6);  // of 4 shards
  b_.stop();
  for (const std::string& lease : leases) {
    EXPECT_EQ(a_.ask("POST", "/v1/leases/complete", R"({"leases":[")" + lease + R"("]})").body,
              R"({"results":[{"status":"done"}]})");
  }
  EXPECT_TRUE(world_.has_failed_opens());
}

TEST_F(ClusterNodeTest, CountersOfANodeStayWhenItsShardsMove) {
  settle();
  constexpr int kTasks = 40;
  for (int i = 0; i < kTasks; ++i) ASSERT_EQ(a_.send("POST", "/v1/tasks", put(i)).status, 201);
  const int before = counted(a_);
  EXPECT_GT(before, 0);
  EXPECT_EQ(before + counted(b_), kTasks);
  TestNode c(world_, "c");
  const auto has_shards = [&] {
    const std::string cluster = a_.send("GET", "/v1/cluster").body;
    return cluster.find(R"("node":"c","epoch")") != std::string::npos;
  };
  while (!has_shards()) ASSERT_EQ(counted(a_), before);
  for (int i = 0; i < kTasks; ++i) EXPECT_EQ(c.ask("GET", "/v1/queues/" + queue(i)).status, 200);
  EXPECT_EQ(counted(a_) + counted(b_) + counted(c), kTasks);
  b_.stop();
  while (c.send("GET", "/v1/cluster").body.find(R"("node":"b","epoch")") != std::string::npos) {
    ASSERT_EQ(counted(a_), before);
  }
}

TEST_F(ClusterNodeTest, ANodeThatWasKilledIsMissedAndOneThatLeftIsNot) {
  settle();
  ASSERT_TRUE(World::View(world_).beat({"killed", "10.0.0.9:7070"}, {}));
  const auto has = [this](const std::string& target, const std::string& text) {
    return a_.send("GET", target).body.find(text) != std::string::npos;
  };
  while (!has("/v1/cluster", R"("missing":[{"node":"killed","address":"10.0.0.9:7070",)")) {
  }
  EXPECT_TRUE(has("/metrics", R"(detent_cluster_nodes{state="alive"} 2)"));
  EXPECT_TRUE(has("/metrics", R"(detent_cluster_nodes{state="missing"} 1)"));
  EXPECT_TRUE(has("/metrics", "\ndetent_store_up 1\n"));
  b_.stop();
  while (!has("/metrics", R"(detent_cluster_nodes{state="alive"} 1)")) {
  }
  EXPECT_TRUE(has("/metrics", R"(detent_cluster_nodes{state="missing"} 1)"));
}

TEST_F(ClusterNodeTest, TellsThatItsEnginesWork) {
  settle();
  std::promise<void> works;
  a_.node().ask_whether_it_works([&works] { works.set_value(); });
  works.get_future().wait();
}

TEST_F(ClusterNodeTest, AStreamOfEventsTellsWhatHappensOnAllNodesAndOfAGapWhenOneGoes) {
  settle();
  test::RawSocket stream(a_.port());
  ASSERT_TRUE(stream.send("GET /v1/events?types=task HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n"));
  std::string seen;
  const auto has_seen = [&](const std::string& text) {
    while (stream.has_input()) seen += stream.read(1);
    return seen.find(text) != std::string::npos;
  };
  for (int i = 0; i < 20; ++i) {
    const std::string of_queue = R"("queue":")" + queue(i) + R"(","change":"ready")";
    // The changes of another node arrive some milliseconds after the beginning of the stream.
    do {
      ASSERT_EQ(b_.send("POST", "/v1/tasks", put(i)).status, 201);
    } while (!has_seen(of_queue));
  }
  EXPECT_EQ(seen.find(R"("missed":null)"), std::string::npos) << seen;
  b_.stop();
  while (!has_seen("event: missed\ndata: {\"missed\":null}")) {
  }
  EXPECT_EQ(a_.send("GET", "/v1/cluster/changes?after=").status, 404) << "that is for nodes";
}

TEST_F(ClusterNodeTest, OnlyANodeMayNameTheShard) {
  settle();
  EXPECT_EQ(
      a_.send("GET", "/v1/queues", "", {{"detent-shard", "0"}, {"detent-cluster", "of another"}})
          .status,
      403);
  // Without the secret, the header is ignored.
  const std::string queue_name = queue(1);
  const ShardNumber wrong = (shard_of_queue(queue_name, kShards) + 1) % kShards;
  const auto accepted = a_.send("POST", "/v1/tasks", put(1),
                                {{"detent-shard", std::to_string(wrong)}, {"detent-peer", "x"}});
  EXPECT_EQ(json::parse_accepted(accepted.body).value().id.shard(),
            shard_of_queue(queue_name, kShards));
  // With the secret, only this shard may answer.
  const net::HttpHeaders of_node{{"detent-cluster", std::string(kSecret)}, {"detent-shard", "99"}};
  EXPECT_EQ(a_.send("GET", "/v1/queues", "", of_node).status, 503);
}

TEST_F(ClusterNodeTest, WithoutItsLeasesANodeAnswersNothing) {
  settle();
  ASSERT_EQ(a_.send("POST", "/v1/tasks", put(1)).status, 201);
  world_.set_down(true);
  while (a_.send("GET", "/v1/queues/" + queue(1)).status == 200 ||
         b_.send("GET", "/v1/queues/" + queue(1)).status == 200) {
  }
  const net::HttpResponse refused = a_.send("POST", "/v1/queues/" + queue(1) + "/lease", "{}");
  EXPECT_EQ(refused.status, 503);
  EXPECT_EQ(refused.header("retry-after"), "1");
  EXPECT_EQ(a_.send("GET", "/readyz").status, 503);
  EXPECT_EQ(a_.send("GET", "/healthz").status, 200);
  EXPECT_EQ(counted(a_) + counted(b_), 1);
  while (a_.send("GET", "/metrics").body.find("\ndetent_store_up 0\n") == std::string::npos) {
  }
  world_.set_down(false);
  EXPECT_EQ(lease_of(a_.ask("POST", "/v1/queues/" + queue(1) + "/lease", "{}")).payload.data, "1");
}

/// Keeps the log. Read it after the nodes have stopped.
class KeptLog {
 public:
  KeptLog() { configure_log({.out = &out_}); }
  ~KeptLog() { configure_log({.level = LogLevel::error}); }

 protected:
  int count(const std::string& words) const { return count_of(words, out_.str()); }
  std::ostringstream out_;
};

class ClusterNodeLogTest : public KeptLog, public TwoNodesTest {
 protected:
  static void await(TestNode& node, const std::string& target, const std::string& words) {
    while (node.send("GET", target).body.find(words) == std::string::npos) {
    }
  }
};

TEST_F(ClusterNodeLogTest, AnOutageOfTheDatabaseIsToldOnceWithItsCauseAndItsEnd) {
  settle();
  set_log_level(LogLevel::info);
  world_.set_down(true);
  for (TestNode* node : {&a_, &b_}) await(*node, "/metrics", "\ndetent_store_up 0");
  world_.set_down(false);
  for (TestNode* node : {&a_, &b_}) await(*node, "/metrics", "\ndetent_store_up 1");
  a_.stop();
  b_.stop();
  EXPECT_EQ(count("error the cluster's database does not answer cause=\"the database is down\" "
                  "action=\"check the database"),
            2)
      << out_.str();
  EXPECT_EQ(count("info the cluster's database answers again"), 2) << out_.str();
}

TEST_F(ClusterNodeLogTest, ANodeSaysWhoseShardsItServesAndWhyItClosesShards) {
  settle();
  set_log_level(LogLevel::info);
  b_.stop();
  await(a_, "/v1/cluster", R"("shards":8)");
  a_.stop();
  EXPECT_GE(count("info serving shards count="), 1) << out_.str();
  EXPECT_GE(count(" from=b\n"), 1) << out_.str();
  EXPECT_GE(count(" reason=\"this node stops\"\n"), 2) << out_.str();
  EXPECT_EQ(count("serving a shard"), 0) << out_.str();
}

TEST(ClusterNodeAccess, AWaitForATaskEndsWhenItsTokenIsRemoved) {
  const std::string file = ::testing::TempDir() + "cluster_" + std::to_string(getpid()) + ".toml";
  const auto write_token = [&file](const std::string& token) {
    std::ofstream(file) << "[[token]]\nname = \"one\"\nscopes = [\"consume\"]\nsha256 = \""
                        << to_hex(hash_token(token)) << "\"\n";
    chmod(file.c_str(), S_IRUSR | S_IWUSR);
  };
  write_token("dt_old");
  const std::unique_ptr<Access> access = Access::load(file).value();
  World world(1'000ms);
  TestNode node(world, "a", {.access = access.get()});
  const net::HttpHeaders headers{{"authorization", "Bearer dt_old"}};
  while (node.send("POST", "/v1/queues/q/lease", "", headers).status != 200) {
  }
  std::thread looks([&] {
    const auto client = node.new_client();
    std::string stats;
    while (stats.find(R"("waiting_workers":1)") == std::string::npos) {
      stats = client->send({.method = "GET", .target = "/v1/stats", .headers = headers, .body = ""})
                  .value()
                  .body;
    }
    write_token("dt_new");
    EXPECT_TRUE(access->reload());
    node.check_again();
  });
  EXPECT_EQ(node.send("POST", "/v1/queues/q/lease", R"({"wait":"60s"})", headers).status, 401);
  looks.join();
  std::filesystem::remove(file);
}

// ---- a queue with partitions ----

class PartitionsTest : public ClusterNodeTest {
 protected:
  static constexpr const char* kHot = "/v1/queues/hot";

  /// Makes the queue, and returns when both nodes know of it.
  void divide() {
    settle();
    const net::HttpResponse made = a_.ask("PATCH", kHot, R"({"partitions":4})");
    ASSERT_EQ(made.status, 200) << made.body;
    EXPECT_NE(made.body.find(R"("partitions":4)"), std::string::npos) << made.body;
    world_.set_partitioned({{"hot", 4}});
    for (TestNode* node : {&a_, &b_}) {
      while (ids_of(*node, R"({"queue":"hot","delay":"1h"})", 4).size() < 4) {
      }
    }
    ASSERT_EQ(a_.ask("POST", std::string(kHot) + "/purge").status, 200);
  }
  /// The shards on which these tasks were made.
  static std::set<ShardNumber> ids_of(TestNode& node, const std::string& task, int count) {
    std::set<ShardNumber> shards;
    for (int i = 0; i < count; ++i) {
      const net::HttpResponse made = node.ask("POST", "/v1/tasks", task);
      shards.insert(shard_of_task(json::parse_accepted(made.body).value().id));
    }
    return shards;
  }
  static std::string keyed(int number) {
    return R"({"queue":"hot","payload":1,"key":"k)" + std::to_string(number) + "\"}";
  }
};

TEST_F(PartitionsTest, AQueueIsSpreadOverItsShardsAndSeenAsOne) {
  divide();
  std::set<ShardNumber> shards;
  for (int i = 0; i < 40; ++i) {
    TestNode& one = i % 2 == 0 ? a_ : b_;
    TestNode& other = i % 2 == 0 ? b_ : a_;
    const net::HttpResponse made = one.ask("POST", "/v1/tasks", keyed(i));
    ASSERT_EQ(made.status, 201);
    const TaskId id = json::parse_accepted(made.body).value().id;
    shards.insert(shard_of_task(id));
    const net::HttpResponse again = other.ask("POST", "/v1/tasks", keyed(i));
    EXPECT_EQ(again.status, 200) << "a key stands for one task";
    EXPECT_EQ(json::parse_accepted(again.body).value().id, id);
    const std::string by_key = std::string(kHot) + "/keys/k" + std::to_string(i);
    EXPECT_EQ(json::parse_task(other.ask("GET", by_key).body).value().task.id, id);
  }
  EXPECT_EQ(shards.size(), 4u);
  for (TestNode* node : {&a_, &b_}) {
    const net::HttpResponse seen = node->ask("GET", kHot);
    EXPECT_NE(seen.body.find(R"("ready":40)"), std::string::npos) << seen.body;
    const std::string all = node->ask("GET", "/v1/queues").body;
    EXPECT_EQ(all.find(R"("queue":"hot")"), all.rfind(R"("queue":"hot")")) << all;
    const std::string list = node->ask("GET", "/v1/tasks?queue=hot&limit=100").body;
    EXPECT_EQ(json::parse_task_list(list).value().tasks.size(), 40u);
  }
}

TEST_F(PartitionsTest, EveryTaskIsLeasedOnceThroughAnyNode) {
  divide();
  std::string batch;
  for (int i = 0; i < 60; ++i)
    batch += R"({"queue":"hot","payload":1})"
             "\n";
  a_.send("POST", "/v1/tasks/batch", batch, {{"content-type", "application/x-ndjson"}});
  std::set<std::uint64_t> ids;
  for (int i = 0; ids.size() < 60; ++i) {
    const net::HttpResponse leased =
        (i % 2 == 0 ? a_ : b_).ask("POST", std::string(kHot) + "/lease", R"({"max":7})");
    const auto tasks = json::parse_leased_tasks(leased.body).value();
    ASSERT_FALSE(tasks.empty()) << "there are more";
    for (const json::LeasedTaskAnswer& task : tasks) {
      EXPECT_TRUE(ids.insert(task.id.value).second) << "twice";
      const std::string body = R"({"leases":[")" + task.lease + R"("]})";
      EXPECT_EQ(b_.ask("POST", "/v1/leases/complete", body).body,
                R"({"results":[{"status":"done"}]})");
    }
  }
  EXPECT_EQ(a_.ask("POST", std::string(kHot) + "/lease", "{}").body, R"({"tasks":[]})");
}

TEST_F(PartitionsTest, AWorkerThatWaitsGetsATaskOfWhicheverPartition) {
  divide();
  for (int i = 0; i < 8; ++i) {
    TestNode& waits_at = i % 2 == 0 ? a_ : b_;
    std::future<net::HttpResponse> leased =
        std::async(std::launch::async, [client = waits_at.new_client()] {
          return client
              ->send({.method = "POST",
                      .target = std::string(kHot) + "/lease",
                      .headers = {},
                      .body = R"({"wait":"50s"})"})
              .value();
        });
    const net::HttpResponse made = a_.ask("POST", "/v1/tasks", R"({"queue":"hot","payload":1})");
    const json::LeasedTaskAnswer task = lease_of(leased.get());
    EXPECT_EQ(task.id, json::parse_accepted(made.body).value().id);
    EXPECT_EQ(task.attempt, 1u);
    b_.ask("POST", "/v1/leases/complete", R"({"leases":[")" + task.lease + R"("]})");
  }
}

TEST_F(PartitionsTest, ANodeThatHasNotHeardOfThemMakesNoKeyTwice) {
  settle();
  ASSERT_EQ(a_.ask("PATCH", kHot, R"({"partitions":4})").status, 200);
  int made = 0;
  for (int i = 0; i < 20; ++i) {
    const int status = b_.send("POST", "/v1/tasks", keyed(i)).status;
    EXPECT_TRUE(status == 201 || status == 503) << status;
    made += status == 201 ? 1 : 0;
    const std::string by_key = std::string(kHot) + "/keys/k" + std::to_string(i);
    EXPECT_EQ(b_.send("GET", by_key).status, status == 201 ? 200 : 503) << "it may be elsewhere";
  }
  EXPECT_GT(made, 0);
  EXPECT_LT(made, 20);
  world_.set_partitioned({{"hot", 4}});
  int there = 0;
  for (int i = 0; i < 20; ++i) there += b_.ask("POST", "/v1/tasks", keyed(i)).status == 200 ? 1 : 0;
  EXPECT_EQ(there, made);
  EXPECT_NE(a_.ask("GET", kHot).body.find(R"("ready":20)"), std::string::npos);
}

TEST_F(PartitionsTest, AWaitThatBeganBeforeTheQueueWasDividedFindsTheTasksOfAllPartitions) {
  settle();
  const std::unique_ptr<net::HttpClient> worker = b_.new_client();
  auto answer = std::async(std::launch::async, [&worker] {
    return worker->send({.method = "POST",
                         .target = std::string(kHot) + "/lease",
                         .headers = {},
                         .body = R"({"wait":"50s"})"});
  });
  while (a_.ask("GET", "/v1/stats").body.find(R"("waiting_workers":1)") == std::string::npos) {
  }
  ASSERT_EQ(a_.ask("PATCH", kHot, R"({"partitions":4})").status, 200);
  world_.set_partitioned({{"hot", 4}});
  const ShardMap map{.shards = kShards, .partitioned = {{"hot", 4}}};
  int number = 0;
  while (map.place_of("hot", "k" + std::to_string(number), 0) == map.home_of("hot")) ++number;
  ASSERT_EQ(a_.ask("POST", "/v1/tasks", keyed(number)).status, 201);
  const auto tasks = json::parse_leased_tasks(answer.get().value().body).value();
  EXPECT_EQ(tasks.size(), 1u);
}

TEST_F(PartitionsTest, TheirNumberIsChangedByRemovingTheQueue) {
  divide();
  const net::HttpResponse refused = b_.ask("PATCH", kHot, R"({"partitions":2})");
  EXPECT_EQ(refused.status, 409);
  EXPECT_NE(refused.body.find("created with 4 partitions"), std::string::npos) << refused.body;
  EXPECT_EQ(b_.ask("PATCH", kHot, R"({"partitions":9})").status, 400);
  ASSERT_EQ(a_.ask("POST", "/v1/tasks", keyed(1)).status, 201);
  EXPECT_EQ(b_.ask("DELETE", kHot).status, 409) << "it has a task";
  EXPECT_EQ(b_.ask("POST", std::string(kHot) + "/pause").status, 200);
  EXPECT_EQ(a_.ask("POST", std::string(kHot) + "/lease", "{}").body, R"({"tasks":[]})");
  EXPECT_EQ(a_.ask("POST", std::string(kHot) + "/purge").body, R"({"count":1})");
  EXPECT_EQ(b_.ask("DELETE", kHot).status, 200);
  EXPECT_EQ(a_.ask("GET", kHot).status, 404);
  EXPECT_EQ(a_.ask("PATCH", kHot, R"({"partitions":2})").status, 200);
}

}  // namespace
}  // namespace detent::server

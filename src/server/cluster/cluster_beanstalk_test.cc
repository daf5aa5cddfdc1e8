// Beanstalk clients of a cluster: the port of each node serves the tubes of all nodes.
#include <gtest/gtest.h>

#include <set>
#include <string>
#include <thread>

#include "cluster/shard_map.h"
#include "server/testing/beanstalk_states_fixture.h"
#include "server/testing/cluster_node_fixture.h"

namespace detent::server {
namespace {

class ClusterBeanstalk : public TwoNodesTest {
 protected:
  static BeanstalkClient connect(const TestNode& node) {
    return BeanstalkClient(node.beanstalk_port());
  }
  static std::string queue(int number) { return "q" + std::to_string(number); }
  /// A tube whose shard `node` serves or does not serve.
  std::string queue_of(TestNode& node, bool is_here) {
    const std::string cluster = node.send("GET", "/v1/cluster").body;
    const std::string name = &node == &a_ ? "a" : "b";
    for (int i = 0;; ++i) {
      const std::string shard = std::to_string(shard_of_queue(queue(i), kShards));
      const bool is_of_node =
          cluster.find(R"({"shard":)" + shard + R"(,"node":")" + name + "\"") != std::string::npos;
      if (is_of_node == is_here) return queue(i);
    }
  }
  /// Repeats the request until the node knows the owner of the shard.
  static std::string ask(BeanstalkClient& client, const std::string& command) {
    for (;;) {
      std::string reply = client.ask(command);
      if (reply != "INTERNAL_ERROR") return reply;
    }
  }
  static std::string id_in(const std::string& reply) {
    const std::size_t begin = reply.find(' ') + 1;
    return reply.substr(begin, reply.find(' ', begin) - begin);
  }
};

TEST_F(ClusterBeanstalk, EveryCommandAnswersAsTheTableSays) {
  settle();
  expect_replies_of_the_table([this] { return connect(a_); }, [this] { return connect(b_); });
}

TEST_F(ClusterBeanstalk, AnyPortServesAnyTubeAndIdsAreUnique) {
  settle();
  BeanstalkClient producer = connect(a_);
  BeanstalkClient worker = connect(b_);
  std::set<std::string> ids;
  std::set<ShardNumber> shards;
  for (int i = 0; i < 20; ++i) {
    producer.ask("use " + queue(i));
    const std::string id = producer.put("7 0 60", queue(i));
    ids.insert(id);
    shards.insert(shard_of_task(*parse_task_id(id)));
    worker.ask("watch " + queue(i));
  }
  EXPECT_EQ(ids.size(), 20u);
  EXPECT_GT(shards.size(), 4u);
  for (int i = 0; i < 20; ++i) {
    const std::string reply = worker.ask("reserve-with-timeout 0");
    ASSERT_TRUE(reply.starts_with("RESERVED ")) << reply;
    EXPECT_EQ(ids.erase(id_in(reply)), 1u);
    EXPECT_EQ(producer.state_of(id_in(reply)), "reserved");
    EXPECT_EQ(producer.ask("delete " + id_in(reply)), "NOT_FOUND") << "it is another's";
    EXPECT_EQ(worker.ask("delete " + id_in(reply)), "DELETED");
  }
  EXPECT_EQ(worker.ask("reserve-with-timeout 0"), "TIMED_OUT");
}

TEST_F(ClusterBeanstalk, AReserveTakesTheMostUrgentWhicheverNodeHasIt) {
  settle();
  BeanstalkClient producer = connect(a_);
  BeanstalkClient worker = connect(b_);
  for (const int i : {5, 2, 7, 0, 3, 6, 1, 4}) {
    producer.ask("use " + queue(i));
    producer.put(std::to_string(i) + " 0 60", queue(i));
    worker.ask("watch " + queue(i));
  }
  for (int i = 0; i < 8; ++i) {
    const std::string reply = worker.ask("reserve");
    EXPECT_EQ(reply.substr(reply.find('\n') + 1), queue(i));
  }
}

TEST_F(ClusterBeanstalk, AClientThatWaitedBeforeAQueueWasDividedGetsAJobOfAnyPartition) {
  settle();
  BeanstalkClient worker = connect(b_);
  worker.ask("watch hot");
  worker.ask("ignore default");
  worker.send("reserve");
  while (a_.send("GET", "/v1/stats?queues=0").body.find(R"("waiting_workers":1,)") ==
         std::string::npos) {
  }
  ASSERT_EQ(a_.ask("PATCH", "/v1/queues/hot", R"({"partitions":4})").status, 200);
  world_.set_partitioned({{"hot", 4}});
  const ShardMap map{.shards = kShards, .partitioned = {{"hot", 4}}};
  std::string key = "k";
  while (map.place_of("hot", key, 0) == map.home_of("hot")) key += "k";
  const std::string task = R"({"queue":"hot","payload":1,"key":")" + key + "\"}";
  ASSERT_EQ(a_.ask("POST", "/v1/tasks", task).status, 201);
  EXPECT_TRUE(worker.read().starts_with("RESERVED "));
}

TEST_F(ClusterBeanstalk, AWorkerThatWaitsAtSeveralNodesIsServedOnce) {
  settle();
  const std::string here = queue_of(b_, true);
  const std::string there = queue_of(b_, false);
  BeanstalkClient producer = connect(a_);
  BeanstalkClient worker = connect(b_);
  worker.ask("watch " + here);
  worker.ask("watch " + there);
  for (const std::string& used : {here, there, here, there}) {
    worker.send("reserve");
    const auto waits = [this](const char* count) {
      while (a_.send("GET", "/v1/stats?queues=0")
                 .body.find(std::string(R"("waiting_workers":)") + count + ",") ==
             std::string::npos) {
      }
    };
    const bool is_default_apart =
        shard_of_queue("default", kShards) != shard_of_queue(here, kShards) &&
        shard_of_queue("default", kShards) != shard_of_queue(there, kShards);
    waits(is_default_apart ? "3" : "2");
    producer.ask("use " + used);
    const std::string id = producer.put();
    EXPECT_EQ(worker.read(), "RESERVED " + id + " 4\nbody");
    waits("0");
  }
  EXPECT_EQ(producer.field("stats", "current-jobs-reserved"), "4");
}

TEST_F(ClusterBeanstalk, WhenAConnectionClosesItsJobsAreReadyOnEveryNode) {
  settle();
  BeanstalkClient producer = connect(a_);
  {
    BeanstalkClient worker = connect(b_);
    for (int i = 0; i < 8; ++i) {
      producer.ask("use " + queue(i));
      producer.put();
      worker.ask("watch " + queue(i));
      EXPECT_TRUE(worker.ask("reserve").starts_with("RESERVED "));
    }
    EXPECT_EQ(producer.field("stats", "current-jobs-reserved"), "8");
  }
  while (producer.field("stats", "current-jobs-ready") != "8") {
  }
  EXPECT_EQ(producer.field("stats", "current-jobs-reserved"), "0");
}

TEST_F(ClusterBeanstalk, ATimeToRunEndsAtTheNodeThatHasTheJob) {
  settle();
  const std::string there = queue_of(b_, false);
  BeanstalkClient worker = connect(b_);
  worker.ask("watch " + there);
  worker.ask("use " + there);
  const std::string id = worker.put("7 0 1");
  EXPECT_EQ(worker.ask("reserve"), "RESERVED " + id + " 4\nbody");
  EXPECT_EQ(worker.ask("reserve"), "DEADLINE_SOON");
  EXPECT_EQ(worker.ask("touch " + id), "TOUCHED");
  while (worker.state_of(id) == "reserved") {
  }
  EXPECT_EQ(worker.ask("touch " + id), "NOT_FOUND");
  EXPECT_EQ(worker.field("stats-job " + id, "timeouts"), "1");
  EXPECT_EQ(worker.ask("reserve"), "RESERVED " + id + " 4\nbody");
}

TEST_F(ClusterBeanstalk, StatsAndListsAreOfAllNodesAndATubesOfItsOwn) {
  settle();
  BeanstalkClient one = connect(a_);
  BeanstalkClient other = connect(b_);
  std::string list = "---\n- default\n";
  for (int i = 0; i < 8; ++i) {
    one.ask("use " + queue(i));
    one.put("7 0 60");
    one.put("7 100 60");
    list += "- " + queue(i) + "\n";
  }
  one.ask("use default");
  for (BeanstalkClient* const client : {&one, &other}) {
    EXPECT_EQ(client->field("stats", "current-jobs-ready"), "8");
    EXPECT_EQ(client->field("stats", "current-jobs-delayed"), "8");
    EXPECT_EQ(client->field("stats", "total-jobs"), "16");
    EXPECT_EQ(client->field("stats", "current-tubes"), "9");
    EXPECT_EQ(client->ask("list-tubes"), "OK " + std::to_string(list.size()) + "\n" + list);
  }
  for (const bool is_here : {true, false}) {
    const std::string name = queue_of(b_, is_here);
    EXPECT_EQ(other.field("stats-tube " + name, "current-jobs-ready"), "1");
    EXPECT_EQ(other.ask("use " + name), "USING " + name);
    EXPECT_EQ(other.field("stats-tube " + name, "current-using"), "1");
    EXPECT_EQ(other.ask("kick 5"), "KICKED 1");
    EXPECT_EQ(other.field("stats-tube " + name, "current-jobs-ready"), "2");
    EXPECT_TRUE(other.ask("peek-ready").starts_with("FOUND "));
    EXPECT_EQ(other.ask("peek-delayed"), "NOT_FOUND");
    EXPECT_EQ(other.ask("pause-tube " + name + " 100"), "PAUSED");
    EXPECT_EQ(other.field("stats-tube " + name, "pause"), "100");
    EXPECT_EQ(one.field("stats-tube " + name, "pause"), "100");
    other.ask("watch " + name);
    EXPECT_EQ(other.ask("reserve-with-timeout 0"), "TIMED_OUT");
  }
  EXPECT_EQ(other.ask("stats-tube nobody"), "NOT_FOUND");
}

TEST_F(ClusterBeanstalk, WhenAShardMovesItsLeasesStayValidAndWaitsContinue) {
  settle();
  const std::string moved = queue_of(b_, true);
  BeanstalkClient worker = connect(a_);
  BeanstalkClient waiting = connect(a_);
  BeanstalkClient producer = connect(a_);
  for (BeanstalkClient* const client : {&worker, &waiting, &producer}) {
    client->ask("watch " + moved);
    client->ask("use " + moved);
  }
  const std::string held = producer.put();
  EXPECT_EQ(worker.ask("reserve"), "RESERVED " + held + " 4\nbody");
  waiting.send("reserve");
  b_.stop();
  EXPECT_EQ(ask(worker, "delete " + held), "DELETED");
  const std::string reply = ask(producer, "put 7 0 60 4\r\nbody");
  EXPECT_EQ(waiting.read(), "RESERVED " + id_in(reply + " ") + " 4\nbody");
}

TEST_F(ClusterBeanstalk, ANodeThatStopsAnswersItsClientsAndGivesBackWhatTheyHeld) {
  settle();
  BeanstalkClient producer = connect(a_);
  BeanstalkClient holder = connect(b_);
  BeanstalkClient waiting = connect(b_);
  for (const bool is_here : {true, false}) {
    const std::string name = queue_of(b_, is_here);
    producer.ask("use " + name);
    producer.put();
    holder.ask("watch " + name);
    EXPECT_TRUE(holder.ask("reserve").starts_with("RESERVED "));
  }
  waiting.ask("watch of-nobody-else");
  waiting.send("reserve");
  while (b_.send("GET", "/v1/stats?queues=0").body.find(R"("waiting_workers":0)") !=
         std::string::npos) {
  }
  b_.stop();
  EXPECT_EQ(waiting.read(), "TIMED_OUT");
  while (!a_.send("GET", "/v1/stats?queues=0").body.starts_with("{\"version\"")) {
  }
  EXPECT_EQ(producer.field("stats", "current-jobs-reserved"), "0");
  EXPECT_EQ(producer.field("stats", "current-jobs-ready"), "2");
}

TEST_F(ClusterBeanstalk, NoClientOfHttpGetsWhereNodesAskForJobs) {
  settle();
  const std::string ask = encode(ShardAsk{.kind = ShardAsk::Kind::all});
  EXPECT_EQ(a_.send("POST", "/v1/cluster/jobs", ask).status, 404);
  EXPECT_EQ(a_.send("POST", "/v1/cluster/jobs", ask, {{"detent-shard", "0"}}).status, 404);
  EXPECT_EQ(a_.send("POST", "/v1/cluster/jobs", ask, {{"detent-cluster", "x"}}).status, 403);
}

}  // namespace
}  // namespace detent::server

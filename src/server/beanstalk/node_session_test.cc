// A beanstalk client of a node. The test simulates the shards. It checks which shards are asked,
// and how slow and missing answers are handled.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <thread>

#include "cluster/shard_map.h"
#include "server/beanstalk/node_shards.h"
#include "server/testing/beanstalk_fixture.h"
#include "server/testing/simulated_shards_fixture.h"

namespace detent::server {
namespace {

class NodeSessionTest : public ::testing::Test {
 public:
  NodeSessionTest() { server_ = BeanstalkServer::start({}, node_, clock_).value(); }
  ~NodeSessionTest() override {
    server_->stop(0ms);
    node_.stop();
  }

 protected:
  using Kind = ShardAsk::Kind;
  using Asked = SimulatedShards::Asked;

  BeanstalkClient connect() const { return BeanstalkClient(server_->port()); }
  /// A client that watches one queue of each of these shards, and no other.
  BeanstalkClient watching(const std::vector<ShardNumber>& shards) const {
    BeanstalkClient client = connect();
    for (const ShardNumber shard : shards) client.ask("watch " + queue_of(shard));
    client.ask("ignore default");
    return client;
  }
  /// The questions that wait at the shards after each shard has answered that it has no job.
  std::map<ShardNumber, Asked> after_a_look(std::size_t shards) {
    for (std::size_t i = 0; i < shards; ++i) shards_.next(Kind::next).done(ShardAnswer{});
    std::map<ShardNumber, Asked> takes;
    for (std::size_t i = 0; i < shards; ++i) {
      Asked take = shards_.next(Kind::take);
      const ShardNumber shard = take.shard;
      takes.emplace(shard, std::move(take));
    }
    return takes;
  }
  static ShardAnswer reply(const std::string& text) {
    ShardAnswer answer;
    answer.answers.push_back({.reply = text + "\r\n"});
    return answer;
  }
  /// Waits until the sessions have done all their work.
  void await_sessions() const { connect().ask("list-tube-used"); }

  ManualClock clock_;
  SimulatedShards shards_;
  NodeShards node_{shards_, clock_};
  std::unique_ptr<BeanstalkServer> server_;
};

TEST_F(NodeSessionTest, CommandsThatFollowOneAnotherGoToTheirShardTogether) {
  BeanstalkClient client = connect();
  const std::string mine = queue_of(2);
  const std::string delete_mine = "delete " + std::to_string(id_of(2, 9));
  client.send("use " + mine + "\r\nput 1 0 9 1\r\na\r\n" + delete_mine +
              "\r\nput 1 0 9 1\r\nb\r\n" + "delete " + std::to_string(id_of(3, 9)) +
              "\r\nlist-tube-used");
  Asked first = shards_.next(Kind::calls);
  EXPECT_EQ(first.shard, 2u);
  ASSERT_EQ(first.ask.calls.size(), 3u);
  EXPECT_EQ(first.ask.calls[0].queue, mine);
  EXPECT_EQ(first.ask.calls[2].command.body, "b");
  EXPECT_FALSE(shards_.is_asked()) << "in order";
  ShardAnswer answers = reply("INSERTED 1");
  answers.answers.push_back(reply("DELETED").answers.front());
  answers.answers.push_back(reply("INSERTED 2").answers.front());
  first.done(answers);
  Asked second = shards_.next(Kind::calls);
  EXPECT_EQ(second.shard, 3u);
  second.done(reply("NOT_FOUND"));
  for (const std::string& expected :
       {"USING " + mine, std::string("INSERTED 1"), std::string("DELETED"),
        std::string("INSERTED 2"), std::string("NOT_FOUND"), "USING " + mine}) {
    EXPECT_EQ(client.read(), expected);
  }
}

TEST_F(NodeSessionTest, AMissingAnswerOfAShardIsAnInternalErrorAndTheNextCommandRuns) {
  BeanstalkClient client = connect();
  client.send("put 1 0 9 1\r\na\r\nput 1 0 9 1\r\nb\r\npeek 1");
  shards_.next(Kind::calls).done(std::nullopt);
  shards_.next(Kind::calls).done(reply("NOT_FOUND"));
  EXPECT_EQ(client.read(), "INTERNAL_ERROR");
  EXPECT_EQ(client.read(), "INTERNAL_ERROR");
  EXPECT_EQ(client.read(), "NOT_FOUND");
}

TEST_F(NodeSessionTest, AJobThatNoShardCanHaveIsAskedOfSome) {
  BeanstalkClient client = connect();
  client.send("peek 255");
  Asked asked = shards_.next(Kind::calls);
  EXPECT_EQ(asked.shard, 0u);
  asked.done(reply("NOT_FOUND"));
  EXPECT_EQ(client.read(), "NOT_FOUND");
}

TEST_F(NodeSessionTest, AReserveTakesTheMostUrgentOfAllShards) {
  BeanstalkClient client = watching({0, 1, 3});
  client.send("reserve");
  for (int i = 0; i < 3; ++i) {
    Asked look = shards_.next(Kind::next);
    ASSERT_EQ(look.ask.queues.size(), 1u);
    ShardAnswer next;
    next.head = ReadyHead{.priority = look.shard == 1 ? 3u : 9u, .due_at = {}, .id = {1}};
    look.done(next);
  }
  Asked take = shards_.next(Kind::take);
  EXPECT_EQ(take.shard, 1u);
  EXPECT_EQ(take.ask.wait, 0ms);
  take.done(job_answer(id_of(1, 5)));
  EXPECT_EQ(client.read(), "RESERVED " + std::to_string(id_of(1, 5)) + " 1\nx");
  EXPECT_FALSE(shards_.is_asked());
}

TEST_F(NodeSessionTest, TheFirstShardThatGivesAJobWinsAndWhatComesLateIsGivenBack) {
  BeanstalkClient client = watching({0, 1, 3});
  client.send("reserve");
  auto takes = after_a_look(3);
  takes.at(3).done(job_answer(id_of(3, 5)));
  EXPECT_EQ(client.read(), "RESERVED " + std::to_string(id_of(3, 5)) + " 1\nx");
  EXPECT_EQ(shards_.next_ends(2), (std::map<ShardNumber, std::uint64_t>{
                                      {0, takes.at(0).ask.number}, {1, takes.at(1).ask.number}}));
  takes.at(0).done(ShardAnswer{});
  takes.at(1).done(job_answer(id_of(1, 6)));
  const Asked back = shards_.next(Kind::give_back);
  EXPECT_EQ(back.shard, 1u);
  EXPECT_EQ(back.ask.leases, (std::vector<LeaseToken>{{.epoch = 7, .number = id_of(1, 6)}}));
}

TEST_F(NodeSessionTest, AReserveEndsWithItsTimeWhateverTheShardsDo) {
  BeanstalkClient client = watching({2});
  client.send("reserve-with-timeout 3");
  Asked take = shards_.next(Kind::take);
  await_sessions();
  clock_.advance(2'999ms);
  await_sessions();
  EXPECT_FALSE(shards_.is_asked());
  clock_.advance(1ms);
  EXPECT_EQ(client.read(), "TIMED_OUT");
  EXPECT_EQ(shards_.next(Kind::end_take).ask.number, take.ask.number);
  take.done(job_answer(id_of(2, 5)));
  EXPECT_EQ(shards_.next(Kind::give_back).ask.leases.size(), 1u);
}

TEST_F(NodeSessionTest, AJobAboutToRunOutAtOneShardEndsAWaitAtOthers) {
  BeanstalkClient client = watching({0, 1});
  client.send("reserve-job " + std::to_string(id_of(3, 5)));
  shards_.next(Kind::calls).done(job_answer(id_of(3, 5)));
  client.read();
  client.send("reserve");
  after_a_look(2);
  await_sessions();
  clock_.advance(59s);
  EXPECT_EQ(client.read(), "DEADLINE_SOON");
}

TEST_F(NodeSessionTest, JobsOfAClosedClientAreReleasedUntilTheirShardAnswers) {
  {
    BeanstalkClient client = watching({0, 1});
    for (const ShardNumber shard : {1u, 3u}) {
      client.send("reserve-job " + std::to_string(id_of(shard, 5)));
      shards_.next(Kind::calls).done(job_answer(id_of(shard, 5)));
      client.read();
    }
    client.send("reserve");
    after_a_look(2);
  }
  for (int i = 0; i < 2; ++i) shards_.next(Kind::end_take).done(ShardAnswer{});
  Asked first = shards_.next(Kind::give_back);
  Asked second = shards_.next(Kind::give_back);
  EXPECT_EQ(first.shard, 1u);
  EXPECT_EQ(second.shard, 3u);
  first.done(ShardAnswer{});
  second.done(std::nullopt);
  await_sessions();
  EXPECT_FALSE(shards_.is_asked());
  clock_.advance(500ms);
  Asked again = shards_.next(Kind::give_back);
  EXPECT_EQ(again.ask, second.ask);
  again.done(ShardAnswer{});
  await_sessions();
  clock_.advance(10s);
  await_sessions();
  EXPECT_FALSE(shards_.is_asked());
}

TEST_F(NodeSessionTest, SomeLeasesAtATimeAreGivenBack) {
  constexpr std::size_t kLeases = ShardAsk::kMostLeases + 44;
  {
    BeanstalkClient client = connect();
    for (std::size_t i = 1; i <= kLeases; ++i) {
      client.send("reserve-job " + std::to_string(id_of(3, i)));
      shards_.next(Kind::calls).done(job_answer(id_of(3, i)));
      client.read();
    }
  }
  Asked first = shards_.next(Kind::give_back);
  EXPECT_EQ(first.ask.leases.size(), ShardAsk::kMostLeases);
  await_sessions();
  EXPECT_FALSE(shards_.is_asked());
  first.done(ShardAnswer{});
  Asked second = shards_.next(Kind::give_back);
  EXPECT_EQ(second.ask.leases.size(), 44u);
  EXPECT_EQ(std::ranges::count(first.ask.leases, second.ask.leases.front()), 0);
  EXPECT_FALSE(node_.has_given_back());
  second.done(ShardAnswer{});
  while (!node_.has_given_back()) std::this_thread::yield();
}

TEST_F(NodeSessionTest, WhenWaitsHaveEndedWhatIsGivenBackIsStillTriedAgain) {
  {
    BeanstalkClient client = connect();
    client.send("reserve-job " + std::to_string(id_of(3, 5)));
    shards_.next(Kind::calls).done(job_answer(id_of(3, 5)));
    client.read();
  }
  Asked first = shards_.next(Kind::give_back);
  node_.end_waits();
  first.done(std::nullopt);
  await_sessions();
  await_sessions();
  EXPECT_FALSE(shards_.is_asked());
  EXPECT_FALSE(node_.has_given_back());
  clock_.advance(NodeShards::kGiveBackPause);
  Asked again = shards_.next(Kind::give_back);
  EXPECT_EQ(again.ask, first.ask);
  again.done(ShardAnswer{});
  while (!node_.has_given_back()) std::this_thread::yield();
}

TEST_F(NodeSessionTest, ALeaseThatComesForAClientThatHasGoneIsGivenBack) {
  std::optional<Asked> asked;
  {
    BeanstalkClient client = connect();
    client.send("reserve-job " + std::to_string(id_of(3, 5)));
    asked = shards_.next(Kind::calls);
  }
  asked->done(job_answer(id_of(3, 5)));
  EXPECT_EQ(shards_.next(Kind::give_back).shard, 3u);
}

TEST_F(NodeSessionTest, AStopOfTheNodeEndsWaits) {
  BeanstalkClient client = watching({0, 1});
  client.send("reserve");
  after_a_look(2);
  node_.end_waits();
  EXPECT_EQ(client.read(), "TIMED_OUT");
}

TEST_F(NodeSessionTest, StatsAreOfAllShardsOrNone) {
  BeanstalkClient client = connect();
  for (const bool is_whole : {true, false}) {
    client.send("list-tubes");
    for (ShardNumber i = 0; i < kSimulatedShards; ++i) {
      Asked asked = shards_.next(Kind::all);
      if (asked.shard == 2 && !is_whole) {
        asked.done(std::nullopt);
        continue;
      }
      ShardAnswer answer;
      answer.all.queues = {"of-" + std::to_string(asked.shard)};
      asked.done(answer);
    }
    EXPECT_EQ(client.read(), is_whole ? "OK 42\n---\n- default\n- of-0\n- of-1\n- of-2\n- of-3\n"
                                      : "INTERNAL_ERROR");
  }
}

// ---- a tube whose queue has partitions ----

TEST_F(NodeSessionTest, JobsForATubeWithPartitionsAreSpreadAndReservedFromAll) {
  const std::string hot = queue_of(2);
  shards_.set_partitioned({{hot, 3}});
  BeanstalkClient client = connect();
  client.ask("use " + hot);
  std::map<ShardNumber, int> puts;
  for (int i = 0; i < 6; ++i) {
    client.send("put 0 0 60 1\r\nx");
    Asked put = shards_.next(Kind::calls);
    ++puts[put.shard];
    put.done(reply("INSERTED 7"));
    EXPECT_EQ(client.read(), "INSERTED 7");
  }
  EXPECT_EQ(puts, (std::map<ShardNumber, int>{{2, 2}, {3, 2}, {0, 2}}));
  client.ask("watch " + hot);
  client.ask("ignore default");
  client.send("reserve-with-timeout 0");
  std::map<ShardNumber, int> looks;
  for (int i = 0; i < 3; ++i) {
    Asked look = shards_.next(Kind::next);
    ++looks[look.shard];
    ShardAnswer answer;
    if (look.shard == 3) answer.head = ReadyHead{.priority = 1};
    look.done(answer);
  }
  EXPECT_EQ(looks, (std::map<ShardNumber, int>{{2, 1}, {3, 1}, {0, 1}}));
  Asked take = shards_.next(Kind::take);
  EXPECT_EQ(take.shard, 3u);
  take.done(job_answer(id_of(3, 9)));
  EXPECT_EQ(client.read(), "RESERVED " + std::to_string(id_of(3, 9)) + " 1\nx");
}

TEST_F(NodeSessionTest, OtherCommandsAskThePartitionsOfATubeOneAfterTheOther) {
  const std::string hot = queue_of(2);
  shards_.set_partitioned({{hot, 3}});
  BeanstalkClient client = connect();
  client.ask("use " + hot);
  client.send("kick 10");
  for (const auto& [shard, kicked] : {std::pair{2u, "KICKED 4"}, {3u, "KICKED 6"}}) {
    Asked asked = shards_.next(Kind::calls);
    EXPECT_EQ(asked.shard, shard);
    asked.done(reply(kicked));
  }
  EXPECT_EQ(client.read(), "KICKED 10");
  client.send("peek-ready");
  shards_.next(Kind::calls).done(reply("NOT_FOUND"));
  shards_.next(Kind::calls).done(std::nullopt);
  EXPECT_EQ(client.read(), "INTERNAL_ERROR") << "there may be one where nobody answers";
}

}  // namespace
}  // namespace detent::server

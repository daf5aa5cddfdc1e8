// Figures of several nodes. The shard of this node is real, and the test answers for the others.
#include "server/cluster/node_figures.h"

#include <gtest/gtest.h>

#include <future>
#include <optional>

#include "server/testing/one_shard_fixture.h"

namespace detent::server {
namespace {

class NodeFiguresTest : public OneShardTest {
 protected:
  using Given = std::optional<ClusterFigures>;

  std::future<Given> ask() {
    auto given = std::make_shared<std::promise<Given>>();
    std::future<Given> later = given->get_future();
    figures_.ask([given](Given figures) { given->set_value(std::move(figures)); });
    return later;
  }
  static bool is_given(const std::future<Given>& figures) {
    return figures.wait_for(0s) == std::future_status::ready;
  }
  static net::HttpResponse of_shard(ShardNumber shard, std::uint64_t ready) {
    ClusterFigures figures{.of = {{{.shard = shard, .epoch = 5}, ready}}, .sum = {}};
    figures.sum.all.ready = ready;
    return {.status = 200, .body = encode_figures(figures)};
  }

  NodeFigures figures_{shards_, here_, link_};
};

TEST_F(NodeFiguresTest, ThoseOfAllNodesAreAddedUpAndTheirBacklogsKnownThen) {
  open_shard();
  put_task();
  figures_.set_nodes({"10.0.0.2:7070", "10.0.0.3:7070"});
  auto figures = ask();
  ASSERT_EQ(caller_.calls.size(), 2u);
  EXPECT_EQ(caller_.calls[0].address, "10.0.0.2:7070");
  EXPECT_EQ(caller_.calls[1].address, "10.0.0.3:7070");
  EXPECT_EQ(caller_.calls[0].request.target, "/v1/cluster/figures");
  EXPECT_EQ(header(caller_.calls[0], "detent-cluster"), "s");
  caller_.answer(0, of_shard(1, 20));
  EXPECT_FALSE(is_given(figures));
  EXPECT_EQ(figures_.backlog_of(1), std::nullopt);
  caller_.answer(1, of_shard(2, 300));
  const Given given = figures.get();
  ASSERT_TRUE(given);
  EXPECT_EQ(given->sum.all.ready, 321u);
  EXPECT_EQ(given->of.size(), 3u);
  EXPECT_EQ(figures_.backlog_of(0), 1u);
  EXPECT_EQ(figures_.backlog_of(1), 20u);
  EXPECT_EQ(figures_.backlog_of(2), 300u);
  EXPECT_EQ(figures_.backlog_of(3), std::nullopt);
}

TEST_F(NodeFiguresTest, NothingIsGivenWhereANodeDoesNotTellItsOwn) {
  figures_.set_nodes({"10.0.0.2:7070"});
  for (const net::HttpResponse& answer :
       {net::HttpResponse{.status = 503, .body = of_shard(1, 2).body},
        net::HttpResponse{.status = 200, .body = "of another version"}}) {
    caller_.calls.clear();
    auto figures = ask();
    caller_.answer(0, answer);
    EXPECT_EQ(figures.get(), std::nullopt);
  }
  figures_.set_nodes({"no address", "10.0.0.2:7070"});
  caller_.calls.clear();
  auto figures = ask();
  caller_.answer(0, of_shard(1, 2));
  EXPECT_EQ(figures.get(), std::nullopt);
  EXPECT_EQ(figures_.backlog_of(1), std::nullopt);
}

TEST_F(NodeFiguresTest, AQuestionToANodeThatLeftEnds) {
  figures_.set_nodes({"10.0.0.2:7070", "10.0.0.3:7070"});
  auto figures = ask();
  figures_.set_nodes({"10.0.0.3:7070"});
  EXPECT_TRUE(caller_.calls[0].is_abandoned);
  EXPECT_FALSE(caller_.calls[1].is_abandoned);
  EXPECT_FALSE(is_given(figures));
  caller_.answer(1, of_shard(1, 2));
  EXPECT_TRUE(is_given(figures));
}

TEST_F(NodeFiguresTest, AnotherNodeGetsOnlyTheFiguresOfTheShardsOfThisNode) {
  open_shard();
  put_task();
  figures_.set_nodes({"10.0.0.2:7070"});
  std::promise<net::HttpResponse> told;
  figures_.answer(net::Responder(
      std::make_shared<net::LocalExchange>([&told](std::optional<net::HttpResponse> response) {
        told.set_value(*std::move(response));
        return true;
      })));
  const ClusterFigures figures = decode_figures(told.get_future().get().body).value();
  EXPECT_EQ(figures.of, (std::vector<ShardBacklog>{{kLease, 1}}));
  EXPECT_EQ(figures.sum.all.ready, 1u);
  EXPECT_TRUE(caller_.calls.empty());
}

}  // namespace
}  // namespace detent::server

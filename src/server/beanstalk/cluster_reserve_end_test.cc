// The end of a reserve from outside: the node stops, all waits end, or the client has gone.
#include "server/beanstalk/cluster_reserve.h"

#include <gtest/gtest.h>

#include <optional>

#include "server/testing/cluster_reserve_fixture.h"

namespace detent::server {
namespace {

using namespace std::chrono_literals;

TEST_F(ClusterReserveTest, WhenWaitsEndOneThatHasLookedAfterItsQueuesIsOver) {
  auto end = reserve({2});
  shards_.next(Kind::take);
  clock_.advance(ClusterReserve::kMapPeriod);
  settle();
  on_thread([this] { reserve_->end_wait(); });
  EXPECT_EQ(end.get(), std::nullopt);
}

TEST_F(ClusterReserveTest, WhenWaitsEndOneThatWaitsIsOverAtOnce) {
  auto end = reserve({0, 1});
  answer_look(2);
  auto waiting = takes(2);
  on_thread([this] { reserve_->end_wait(); });
  EXPECT_EQ(end.get(), std::nullopt);
  for (int i = 0; i < 2; ++i) shards_.next(Kind::end_take);
}

TEST_F(ClusterReserveTest, WhenWaitsEndOneThatLooksStillTakesWhatIsThere) {
  auto end = reserve({0, 1});
  on_thread([this] { reserve_->end_wait(); });
  EXPECT_FALSE(is_over(end));
  answer_look(2, {{1, {}}});
  shards_.next(Kind::take).done(job_answer(id_of(1, 5)));
  EXPECT_EQ(end.get().value().taken.id, id_of(1, 5));
}

TEST_F(ClusterReserveTest, WhenWaitsEndOneThatFindsNothingDoesNotBeginToWait) {
  auto end = reserve({0, 1});
  on_thread([this] { reserve_->end_wait(); });
  answer_look(2);
  EXPECT_EQ(end.get(), std::nullopt);
  EXPECT_EQ(waits_, 0);
}

TEST_F(ClusterReserveTest, WhenWaitsEndOneIsNotKeptByAShardThatIsSlow) {
  for (const bool is_slow_first : {true, false}) {
    auto end = reserve({0, 1}, is_slow_first ? 0ms : 30s);
    auto looking = asked(Kind::next, 2);
    looking.at(1).done(ShardAnswer{});
    if (is_slow_first) looking.at(0).slow();
    on_thread([this] { reserve_->end_wait(); });
    if (!is_slow_first) {
      EXPECT_FALSE(is_over(end));
      looking.at(0).slow();
      settle();
    }
    ASSERT_TRUE(is_over(end));
    EXPECT_EQ(end.get(), std::nullopt);
    EXPECT_EQ(waits_, 0);
  }
}

TEST_F(ClusterReserveTest, WhenWaitsEndOneIsNotKeptByShardsThatAreSlowToHandOut) {
  for (const bool is_slow_too : {true, false}) {
    auto end = reserve({0, 1}, 0ms);
    answer_look(2, {{0, {}}});
    Asked slow = shards_.next(Kind::take);
    slow.slow();
    Asked other = shards_.next(Kind::take);
    on_thread([this] { reserve_->end_wait(); });
    EXPECT_FALSE(is_over(end)) << "the other may hand one out";
    if (is_slow_too) {
      other.slow();
    } else {
      other.done(ShardAnswer{});
    }
    settle();
    ASSERT_TRUE(is_over(end));
    EXPECT_EQ(end.get(), std::nullopt);
    shards_.next_ends(is_slow_too ? 2 : 1);
  }
}

TEST_F(ClusterReserveTest, JobsOfAnAbandonedReserveAreReleased) {
  auto end = reserve({0, 1});
  answer_look(2, {{1, {}}});
  Asked take = shards_.next(Kind::take);
  on_thread([this] { reserve_->abandon(); });
  EXPECT_EQ(end.get(), std::nullopt);
  EXPECT_EQ(shards_.next(Kind::end_take).ask.number, take.ask.number);
  take.done(job_answer(id_of(1, 5)));
  EXPECT_EQ(shards_.next(Kind::give_back).shard, 1u);
}

}  // namespace
}  // namespace detent::server

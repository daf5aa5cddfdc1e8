// The questions of one reserve to its shards, and how it handles their answers. Its end from
// outside is tested in cluster_reserve_end_test.cc.
#include "server/beanstalk/cluster_reserve.h"

#include <gtest/gtest.h>

#include <future>
#include <string>
#include <utility>
#include <vector>

#include "server/testing/cluster_reserve_fixture.h"

namespace detent::server {
namespace {

using namespace std::chrono_literals;

TEST_F(ClusterReserveTest, OverOneShardItWaitsThereWithoutALook) {
  auto end = reserve({2});
  Asked take = shards_.next(Kind::take);
  EXPECT_EQ(take.shard, 2u);
  EXPECT_EQ(take.ask.queues, (std::vector<std::string>{queue_of(2)}));
  EXPECT_EQ(take.ask.wait, ClusterReserve::kLongestTake);
  EXPECT_EQ(waits_, 1);
  take.done(job_answer(id_of(2, 5)));
  EXPECT_EQ(end.get().value().taken.id, id_of(2, 5));
  EXPECT_FALSE(is_asked());
}

TEST_F(ClusterReserveTest, WithoutTimeItAsksOneShardOnceAndDoesNotWait) {
  auto end = reserve({2}, 0ms);
  Asked take = shards_.next(Kind::take);
  EXPECT_EQ(take.ask.wait, 0ms);
  take.done(ShardAnswer{});
  EXPECT_EQ(end.get(), std::nullopt);
  EXPECT_EQ(waits_, 0);
  EXPECT_FALSE(is_asked());
}

TEST_F(ClusterReserveTest, OfSeveralShardsTheMostUrgentIsTaken) {
  auto end = reserve({0, 1, 3});
  answer_look(3, {{0, {.priority = 9, .due_at = {}, .id = {1}}},
                  {1, {.priority = 3, .due_at = {}, .id = {2}}},
                  {3, {.priority = 4, .due_at = {}, .id = {3}}}});
  Asked take = shards_.next(Kind::take);
  EXPECT_EQ(take.shard, 1u);
  EXPECT_EQ(take.ask.wait, 0ms);
  take.done(job_answer(id_of(1, 5)));
  EXPECT_EQ(end.get().value().taken.id, id_of(1, 5));
  EXPECT_FALSE(is_asked());
}

TEST_F(ClusterReserveTest, AShardThatIsAwayDoesNotKeepItFromWhatAnotherHas) {
  auto end = reserve({0, 1});
  for (int i = 0; i < 2; ++i) {
    Asked look = shards_.next(Kind::next);
    ShardAnswer answer;
    answer.head = ReadyHead{};
    if (look.shard == 0) {
      look.done(std::nullopt);
    } else {
      look.done(answer);
    }
  }
  EXPECT_EQ(shards_.next(Kind::take).shard, 1u);
}

TEST_F(ClusterReserveTest, AShardThatIsSlowToTellHoldsUpNothingThatAnotherHas) {
  for (const bool is_slow_first : {true, false}) {
    auto end = reserve({0, 1});
    auto looking = asked(Kind::next, 2);
    ShardAnswer has_one;
    has_one.head = ReadyHead{};
    if (is_slow_first) looking.at(0).slow();
    looking.at(1).done(has_one);
    if (!is_slow_first) {
      EXPECT_FALSE(is_asked()) << "it may have a more urgent one";
      looking.at(0).slow();
    }
    Asked take = shards_.next(Kind::take);
    EXPECT_EQ(take.shard, 1u);
    looking.at(0).done(has_one);  // too late
    EXPECT_FALSE(is_asked());
    take.done(job_answer(id_of(1, 5)));
    EXPECT_EQ(end.get().value().taken.id, id_of(1, 5));
  }
}

TEST_F(ClusterReserveTest, WhoWaitsWaitsAtAShardThatIsSlowToTellToo) {
  auto end = reserve({0, 1});
  auto looking = asked(Kind::next, 2);
  looking.at(0).slow();
  looking.at(1).done(ShardAnswer{});
  auto waiting = takes(2);
  EXPECT_EQ(waiting.at(0).ask.wait, ClusterReserve::kLongestTake);
  looking.at(0).done(ShardAnswer{});
  EXPECT_FALSE(is_asked());
  EXPECT_EQ(waits_, 1);
  waiting.at(1).done(job_answer(id_of(1, 5)));
  EXPECT_EQ(end.get().value().taken.id, id_of(1, 5));
}

TEST_F(ClusterReserveTest, WhoDoesNotWaitTakesWhatASlowShardTellsOfWhenNoOtherHasAny) {
  auto end = reserve({0, 1}, 0ms);
  auto looking = asked(Kind::next, 2);
  looking.at(0).slow();
  looking.at(1).done(ShardAnswer{});
  EXPECT_FALSE(is_asked());
  EXPECT_FALSE(is_over(end));
  ShardAnswer has_one;
  has_one.head = ReadyHead{};
  looking.at(0).done(has_one);
  Asked take = shards_.next(Kind::take);
  EXPECT_EQ(take.shard, 0u);
  take.done(job_answer(id_of(0, 5)));
  EXPECT_EQ(end.get().value().taken.id, id_of(0, 5));
}

TEST_F(ClusterReserveTest, WhoseTimeEndsWhileAShardIsSlowToTellIsNotKeptByIt) {
  auto end = reserve({0, 1}, 1s);
  auto looking = asked(Kind::next, 2);
  looking.at(1).done(ShardAnswer{});
  clock_.advance(1s);
  EXPECT_FALSE(is_asked());
  EXPECT_FALSE(is_over(end)) << "it may have one";
  looking.at(0).slow();
  settle();
  ASSERT_TRUE(is_over(end));
  EXPECT_EQ(end.get(), std::nullopt);
  ShardAnswer has_one;
  has_one.head = ReadyHead{};
  looking.at(0).done(has_one);
  EXPECT_FALSE(is_asked());
}

TEST_F(ClusterReserveTest, WhoseTimeEndsWhileAShardIsSlowToHandOutIsNotKeptByItEither) {
  auto end = reserve({0, 1}, 1s);
  answer_look(2, {{0, {}}});
  Asked slow = shards_.next(Kind::take);
  clock_.advance(1s);
  slow.slow();
  settle();
  ASSERT_TRUE(is_over(end));
  EXPECT_EQ(end.get(), std::nullopt);
  EXPECT_EQ(shards_.next(Kind::end_take).ask.number, slow.ask.number);
  slow.done(job_answer(id_of(0, 5)));
  EXPECT_EQ(shards_.next(Kind::give_back).shard, 0u);
}

TEST_F(ClusterReserveTest, WhoIsNotHandedAJobInTimeWaitsForOneOfAnotherShardToo) {
  for (const ShardNumber first : {0u, 1u}) {
    auto end = reserve({0, 1});
    answer_look(2, {{0, {}}});
    Asked slow = shards_.next(Kind::take);
    EXPECT_EQ(slow.shard, 0u);
    slow.slow();
    Asked other = shards_.next(Kind::take);
    EXPECT_EQ(other.shard, 1u);
    EXPECT_EQ(other.ask.wait, ClusterReserve::kLongestTake);
    EXPECT_FALSE(is_asked());
    (first == 0 ? slow : other).done(job_answer(id_of(first, 5)));
    EXPECT_EQ(end.get().value().taken.id, id_of(first, 5));
    EXPECT_EQ(shards_.next(Kind::end_take).shard, 1 - first);
    (first == 0 ? other : slow).done(job_answer(id_of(1 - first, 6)));
    EXPECT_EQ(shards_.next(Kind::give_back).shard, 1 - first);
  }
}

TEST_F(ClusterReserveTest, WhoDoesNotWaitAsksTheOthersForAJobWhenOneIsSlowToHandItOut) {
  auto end = reserve({0, 1, 2}, 0ms);
  answer_look(3, {{0, {}}});
  Asked slow = shards_.next(Kind::take);
  slow.slow();
  auto others = takes(2);
  EXPECT_EQ(others.at(1).ask.wait, 0ms);
  others.at(1).done(ShardAnswer{});
  EXPECT_FALSE(is_over(end));
  others.at(2).slow();
  EXPECT_FALSE(is_asked()) << "all have been asked";
  others.at(2).done(ShardAnswer{});
  EXPECT_FALSE(is_asked());
  EXPECT_FALSE(is_over(end));
  slow.done(ShardAnswer{});
  EXPECT_EQ(end.get(), std::nullopt);
}

TEST_F(ClusterReserveTest, OverOneShardNothingElseCanBeDoneMeanwhile) {
  auto end = reserve({2}, 0ms);
  Asked take = shards_.next(Kind::take);
  EXPECT_FALSE(take.slow);
  take.done(job_answer(id_of(2, 5)));
  EXPECT_EQ(end.get().value().taken.id, id_of(2, 5));
}

TEST_F(ClusterReserveTest, WhoDoesNotWaitLooksAgainWhenOthersAreFaster) {
  auto end = reserve({0, 1}, 0ms);
  for (int look = 0; look < ClusterReserve::kMaxLooks; ++look) {
    answer_look(2, {{0, {}}, {1, {}}});
    shards_.next(Kind::take).done(ShardAnswer{});
  }
  EXPECT_EQ(end.get(), std::nullopt);
  EXPECT_FALSE(is_asked());
}

TEST_F(ClusterReserveTest, WhoWaitsWaitsAtAllWhenOthersAreFaster) {
  auto end = reserve({0, 1});
  for (int look = 0; look < ClusterReserve::kMaxLooks; ++look) {
    answer_look(2, {{0, {}}, {1, {}}});
    shards_.next(Kind::take).done(ShardAnswer{});
  }
  EXPECT_EQ(takes(2).at(0).ask.wait, ClusterReserve::kLongestTake);
  EXPECT_EQ(waits_, 1);
}

TEST_F(ClusterReserveTest, TheFirstJobWinsTheOthersAreToldAndWhatComesLateIsGivenBack) {
  auto end = reserve({0, 1, 3});
  answer_look(3);
  auto waiting = takes(3);
  waiting.at(3).done(job_answer(id_of(3, 5)));
  EXPECT_EQ(end.get().value().taken.id, id_of(3, 5));
  EXPECT_EQ(shards_.next_ends(2),
            (std::map<ShardNumber, std::uint64_t>{{0, waiting.at(0).ask.number},
                                                  {1, waiting.at(1).ask.number}}));
  waiting.at(0).done(ShardAnswer{});
  waiting.at(1).done(job_answer(id_of(1, 6)));
  const Asked back = shards_.next(Kind::give_back);
  EXPECT_EQ(back.shard, 1u);
  EXPECT_EQ(back.ask.leases, (std::vector<LeaseToken>{{.epoch = 7, .number = id_of(1, 6)}}));
}

TEST_F(ClusterReserveTest, ItEndsWithItsTimeAndOneThatComesThenIsGivenBack) {
  auto end = reserve({2}, 3s);
  Asked take = shards_.next(Kind::take);
  clock_.advance(2'999ms);
  EXPECT_FALSE(is_asked());
  EXPECT_FALSE(is_over(end));
  clock_.advance(1ms);
  EXPECT_EQ(end.get(), std::nullopt);
  EXPECT_EQ(shards_.next(Kind::end_take).ask.number, take.ask.number);
  take.done(job_answer(id_of(2, 5)));
  EXPECT_EQ(shards_.next(Kind::give_back).ask.leases.size(), 1u);
}

TEST_F(ClusterReserveTest, AWaitIsRenewedNotRepeatedAndAShardThatIsAwayIsAskedAfterAPause) {
  auto end = reserve({0, 1});
  answer_look(2);
  auto waiting = takes(2);
  waiting.at(1).done(std::nullopt);
  EXPECT_FALSE(is_asked());
  clock_.advance(ClusterReserve::kAwayPause);
  Asked again = shards_.next(Kind::take);
  EXPECT_EQ(again.shard, 1u);
  clock_.advance(ClusterReserve::kLongestTake);
  waiting.at(0).done(ShardAnswer{});
  Asked renewed = shards_.next(Kind::take);
  EXPECT_EQ(renewed.shard, 0u);
  EXPECT_NE(renewed.ask.number, waiting.at(0).ask.number);
  EXPECT_FALSE(is_over(end));
  again.done(job_answer(id_of(1, 5)));
  EXPECT_EQ(end.get().value().taken.id, id_of(1, 5));
  EXPECT_EQ(waits_, 1);
}

TEST_F(ClusterReserveTest, AShardThatStaysAwayIsAskedMoreAndMoreSeldom) {
  auto end = reserve({1});
  shards_.next(Kind::take).done(std::nullopt);
  auto pause = ClusterReserve::kAwayPause;
  for (int i = 0; i < 8; ++i) {
    settle();
    clock_.advance(pause - 1ms);
    EXPECT_FALSE(is_asked());
    clock_.advance(1ms);
    shards_.next(Kind::take).done(std::nullopt);
    pause = std::min(pause * 2, ClusterReserve::kLongestAwayPause);
  }
  EXPECT_FALSE(is_over(end));
}

TEST_F(ClusterReserveTest, WhoWaitsAtTheHomeOfAQueueThatIsDividedGoesOnAtAllOfIt) {
  auto end = reserve({2});
  Asked old = shards_.next(Kind::take);
  shards_.set_partitioned({{"another", 4}});
  clock_.advance(ClusterReserve::kMapPeriod);
  EXPECT_FALSE(is_asked()) << "this one is where it was";
  shards_.set_partitioned({{queue_of(2), 3}});
  clock_.advance(ClusterReserve::kMapPeriod);
  EXPECT_EQ(shards_.next(Kind::end_take).ask.number, old.ask.number);
  auto waiting = takes(3);
  for (const ShardNumber shard : {2u, 3u, 0u}) {
    EXPECT_EQ(waiting.at(shard).ask.queues, (std::vector<std::string>{queue_of(2)}));
    EXPECT_EQ(waiting.at(shard).ask.wait, ClusterReserve::kLongestTake);
  }
  old.done(job_answer(id_of(2, 5)));  // it had been on its way
  const Asked back = shards_.next(Kind::give_back);
  EXPECT_EQ(back.ask.leases, (std::vector<LeaseToken>{{.epoch = 7, .number = id_of(2, 5)}}));
  EXPECT_FALSE(is_over(end));
  waiting.at(0).done(job_answer(id_of(0, 6)));
  EXPECT_EQ(end.get().value().taken.id, id_of(0, 6));
  EXPECT_EQ(waits_, 1);
}

TEST_F(ClusterReserveTest, AShardThatWasAwayIsNotAskedAgainForAQueueThatHasGoneFromIt) {
  shards_.set_partitioned({{queue_of(2), 2}});
  auto end = reserve({2});
  answer_look(2);
  takes(2).at(3).done(std::nullopt);
  for (const std::chrono::milliseconds pause : {200ms, 400ms, 800ms}) {
    settle();
    clock_.advance(pause);
    shards_.next(Kind::take).done(std::nullopt);
  }
  settle();
  shards_.set_partitioned({});
  clock_.advance(ClusterReserve::kMapPeriod);  // before the pause of 1.6 s is over
  EXPECT_EQ(shards_.next(Kind::end_take).shard, 2u);
  EXPECT_EQ(shards_.next(Kind::take).shard, 2u);
  settle();
  clock_.advance(ClusterReserve::kLongestAwayPause);
  EXPECT_FALSE(is_asked());
  EXPECT_FALSE(is_over(end));
}

TEST_F(ClusterReserveTest, ItsTimeHoldsHoweverOftenItLooksAfterItsQueues) {
  auto end = reserve({2}, 2'500ms);
  shards_.next(Kind::take);
  for (int i = 0; i < 2; ++i) {
    clock_.advance(ClusterReserve::kMapPeriod);
    settle();
  }
  clock_.advance(499ms);
  settle();
  EXPECT_FALSE(is_over(end));
  clock_.advance(1ms);
  EXPECT_EQ(end.get(), std::nullopt);
}

}  // namespace
}  // namespace detent::server

#include "gateway/whole_plan.h"

#include <gtest/gtest.h>

#include <array>
#include <chrono>
#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "gateway/plan_fixture.h"
#include "net/message/http_query.h"
#include "protocol/json/answer_codec.h"
#include "protocol/json/queue_codec.h"
#include "protocol/json/stats_codec.h"
#include "task/queue_page.h"

namespace detent::gateway {
namespace {

using std::chrono::milliseconds;

constexpr ShardNumber kShards = 2;

PlayShard answers(std::vector<std::string> bodies) {
  return [bodies = std::move(bodies)](const Part& part) { return ok_json(bodies.at(part.shard)); };
}

WallTime at(std::int64_t count) { return WallTime{milliseconds{count}}; }

QueueStats queue(const char* name, std::uint64_t ready) {
  return {.queue = name, .ready = ready, .oldest_ready_age = milliseconds{5}};
}

TEST(WholePlan, QueuesAreSortedByName) {
  const CarriedOut done = carry_out(
      get("/v1/queues"), kShards,
      answers({R"({"queues":[{"queue":"b","x":1.0},{"queue":"d"}]})", R"({"queues":[{"queue":"a"},
               {"queue":"c"}]})"}));
  EXPECT_EQ(done.answer.body,
            R"({"queues":[{"queue":"a"},{"queue":"b","x":1.0},{"queue":"c"},{"queue":"d"}]})");
}

std::string views(const std::vector<std::pair<const char*, std::uint64_t>>& ready,
                  bool paused = false) {
  std::vector<QueueView> views;
  for (const auto& [name, count] : ready) {
    views.push_back({.stats = queue(name, count), .settings = {.paused = paused}});
  }
  return json::render_queues(views);
}

std::string names_of(const std::vector<QueueView>& queues) {
  std::string names;
  for (const QueueView& view : queues) names += view.stats.queue;
  return names;
}

// Each partition of "p" has fewer ready tasks than "b", but their sum is greater.
TEST(WholePlan, PagesOfQueuesAreSortedByTheSumsOfThePartitions) {
  const PlayShard play =
      answers({views({{"b", 5}, {"p", 4}}), views({{"a", 1}, {"c", 3}, {"p", 4}}, true)});
  const CarriedOut first = carry_out(get("/v1/queues?name=x&limit=2&sort=ready"), kShards, play);
  for (const auto& round : first.rounds) {
    for (const Part& part : round) EXPECT_EQ(part.request.target, "/v1/queues?name=x");
  }
  const auto page = json::parse_queue_page(first.answer.body);
  ASSERT_TRUE(page) << first.answer.body;
  EXPECT_EQ(names_of(page->queues), "pb");
  EXPECT_EQ(page->queues[0].stats.ready, 8u);
  const auto next = json::parse_queue_page(
      carry_out(get("/v1/queues?sort=ready&limit=2&cursor=" + page->cursor), kShards, play)
          .answer.body);
  ASSERT_TRUE(next);
  EXPECT_EQ(names_of(next->queues), "ca");
  EXPECT_EQ(next->cursor, "");
  const CarriedOut paused = carry_out(get("/v1/queues?state=paused"), kShards, play);
  EXPECT_EQ(names_of(json::parse_queue_page(paused.answer.body)->queues), "ac");
}

TEST(WholePlan, APageOfQueuesByNameAsksEachShardForOnePage) {
  // Each shard answers as a server: with its first queues after the cursor.
  const std::vector<std::map<std::string, std::uint64_t>> queues{
      {{"a", 1}, {"c", 2}, {"p", 3}, {"x", 4}}, {{"b", 5}, {"p", 6}, {"z", 7}}};
  const PlayShard play = [&queues](const Part& part) {
    net::QueryParameter sort{"sort"};
    net::QueryParameter limit{"limit"};
    net::QueryParameter cursor{"cursor"};
    const std::array<net::QueryParameter*, 3> parameters{&sort, &limit, &cursor};
    EXPECT_TRUE(net::take_query(part.request.target, parameters)) << part.request.target;
    const auto page = QueuePageRequest::read(sort.value, {}, cursor.value, 2).value();
    EXPECT_EQ(limit.value, "2");
    std::vector<QueueStats> stats;
    for (const auto& [name, ready] : queues.at(part.shard)) {
      stats.push_back({.queue = name, .ready = ready});
    }
    const std::string next = keep_page(stats, page);
    std::vector<QueueView> views;
    for (const QueueStats& one : stats) views.push_back({.stats = one});
    return ok_json(json::render_queues(views, next));
  };
  std::vector<std::string> pages;
  std::uint64_t partitions = 0;
  for (std::string cursor = "first"; !cursor.empty();) {
    const std::string after = cursor == "first" ? "" : "&cursor=" + cursor;
    const CarriedOut done = carry_out(get("/v1/queues?sort=name&limit=2" + after), kShards, play);
    EXPECT_EQ(done.rounds.size(), 1u);
    const auto page = json::parse_queue_page(done.answer.body);
    ASSERT_TRUE(page) << done.answer.body;
    pages.push_back(names_of(page->queues));
    for (const QueueView& view : page->queues) {
      if (view.stats.queue == "p") partitions = view.stats.ready;
    }
    cursor = page->cursor;
    ASSERT_LT(pages.size(), 9u);
  }
  EXPECT_EQ(pages, (std::vector<std::string>{"ab", "cp", "xz"}));
  EXPECT_EQ(partitions, 9u) << "the counts are sums";
}

TEST(WholePlan, AForecastOfAQueueAsksTheShardsOfTheQueue) {
  const std::string name = queue_of(1, kShards);
  const Forecast forecast{.from = at(60'000), .bin = milliseconds{60'000}, .counts = {1, 2}};
  const PlayShard play = [&](const Part& part) {
    Forecast told = forecast;
    if (part.shard == 0) told.counted_to = at(120'000);
    return ok_json(json::render_forecast(told));
  };
  const net::HttpRequest request = get("/v1/forecast?bins=2&queue=" + name);
  const CarriedOut one = carry_out(request, kShards, play);
  ASSERT_EQ(one.rounds.at(0).size(), 1u);
  EXPECT_EQ(one.rounds[0][0].shard, 1u);
  EXPECT_EQ(json::parse_forecast(one.answer.body).value(), forecast);
  const ShardMap map{.shards = kShards, .partitioned = {{name, 2}}};
  const CarriedOut two = carry_out(request, map, play);
  EXPECT_EQ(two.rounds.at(0).size(), 2u);
  const Forecast sum = json::parse_forecast(two.answer.body).value();
  EXPECT_EQ(sum.counts, (std::vector<std::uint64_t>{2, 4}));
  EXPECT_EQ(sum.counted_to, at(120'000));
  const auto absent = [&](const Part& part) { return part.shard == 0 ? not_there() : play(part); };
  EXPECT_EQ(json::parse_forecast(carry_out(request, map, absent).answer.body).value(), forecast)
      << "a partition that does not exist yet";
  const PlayShard none = [](const Part&) { return not_there(); };
  EXPECT_EQ(carry_out(request, map, none).answer.status, 404);
}

TEST(WholePlan, AShardRefusesAWrongPageOfQueues) {
  for (const char* query : {"sort=size", "state=open", "sort=ready&cursor=name:0:a",
                            "sort=ready&by=age", "sort=ready&limit=0", "sort=ready&limit=1001"}) {
    const CarriedOut done =
        carry_out(get(std::string("/v1/queues?") + query), kShards,
                  [](const Part&) { return net::HttpResponse{.status = 400, .body = ""}; });
    ASSERT_EQ(done.rounds.size(), 1u) << query;
    EXPECT_EQ(done.rounds[0].size(), 1u) << query;
    EXPECT_EQ(done.rounds[0][0].request.target, std::string("/v1/queues?") + query);
  }
}

TEST(WholePlan, APageOfSchedulesContinuesAfterItsLastName) {
  const PlayShard play = answers({R"({"schedules":[{"name":"b"},{"name":"c"}],"cursor":"c"})",
                                  R"({"schedules":[{"name":"a"}],"cursor":null})"});
  EXPECT_EQ(carry_out(get("/v1/schedules?limit=2"), kShards, play).answer.body,
            R"({"schedules":[{"name":"a"},{"name":"b"}],"cursor":"b"})");
  EXPECT_EQ(carry_out(get("/v1/schedules?limit=3"), kShards, play).answer.body,
            R"({"schedules":[{"name":"a"},{"name":"b"},{"name":"c"}],"cursor":"c"})");
  EXPECT_EQ(carry_out(get("/v1/schedules"), kShards, play).answer.body,
            R"({"schedules":[{"name":"a"},{"name":"b"},{"name":"c"}],"cursor":null})");
}

TEST(WholePlan, StatsAreAddedUp) {
  json::ServerStats first{.version = "1",
                          .uptime = milliseconds{7},
                          .loaded = 1,
                          .waiting_workers = 2,
                          .schedules = 3,
                          .away = 4,
                          .counters = {},
                          .lateness = {1, 2, 3},
                          .late = {.tasks = {1, 2, 3, 4}},
                          .all = {.queue = "", .scheduled = 1, .ready = 2, .leased = 3, .dead = 4},
                          .queue_count = 2,
                          .queues = {queue("b", 5), queue("d", 1)}};
  first.counters = {.scheduled = 1,
                    .fired = 2,
                    .leased = 3,
                    .completed = 4,
                    .failed = 5,
                    .cancelled = 6,
                    .dead = 7,
                    .leases_expired = 8,
                    .conflicts = 9,
                    .quarantined = 10};
  json::ServerStats second = first;
  second.uptime = milliseconds{9};
  second.lateness = {10, 0, 0, 1};
  second.late = {.tasks = {10, 20, 30, 40}, .time = {{{}, {}, {}, std::chrono::milliseconds{5}}}};
  second.queues = {queue("a", 1), queue("c", 3)};
  const PlayShard play = answers({json::render_stats(first), json::render_stats(second)});
  const json::ServerStats all =
      json::parse_stats(carry_out(get("/v1/stats"), kShards, play).answer.body).value();
  json::ServerStats sum = first;
  sum.uptime = milliseconds{9};
  sum.loaded = 2;
  sum.waiting_workers = 4;
  sum.schedules = 6;
  sum.away = 8;
  sum.counters = {.scheduled = 2,
                  .fired = 4,
                  .leased = 6,
                  .completed = 8,
                  .failed = 10,
                  .cancelled = 12,
                  .dead = 14,
                  .leases_expired = 16,
                  .conflicts = 18,
                  .quarantined = 20};
  sum.lateness = {11, 2, 3, 1};
  sum.late = {.tasks = {11, 22, 33, 44}, .time = {{{}, {}, {}, std::chrono::milliseconds{5}}}};
  sum.all = {.queue = "", .scheduled = 2, .ready = 4, .leased = 6, .dead = 8};
  sum.queue_count = 4;
  sum.queues = {queue("a", 1), queue("b", 5), queue("c", 3), queue("d", 1)};
  EXPECT_EQ(all, sum);
  const auto told = [&](const char* target) {
    std::string names;
    const std::string body = carry_out(get(target), kShards, play).answer.body;
    const json::ServerStats stats = json::parse_stats(body).value();
    for (const QueueStats& one : stats.queues) names += one.queue;
    return names;
  };
  EXPECT_EQ(told("/v1/stats?queues=2&by=age"), "ab") << "all have the same age";
  EXPECT_EQ(told("/v1/stats?queues=0"), "");
  EXPECT_EQ(told("/v1/stats?queues=2"), "bc");
  EXPECT_EQ(told("/v1/stats?queues=3"), "abc");
  EXPECT_EQ(told("/v1/stats?queues=9"), "abcd");
}

std::string forecast(std::int64_t from, std::vector<std::uint64_t> counts) {
  return json::render_forecast({.from = at(from),
                                .bin = milliseconds{60'000},
                                .counts = std::move(counts),
                                .overdue = 1,
                                .later = 2,
                                .coarse = 3});
}

TEST(WholePlan, ForecastsAreAddedUp) {
  const CarriedOut done =
      carry_out(get("/v1/forecast?bins=2"), kShards,
                answers({forecast(60'000, {1, 2}), forecast(60'000, {10, 20})}));
  EXPECT_EQ(done.rounds.size(), 1U);
  const Forecast sum = json::parse_forecast(done.answer.body).value();
  EXPECT_EQ(sum, (Forecast{.from = at(60'000),
                           .bin = milliseconds{60'000},
                           .counts = {11, 22},
                           .overdue = 2,
                           .later = 4,
                           .coarse = 6}));
}

TEST(WholePlan, AForecastOfAnEarlierMinuteIsRequestedAgain) {
  int asked = 0;
  const auto play = [&asked](const Part& part) {
    if (part.shard == 1) return ok_json(forecast(120'000, {10, 20}));
    return ok_json(++asked == 1 ? forecast(60'000, {9, 9}) : forecast(120'000, {1, 2}));
  };
  const CarriedOut done = carry_out(get("/v1/forecast?bins=2"), kShards, play);
  ASSERT_EQ(done.rounds.size(), 2U);
  ASSERT_EQ(done.rounds[1].size(), 1U);
  EXPECT_EQ(done.rounds[1][0].shard, 0U);
  EXPECT_EQ(done.rounds[1][0].request.target, "/v1/forecast?bins=2");
  EXPECT_EQ(json::parse_forecast(done.answer.body).value().counts,
            (std::vector<std::uint64_t>{11, 22}));
}

TEST(WholePlan, ForecastsOfShardsWithDifferentClocksAreStillAdded) {
  const CarriedOut done = carry_out(get("/v1/forecast"), kShards,
                                    answers({forecast(180'000, {1}), forecast(60'000, {10})}));
  EXPECT_EQ(done.rounds.size(), 2U);
  const Forecast sum = json::parse_forecast(done.answer.body).value();
  EXPECT_EQ(sum.from, at(180'000));
  EXPECT_EQ(sum.counts, std::vector<std::uint64_t>{11});
}

TEST(WholePlan, TheTimersOfAllShardsAreOnOneWheel) {
  const auto wheel = [](std::int64_t now, const std::vector<WheelView::Slot>& slots) {
    return json::render_wheel({.now = at(now),
                               .level_count = 3,
                               .slots_per_level = 256,
                               .timers = slots.size(),
                               .slots = slots});
  };
  const WheelView::Slot late{.level = 0, .index = 2, .from = at(258), .until = at(259), .count = 1};
  const WheelView::Slot early{
      .level = 0, .index = 250, .from = at(250), .until = at(251), .count = 2};
  const WheelView::Slot coarse{
      .level = 1, .index = 3, .from = at(768), .until = at(1024), .count = 3};
  WheelView::Slot sum = late;
  sum.count = 2;
  const CarriedOut done = carry_out(get("/v1/wheel"), kShards,
                                    answers({wheel(5, {late, coarse}), wheel(9, {early, late})}));
  WheelView expected{.now = at(9),
                     .level_count = 3,
                     .slots_per_level = 256,
                     .timers = 4,
                     .slots = {early, sum, coarse}};
  EXPECT_EQ(done.answer.body, json::render_wheel(expected));
}

}  // namespace
}  // namespace detent::gateway

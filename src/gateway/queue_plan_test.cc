// Requests about queues, mostly about queues with partitions.
#include "gateway/queue_plan.h"

#include <gtest/gtest.h>

#include <chrono>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "gateway/plan_fixture.h"
#include "protocol/json/dump_codec.h"
#include "protocol/json/queue_codec.h"
#include "protocol/json/stats_codec.h"
#include "protocol/json/stats_point.h"

namespace detent::gateway {
namespace {

using Shards = std::vector<ShardNumber>;

constexpr ShardNumber kShards = 8;
const std::string kHot = queue_of(6, kShards);  // its partitions are on shards 6, 7 and 0
const ShardMap kMap{.shards = kShards, .partitioned = {{kHot, 3}}};
const ShardMap kUnaware{.shards = kShards};

Shards shards_of(const std::vector<Part>& round) {
  Shards shards;
  for (const Part& part : round) shards.push_back(part.shard);
  return shards;
}

QueueView view_of(std::uint64_t ready) {
  return {.stats = {.queue = kHot,
                    .scheduled = 1,
                    .ready = ready,
                    .leased = 2,
                    .dead = 3,
                    .oldest_ready_age = std::chrono::milliseconds{ready}},
          .bytes = 10,
          .settings = {.rate = 5, .partitions = 3}};
}

/// Answers as a partition that has as many ready tasks as the number of its shard.
net::HttpResponse show(const Part& part) {
  return ok_json(json::render_queue(view_of(part.shard)));
}

QueuePoint point(int second, std::uint64_t leased, std::chrono::milliseconds late) {
  return {.at = WallTime{std::chrono::seconds{second}},
          .span = std::chrono::seconds{10},
          .accepted = 1,
          .fired = 2,
          .leased = leased,
          .completed = 3,
          .failed = 4,
          .expired = 5,
          .died = 6,
          .lateness = leased > 0 ? std::optional(HandOutLateness{late, 2 * late}) : std::nullopt};
}

TEST(QueuePlan, TheHistoriesOfThePartitionsAreAddedStepByStep) {
  using std::chrono::milliseconds;
  const auto play = [](const Part& part) {
    if (part.shard == 0) return not_there();  // a partition that does not exist yet
    QueueHistory history{.queue = kHot,
                         .step = std::chrono::seconds{10},
                         .since = WallTime{std::chrono::seconds{5}}};
    if (part.shard == 6) {
      history.points = {point(20, 1, milliseconds{10}), point(30, 0, milliseconds{0}),
                        point(40, 2, milliseconds{5})};
    } else {
      history.since = WallTime{std::chrono::seconds{15}};
      history.points = {point(30, 3, milliseconds{8}), point(40, 6, milliseconds{9}),
                        point(50, 1, milliseconds{1})};
    }
    return ok_json(json::render_queue_history(history));
  };
  const net::HttpRequest request = get("/v1/stats/history?span=1m&queue=" + kHot);
  EXPECT_FALSE(is_of_node(request));
  const CarriedOut done = carry_out(request, kMap, play);
  EXPECT_EQ(shards_of(done.rounds.at(0)), (Shards{6, 7, 0}));
  const QueueHistory sum = json::parse_queue_history(done.answer.body).value();
  EXPECT_EQ(sum.since, WallTime{std::chrono::seconds{15}}) << "earlier steps are not complete";
  ASSERT_EQ(sum.points.size(), 4u);
  EXPECT_EQ(sum.points[0], point(20, 1, milliseconds{10}));
  EXPECT_EQ(sum.points[1].lateness, (HandOutLateness{milliseconds{8}, milliseconds{16}}));
  EXPECT_EQ(sum.points[3], point(50, 1, milliseconds{1}));
  const QueuePoint& both = sum.points[2];
  EXPECT_EQ(both.accepted, 2u);
  EXPECT_EQ(both.fired, 4u);
  EXPECT_EQ(both.leased, 8u);
  EXPECT_EQ(both.completed, 6u);
  EXPECT_EQ(both.failed, 8u);
  EXPECT_EQ(both.expired, 10u);
  EXPECT_EQ(both.died, 12u);
  EXPECT_EQ(both.lateness, (HandOutLateness{milliseconds{8}, milliseconds{18}}));
  EXPECT_EQ(carry_out(request, kMap, [](const Part&) { return not_there(); }).answer.status, 404);
  EXPECT_EQ(carry_out(request, kUnaware, play).rounds.at(0).size(), 1u);
}

TEST(QueuePlan, TheHistoryOfAllQueuesIsOfTheNode) {
  EXPECT_TRUE(is_of_node(get("/v1/stats/history")));
  EXPECT_TRUE(is_of_node(get("/v1/stats/history?span=1h&step=1m")));
  EXPECT_TRUE(is_of_node(get("/v1/stats/history?")));
  EXPECT_TRUE(is_of_node(get("/v1/stats/history?span=1h&&")));
  EXPECT_FALSE(is_of_node(get("/v1/stats/history?span=1h&%71ueue=a")));
  EXPECT_FALSE(is_of_node(get("/v1/stats/history?queue=")));
}

TEST(QueuePlan, TheHomeOfAQueueIsAskedFirstAndNamesTheOtherShards) {
  for (const ShardMap& map : {kMap, kUnaware}) {
    const CarriedOut done = carry_out(get("/v1/queues/" + kHot), map, show);
    ASSERT_EQ(done.rounds.size(), 2u);
    EXPECT_EQ(shards_of(done.rounds[0]), Shards{6});
    EXPECT_EQ(shards_of(done.rounds[1]), (Shards{7, 0}));
    const QueueView whole = json::parse_queue(done.answer.body).value();
    EXPECT_EQ(whole.stats.ready, 13u);
    EXPECT_EQ(whole.stats.scheduled, 3u);
    EXPECT_EQ(whole.stats.leased, 6u);
    EXPECT_EQ(whole.stats.dead, 9u);
    EXPECT_EQ(whole.stats.oldest_ready_age, std::chrono::milliseconds{7});
    EXPECT_EQ(whole.bytes, 30u);
    EXPECT_EQ(whole.settings, view_of(0).settings);
  }
}

TEST(QueuePlan, SettingsAreSetAtTheHomeFirstThenEverywhere) {
  net::HttpRequest patch = post("/v1/queues/" + kHot, R"({"partitions":3,"rate":5})");
  patch.method = "PATCH";
  const CarriedOut done = carry_out(patch, kUnaware, show);
  ASSERT_EQ(done.rounds.size(), 2u);
  EXPECT_EQ(shards_of(done.rounds[0]), Shards{6});
  EXPECT_EQ(shards_of(done.rounds[1]), (Shards{7, 0}));
  for (const Part& part : done.rounds[1]) EXPECT_EQ(part.request.body, patch.body);
  EXPECT_EQ(done.answer.status, 200);
  const CarriedOut refused = carry_out(
      patch, kUnaware, [](const Part&) { return net::HttpResponse{.status = 409, .body = "{}"}; });
  EXPECT_EQ(refused.rounds.size(), 1u) << "if the home refuses, no other shard is asked";
  EXPECT_EQ(refused.answer.status, 409);
}

TEST(QueuePlan, AChangeThatAPartitionCouldNotMakeHasFailed) {
  for (const char* verb : {"/pause", "/resume"}) {
    const CarriedOut done =
        carry_out(post("/v1/queues/" + kHot + verb, ""), kMap,
                  [](const Part& part) { return part.shard == 0 ? unreachable() : show(part); });
    EXPECT_EQ(done.answer.status, 503);
  }
}

TEST(QueuePlan, MorePartitionsThanShardsAreRefused) {
  net::HttpRequest patch = post("/v1/queues/" + kHot, R"({"partitions":9})");
  patch.method = "PATCH";
  const CarriedOut done = carry_out(patch, kMap, nullptr);
  EXPECT_TRUE(done.rounds.empty());
  EXPECT_EQ(done.answer.status, 400);
  EXPECT_NE(done.answer.body.find("\"partitions\""), std::string::npos);
}

TEST(QueuePlan, AQueueIsRemovedOnceAllItsPartitionsAreEmptyAndItsHomeLast) {
  net::HttpRequest remove = get("/v1/queues/" + kHot);
  remove.method = "DELETE";
  for (const ShardMap& map : {kMap, kUnaware}) {
    const CarriedOut full = carry_out(remove, map, [](const Part& part) {
      QueueView view = view_of(0);
      const std::uint64_t dead = part.shard == 7 ? 1 : 0;
      view.stats = {.queue = kHot, .dead = dead, .oldest_ready_age = {}};
      return ok_json(json::render_queue(view));
    });
    EXPECT_EQ(full.answer.status, 409);
    for (const auto& round : full.rounds) {
      for (const Part& part : round) EXPECT_EQ(part.request.method, "GET");
    }
    Shards removed;
    const CarriedOut empty = carry_out(remove, map, [&](const Part& part) {
      if (part.request.method == "DELETE") {
        removed.push_back(part.shard);
        return part.shard == 0 ? not_there() : ok_json(json::render_removed_queue(kHot));
      }
      QueueView view = view_of(0);
      view.stats = {.queue = kHot, .oldest_ready_age = {}};
      return ok_json(json::render_queue(view));
    });
    EXPECT_EQ(empty.answer.status, 200);
    EXPECT_EQ(removed, (Shards{7, 0, 6, 7, 0})) << "also partitions that were made again since";
  }
}

TEST(QueuePlan, AHomeIsNotRemovedBeforeItsPartitions) {
  net::HttpRequest remove = get("/v1/queues/" + kHot);
  remove.method = "DELETE";
  const CarriedOut done = carry_out(remove, kMap, [&](const Part& part) {
    if (part.request.method == "DELETE") return unreachable();
    QueueView view = view_of(0);
    view.stats = {.queue = kHot, .oldest_ready_age = {}};
    return ok_json(json::render_queue(view));
  });
  EXPECT_EQ(done.answer.status, 503);
  EXPECT_EQ(shards_of(done.rounds.back()), (Shards{7, 0}));
}

TEST(QueuePlan, APurgeIsSentToAllPartitionsThatTheHomeNames) {
  for (const ShardMap& map : {kMap, kUnaware}) {
    for (const char* verb : {"/purge", "/redrive?"}) {
      const CarriedOut done =
          carry_out(post("/v1/queues/" + kHot + verb, "{}"), map, [](const Part& part) {
            const bool is_look = part.request.method == "GET";
            return is_look ? show(part) : ok_json(json::render_count(part.shard));
          });
      ASSERT_EQ(done.rounds.size(), 2u);
      EXPECT_EQ(shards_of(done.rounds[0]), Shards{6});
      EXPECT_EQ(done.rounds[0][0].request.target, "/v1/queues/" + kHot);
      EXPECT_EQ(shards_of(done.rounds[1]), (Shards{6, 7, 0}));
      EXPECT_EQ(done.rounds[1][1].request.target, "/v1/queues/" + kHot + verb);
      EXPECT_EQ(json::parse_count(done.answer.body).value(), 13u);
    }
  }
}

TEST(QueuePlan, APurgeOfAQueueWithoutPartitionsIsSentToItsHomeOnly) {
  const net::HttpRequest purge = post("/v1/queues/" + kHot + "/purge", "");
  const CarriedOut none = carry_out(purge, kMap, [](const Part&) { return not_there(); });
  EXPECT_EQ(none.rounds.size(), 1u);
  EXPECT_EQ(none.answer.status, 404);
  const CarriedOut plain = carry_out(purge, kUnaware, [](const Part& part) {
    if (part.request.method == "POST") return net::HttpResponse{.status = 403, .body = "{}"};
    return ok_json(json::render_queue({.stats = {.queue = kHot}, .settings = {}}));
  });
  EXPECT_EQ(shards_of(plain.rounds.at(1)), Shards{6});
  EXPECT_EQ(plain.answer.status, 403);
}

// ---- tasks ----

TEST(QueuePlan, TasksWithoutAKeyAreSpreadAndThoseWithAKeyGoToItsPartition) {
  const auto place_of = [](const std::string& key, std::uint64_t turn) {
    const std::string body = R"({"queue":")" + kHot + R"(","payload":1)" +
                             (key.empty() ? "" : R"(,"key":")" + key + '"') + "}";
    const CarriedOut done = carry_out(
        post("/v1/tasks", body), kMap, [](const Part&) { return ok_json("{}"); }, turn);
    EXPECT_EQ(done.rounds.size(), 1u);
    return done.rounds.at(0).at(0).shard;
  };
  EXPECT_EQ((Shards{place_of("", 0), place_of("", 1), place_of("", 2), place_of("", 3)}),
            (Shards{6, 7, 0, 6}));
  const std::string keys_of_hot = "/v1/queues/" + kHot + "/keys/";
  std::set<ShardNumber> used;
  for (int i = 0; i < 30; ++i) {
    const std::string key = "k" + std::to_string(i);
    const ShardNumber place = place_of(key, 0);
    EXPECT_EQ(place_of(key, 1), place);
    EXPECT_EQ(kMap.place_of(kHot, key, 2), place);
    const CarriedOut looked =
        carry_out(get(keys_of_hot + key), kMap, [](const Part&) { return not_there(); });
    EXPECT_EQ(looked.rounds.at(0).at(0).shard, place);
    used.insert(place);
  }
  EXPECT_EQ(used, (std::set<ShardNumber>{0, 6, 7}));
}

TEST(QueuePlan, ABatchAndItsKeysAreSpreadAlike) {
  std::string batch;
  std::string keys;
  std::map<ShardNumber, int> expected;
  for (int i = 0; i < 12; ++i) {
    const std::string key = "n" + std::to_string(i);
    batch += i > 0 ? "," : "[";
    batch.append(R"({"queue":")").append(kHot).append(R"(","key":")").append(key).append(R"("})");
    keys += (i > 0 ? "," : "") + ('"' + key + '"');
    ++expected[kMap.place_of(kHot, key, 0)];
  }
  const auto count = [](const CarriedOut& done, const std::string& needle) {
    std::map<ShardNumber, int> found;
    for (const Part& part : done.rounds.at(0)) {
      const std::string& body = part.request.body;
      for (std::size_t at = 0; (at = body.find(needle, at)) != std::string::npos; ++at) {
        ++found[part.shard];
      }
    }
    return found;
  };
  const auto play = [](const Part&) { return unreachable(); };
  EXPECT_EQ(count(carry_out(post("/v1/tasks/batch", batch + "]"), kMap, play), "\"n"), expected);
  const std::string named = R"({"queue":")" + kHot + R"(","keys":[)" + keys + "]}";
  EXPECT_EQ(count(carry_out(post("/v1/tasks/cancel", named), kMap, play), "\"n"), expected);
}

TEST(QueuePlan, AListOfAQueueWithPartitionsAsksAllShards) {
  const CarriedOut done = carry_out(get("/v1/tasks?queue=" + kHot), kMap, [](const Part& part) {
    EXPECT_NE(part.request.target.find("queue=" + kHot), std::string::npos);
    return ok_json(R"({"tasks":[],"cursor":null})");
  });
  EXPECT_EQ(done.rounds.at(0).size(), kShards);
  EXPECT_EQ(done.answer.body, R"({"tasks":[],"cursor":null})");
}

TEST(QueuePlan, ANodeThatDoesNotKnowThePartitionsListsTheFirst) {
  for (const std::string& target : {"/v1/tasks?queue=" + kHot, "/v1/queues/" + kHot + "/keys/k1"}) {
    const CarriedOut done =
        carry_out(get(target), kUnaware, [](const Part&) { return not_there(); });
    EXPECT_EQ(shards_of(done.rounds.at(0)), Shards{6}) << target;
  }
}

TEST(QueuePlan, PartitionsAreOneQueueInListsAndFigures) {
  const CarriedOut listed = carry_out(get("/v1/queues"), kMap, [](const Part& part) {
    const bool has_it = part.shard > 5 || part.shard == 0;
    QueueView other{.stats = {.queue = "a" + std::to_string(part.shard)}, .settings = {}};
    std::vector<QueueView> views{other};
    if (has_it) views.push_back(view_of(part.shard));
    return ok_json(json::render_queues(views));
  });
  const std::vector<QueueView> queues = json::parse_queues(listed.answer.body).value();
  ASSERT_EQ(queues.size(), kShards + 1);
  EXPECT_EQ(queues.back().stats.queue, kHot);
  EXPECT_EQ(queues.back().stats.ready, 13u);
  const CarriedOut figures = carry_out(get("/v1/stats"), kMap, [](const Part& part) {
    json::ServerStats stats;
    stats.queue_count = part.shard < 2 ? 1 : 0;
    if (part.shard < 2) stats.queues = {view_of(part.shard).stats};
    return ok_json(json::render_stats(stats));
  });
  const json::ServerStats sum = json::parse_stats(figures.answer.body).value();
  EXPECT_EQ(sum.queue_count, 1u);
  ASSERT_EQ(sum.queues.size(), 1u);
  EXPECT_EQ(sum.queues[0].ready, 1u);
  EXPECT_EQ(sum.queues[0].leased, 4u);
}

std::string task_on(ShardNumber shard) {
  std::string text;
  json::append_dump_line(text, Task{.id = TaskId{256}.on_shard(shard), .queue = kHot});
  return text;
}

TEST(QueuePlan, ARestoreMakesAQueueWithPartitionsHomeFirstAndCountsItOnce) {
  std::string hot;
  json::append_dump_line(hot, json::DumpedQueue{.queue = kHot, .settings = {.partitions = 3}});
  std::string plain;
  json::append_dump_line(plain, json::DumpedQueue{.queue = queue_of(7, kShards), .settings = {}});
  const net::HttpRequest restore = post("/v1/restore", hot + plain + task_on(7));
  const CarriedOut done = carry_out(restore, kUnaware, [&](const Part& part) {
    const bool makes = part.request.body.find("\"queue\":{") != std::string::npos;
    json::RestoreAnswer answer;
    answer.queues = makes ? 1 : 0;
    if (!makes || part.request.body != hot) {
      answer.errors.push_back({2, {ErrorCode::invalid_argument, "wrong", "task"}});
    }
    return ok_json(json::render_restored(answer));
  });
  ASSERT_EQ(done.rounds.size(), 3u);
  EXPECT_EQ(shards_of(done.rounds[0]), Shards{6}) << "the home first";
  EXPECT_EQ(shards_of(done.rounds[1]), (Shards{0, 7}));
  for (const std::size_t round : {0u, 1u}) EXPECT_EQ(done.rounds[round][0].request.body, hot);
  EXPECT_EQ(shards_of(done.rounds[2]), Shards{7});
  EXPECT_EQ(done.rounds[2][0].request.body, plain + task_on(7));
  const json::RestoreAnswer answer = json::parse_restored(done.answer.body).value();
  EXPECT_EQ(answer.queues, 2u);
  ASSERT_EQ(answer.errors.size(), 1u);
  EXPECT_EQ(answer.errors[0].line, 3u);
  for (const ShardNumber refuses : {6u, 7u}) {
    const CarriedOut refused = carry_out(restore, kUnaware, [refuses](const Part& part) {
      json::RestoreAnswer other;
      if (part.shard == refuses) {
        other.errors.push_back({1, {ErrorCode::conflict, "another number", "queue"}});
      }
      return ok_json(json::render_restored(other));
    });
    EXPECT_EQ(refused.rounds.size(), std::size_t{refuses} - 5) << "no further shard is asked";
    EXPECT_EQ(refused.answer.status, 409);
  }
}

// The line of the queue was in an earlier call, and this node does not know the partitions.
TEST(QueuePlan, ARestoreOfTasksOnlySendsThemToTheShardsOfTheirIds) {
  const net::HttpRequest restore = post("/v1/restore", task_on(0) + task_on(7) + task_on(8));
  const CarriedOut done = carry_out(restore, kUnaware, [](const Part&) {
    return ok_json(json::render_restored({.restored = 1}));
  });
  ASSERT_EQ(done.rounds.size(), 1u);
  ASSERT_EQ(shards_of(done.rounds[0]), (Shards{0, 7}));
  EXPECT_EQ(done.rounds[0][1].request.body, task_on(7));
  const json::RestoreAnswer answer = json::parse_restored(done.answer.body).value();
  EXPECT_EQ(answer.restored, 2u);
  ASSERT_EQ(answer.errors.size(), 1u) << "for the shard that does not exist";
  EXPECT_EQ(answer.errors[0].line, 3u);
  EXPECT_EQ(answer.errors[0].error.field, "task.id");
}

// ---- lease ----

net::HttpResponse with_tasks() { return ok_json(R"({"tasks":[{"id":"256"}]})"); }
net::HttpResponse without_tasks() { return ok_json(R"({"tasks":[]})"); }

net::HttpRequest lease(const std::string& body) {
  return post("/v1/queues/" + kHot + "/lease", body);
}

TEST(QueuePlan, ALeaseAsksOnePartitionAfterTheOtherUntilOneHasTasks) {
  const CarriedOut done = carry_out(
      lease(R"({"wait":"20s","max":7,"worker":"ada"})"), kMap,
      [](const Part& part) { return part.shard == 0 ? with_tasks() : without_tasks(); }, 1);
  ASSERT_EQ(done.rounds.size(), 1u);
  EXPECT_EQ(shards_of(done.rounds[0]), (Shards{7, 0}));
  for (const Part& part : done.rounds[0]) {
    EXPECT_EQ(part.request.body, R"({"max":7,"worker":"ada"})") << "without a wait";
  }
  EXPECT_EQ(done.answer.body, with_tasks().body);
}

net::HttpResponse to_who_waits(const Part& part) {
  return part.request.body.find("wait") == std::string::npos ? without_tasks() : with_tasks();
}

TEST(QueuePlan, AWorkerThatWaitsWaitsAtAllPartitionsAtOnce) {
  const std::string body = R"({"wait":"20s"})";
  const CarriedOut done = carry_out(lease(body), kMap, to_who_waits);
  ASSERT_EQ(done.rounds.size(), 2u);
  EXPECT_EQ(shards_of(done.rounds[1]), (Shards{6, 7, 0}));
  for (const Part& part : done.rounds[1]) EXPECT_EQ(part.request.body, body);
  EXPECT_EQ(done.answer.body, with_tasks().body);
}

TEST(QueuePlan, AWorkerThatDoesNotWaitAsksEachPartitionOnce) {
  for (const char* body : {"", "{}", R"({"wait_ms":0})"}) {
    const CarriedOut done =
        carry_out(lease(body), kMap, [](const Part&) { return without_tasks(); });
    ASSERT_EQ(done.rounds.size(), 1u);
    EXPECT_EQ(shards_of(done.rounds[0]), (Shards{6, 7, 0}));
    EXPECT_EQ(done.answer.body, without_tasks().body);
  }
}

TEST(QueuePlan, AnUnreachablePartitionDoesNotHideTasksOfOthers) {
  const CarriedOut done = carry_out(lease(""), kMap, [](const Part& part) {
    return part.shard == 0 ? with_tasks() : unreachable();
  });
  EXPECT_EQ(done.answer.body, with_tasks().body);
}

TEST(QueuePlan, AnEmptyLeaseIsAnErrorWhileAPartitionIsUnreachable) {
  for (const ShardNumber away : {6u, 7u, 0u}) {
    const CarriedOut done = carry_out(lease(""), kMap, [away](const Part& part) {
      return part.shard == away ? unreachable() : without_tasks();
    });
    EXPECT_EQ(done.answer.status, 503) << away;
  }
}

TEST(QueuePlan, AWorkerThatWaitsDoesNotWaitForSlowPartitions) {
  for (const ShardNumber other : {6u, 7u, 0u, kShards}) {  // kShards: all partitions are slow
    const CarriedOut done = carry_out(lease(R"({"wait":"20s"})"), kMap, [other](const Part& part) {
      const net::HttpResponse answer = to_who_waits(part);
      const bool is_asked_first = answer.body == without_tasks().body;
      return is_asked_first && part.shard != other ? net::HttpResponse{.status = 0} : answer;
    });
    ASSERT_EQ(done.rounds.size(), 2u);
    EXPECT_EQ(shards_of(done.rounds[1]), (Shards{6, 7, 0})) << "also at the slow partition";
    EXPECT_EQ(done.answer.body, with_tasks().body);
  }
}

TEST(QueuePlan, AWaitContinuesForItsRemainingTimeWhereTheQueueHasMoved) {
  const Step begun = plan_request(lease(R"({"wait":"20s","max":7})"), kUnaware, 0);
  const Plan& plan = std::get<Plan>(begun);
  EXPECT_EQ(shards_of(plan.parts), Shards{6});
  ASSERT_TRUE(plan.renewal);
  EXPECT_EQ(plan.renewal->queue, kHot);
  const CarriedOut divided =
      carry_out(plan.renewal->plan(kMap, std::chrono::seconds{5}), to_who_waits);
  ASSERT_EQ(divided.rounds.size(), 2u);
  EXPECT_EQ(shards_of(divided.rounds[1]), (Shards{6, 7, 0}));
  EXPECT_EQ(divided.rounds[1][0].request.body, R"({"max":7,"wait_ms":15000})");
  const CarriedOut over = carry_out(plan.renewal->plan(kMap, std::chrono::seconds{21}),
                                    [](const Part&) { return without_tasks(); });
  EXPECT_EQ(over.rounds.size(), 1u) << "the wait has ended";
  EXPECT_EQ(over.answer.body, without_tasks().body);
}

TEST(QueuePlan, ARequestWithoutAWaitIsPlannedOnce) {
  for (const char* body : {"", R"({"max":0,"wait":"1s"})"}) {
    const Step begun = plan_request(lease(body), kUnaware, 0);
    EXPECT_FALSE(std::get<Plan>(begun).renewal) << body;
  }
}

TEST(QueuePlan, AnInvalidLeaseIsRefusedByOneShard) {
  const CarriedOut wrong = carry_out(lease(R"({"max":0})"), kMap, [](const Part&) {
    return net::HttpResponse{.status = 400, .body = "{}"};
  });
  EXPECT_EQ(wrong.rounds.size(), 1u);
  const CarriedOut forbidden = carry_out(lease("{}"), kMap, [](const Part&) {
    return net::HttpResponse{.status = 403, .body = "{}"};
  });
  EXPECT_EQ(forbidden.rounds.size(), 1u);
  EXPECT_EQ(forbidden.answer.status, 403);
}

}  // namespace
}  // namespace detent::gateway

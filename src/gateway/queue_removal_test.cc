// Removes a queue with partitions while others use it. The simulated shards keep the same data as
// an engine, and accept the same requests. After every conflict there must be a way to continue.
#include <gtest/gtest.h>

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <utility>

#include "gateway/plan_fixture.h"
#include "gateway/queue_plan.h"
#include "protocol/json/queue_codec.h"

namespace detent::gateway {
namespace {

constexpr ShardNumber kShards = 8;
const std::string kHot = queue_of(6, kShards);  // its partitions are on shards 6, 7 and 0
const std::string kPath = "/v1/queues/" + kHot;
const std::string kMade = R"({"partitions":3,"rate":5})";

net::HttpResponse status(int number) { return {.status = number, .body = "{}"}; }

/// The data of the queue on each shard.
class QueueRemoval : public testing::Test {
 public:
  struct Record {
    QueueSettings settings;
    std::uint64_t tasks = 0;
  };

  int ask(const std::string& method, const std::string& target, const std::string& body = "") {
    net::HttpRequest request = post(target, body);
    request.method = method;
    last_ = carry_out(request, {.shards = kShards}, [this](const Part& part) {
      if (meanwhile_) meanwhile_(part);
      return play(part);
    });
    return last_.answer.status;
  }
  int make() { return ask("PATCH", kPath, kMade); }
  /// Puts a task into a partition, as a node that knows the partitions.
  int put_into(ShardNumber shard) {
    net::HttpRequest request = post("/v1/tasks", "{}");
    return play({.shard = shard, .request = request}).status;
  }
  bool said(const std::string& text) const {
    return last_.answer.body.find(text) != std::string::npos;
  }
  /// Calls `then` just before the shard receives its first request with this method.
  void when(const std::string& method, ShardNumber shard, std::function<void()> then) {
    meanwhile_ = [this, method, shard, then = std::move(then)](const Part& part) {
      if (part.request.method != method || part.shard != shard) return;
      const std::function<void()> once = then;
      meanwhile_ = nullptr;
      once();
    };
  }

  std::map<ShardNumber, Record> records_;
  CarriedOut last_;

 private:
  net::HttpResponse play(const Part& part) {
    const auto found = records_.find(part.shard);
    const bool is_there = found != records_.end();
    const std::uint32_t known = is_there ? found->second.settings.partitions : 1;
    const std::string& method = part.request.method;
    if (part.request.target == "/v1/tasks") {
      if (!takes(part.shard, known)) return status(503);
      ++records_[part.shard].tasks;
      return status(201);
    }
    if (method == "PATCH") return change(part, known);
    if (!is_there) return not_there();
    Record& record = found->second;
    if (method == "GET") return show(record);
    if (method == "POST") return ok_json(json::render_count(std::exchange(record.tasks, 0)));
    if (record.tasks > 0) return status(409);
    records_.erase(found);
    return ok_json(json::render_removed_queue(kHot));
  }
  static bool takes(ShardNumber shard, std::uint32_t partitions) {
    return taken_by(shard, kShards)(kHot, partitions, "");
  }
  static net::HttpResponse show(const Record& record) {
    return ok_json(json::render_queue(
        {.stats = {.queue = kHot, .ready = record.tasks}, .settings = record.settings}));
  }
  net::HttpResponse change(const Part& part, std::uint32_t known) {
    const json::QueuePatch patch = json::parse_queue_patch(part.request.body).value();
    const std::uint32_t wanted = patch.partitions.value_or(known);
    if (!takes(part.shard, wanted)) return status(503);
    if (wanted != known && records_.contains(part.shard)) return status(409);
    Record& record = records_[part.shard];
    record.settings = patch.applied_to(record.settings);
    return show(record);
  }

  std::function<void(const Part&)> meanwhile_;
};

TEST_F(QueueRemoval, APutDuringARemovalIsReportedAndTheNextSucceeds) {
  ASSERT_EQ(make(), 200);
  when("DELETE", 7, [this] { EXPECT_EQ(put_into(0), 201); });
  EXPECT_EQ(ask("DELETE", kPath), 409);
  EXPECT_TRUE(said("DELETE the queue again when it is empty, or repeat the PATCH"))
      << last_.answer.body;
  EXPECT_FALSE(records_.contains(7));
  EXPECT_EQ(put_into(7), 503);
  EXPECT_EQ(ask("GET", kPath), 200);
  EXPECT_EQ(ask("DELETE", kPath), 409) << "the queue has the new task";
  EXPECT_EQ(ask("POST", kPath + "/purge"), 200);
  EXPECT_EQ(ask("DELETE", kPath), 200);
  EXPECT_TRUE(records_.empty());
  EXPECT_EQ(ask("GET", kPath), 404);
  EXPECT_EQ(make(), 200);
  EXPECT_EQ(put_into(7), 201);
}

TEST_F(QueueRemoval, ThePatchThatMadeTheQueueMakesItsMissingPartitions) {
  ASSERT_EQ(make(), 200);
  when("DELETE", 6, [this] { EXPECT_EQ(put_into(6), 201); });
  EXPECT_EQ(ask("DELETE", kPath), 409) << "its home got a task at the last moment";
  EXPECT_TRUE(said("repeat the PATCH that created it")) << last_.answer.body;
  EXPECT_EQ(records_.size(), 1u);
  EXPECT_EQ(ask("PATCH", kPath, R"({"rate":7})"), 503) << "no shard knows the other settings";
  EXPECT_EQ(make(), 200);
  for (const ShardNumber shard : {6u, 7u, 0u}) {
    EXPECT_EQ(records_[shard].settings.rate, 5u);
    EXPECT_EQ(put_into(shard), 201);
  }
}

TEST_F(QueueRemoval, APartitionMadeAgainDuringARemovalIsRemovedToo) {
  ASSERT_EQ(make(), 200);
  when("DELETE", 6, [this] { records_[7].settings.partitions = 3; });
  EXPECT_EQ(ask("DELETE", kPath), 200);
  EXPECT_TRUE(said("removed"));
  EXPECT_TRUE(records_.empty());
}

TEST_F(QueueRemoval, APartitionMadeAgainWithTasksIsReportedAndCanBeRemoved) {
  ASSERT_EQ(make(), 200);
  when("DELETE", 6, [this] {
    records_[7].settings.partitions = 3;
    EXPECT_EQ(put_into(7), 201);
  });
  EXPECT_EQ(ask("DELETE", kPath), 503);
  EXPECT_TRUE(said("repeat the PATCH that created the queue, purge the queue"))
      << last_.answer.body;
  EXPECT_EQ(ask("DELETE", kPath), 503);
  EXPECT_EQ(make(), 200);
  EXPECT_EQ(ask("POST", kPath + "/purge"), 200);
  EXPECT_EQ(ask("DELETE", kPath), 200);
  EXPECT_TRUE(records_.empty());
}

TEST_F(QueueRemoval, ARemovalThatStoppedAfterTheHomeContinues) {
  records_[0].settings.partitions = 3;
  EXPECT_EQ(ask("DELETE", kPath), 200);
  EXPECT_TRUE(records_.empty());
  EXPECT_EQ(ask("DELETE", kPath), 404);
  EXPECT_EQ(last_.rounds.at(1).size(), kShards - 1) << "every shard may have a partition";
}

}  // namespace
}  // namespace detent::gateway

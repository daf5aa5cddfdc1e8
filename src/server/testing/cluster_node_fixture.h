// Fixture: nodes of a cluster in one process, with real sockets between them, and with a lease
// table and disks in memory. For tests of all cluster parts together.
#pragma once

#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <memory>
#include <string>
#include <utility>

#include "base/log/log.h"
#include "cluster/shard_map.h"
#include "net/http_client/http_client.h"
#include "server/cluster/cluster_node.h"
#include "server/http/http_reply.h"
#include "store/testing/memory_lease_table.h"
#include "store/testing/memory_store.h"

namespace detent::server {

using namespace std::chrono_literals;  // NOLINT(google-build-using-namespace): literals only

inline constexpr ShardNumber kShards = 8;
inline constexpr std::string_view kSecret = "of this cluster";

/// The state that the nodes share, in place of a database.
class World {
 public:
  explicit World(std::chrono::milliseconds lease)
      : lease_length_(lease), table_(clock_, kShards, lease) {
    set_log_level(LogLevel::error);  // the first to touch the log: no thread runs yet
  }

  /// One node's view of the table.
  class View final : public LeaseTable {
   public:
    explicit View(World& world) : world_(world) {}
    ShardNumber shards() const noexcept override { return kShards; }
    std::chrono::milliseconds lease_length() const noexcept override {
      return world_.lease_length_;
    }
    Result<ClusterView> beat(const Member& me, std::span<const ShardLease> held) override {
      return call([&](LeaseTable& table) { return table.beat(me, held); });
    }
    Result<std::optional<ShardLease>> take(ShardNumber shard, const std::string& node) override {
      return call([&](LeaseTable& table) { return table.take(shard, node); });
    }
    Result<void> give_up(const ShardLease& lease) override {
      return call([&](LeaseTable& table) { return table.give_up(lease); });
    }
    Result<void> leave(const Member& me) override {
      return call([&](LeaseTable& table) { return table.leave(me); });
    }
    Result<std::vector<ShardOwner>> owners() override {
      return call([&](LeaseTable& table) { return table.owners(); });
    }
    Result<std::vector<QueuePartitions>> partitioned() override {
      return call([&](LeaseTable& table) { return table.partitioned(); });
    }

   private:
    template <class Verb>
    auto call(Verb verb) -> decltype(verb(std::declval<LeaseTable&>())) {
      const MutexLock lock(world_.mutex_);
      if (world_.is_down_) return Error{ErrorCode::unavailable, "the database is down", ""};
      return verb(world_.table_);
    }
    World& world_;
  };

  Result<OpenEngine> open(const ShardLease& lease, ChangeFeed& changes) {
    MemoryDisk* disk = nullptr;
    {
      const MutexLock lock(mutex_);
      disk = &disks_.at(lease.shard);
    }
    OpenEngine opened;
    ASSIGN_OR_RETURN(opened.store, MemoryStore::open(*disk));
    ASSIGN_OR_RETURN(opened.engine, Engine::open(*opened.store, clock_,
                                                 {.keep_leases = true,
                                                  .shard = lease.shard,
                                                  .changes = &changes,
                                                  .is_here = taken_by(lease.shard, kShards)}));
    const MutexLock lock(mutex_);
    if (opens_to_fail_ == 0) return opened;
    --opens_to_fail_;
    return Error{ErrorCode::unavailable, "the database has gone", ""};
  }
  /// The next `opens` attempts to open a shard fail at the last moment.
  void fail_opens(int opens) {
    const MutexLock lock(mutex_);
    opens_to_fail_ = opens;
  }
  bool has_failed_opens() {
    const MutexLock lock(mutex_);
    return opens_to_fail_ == 0;
  }
  void set_down(bool is_down) {
    const MutexLock lock(mutex_);
    is_down_ = is_down;
  }
  /// Sets the partitioned queues that the nodes read from the database.
  void set_partitioned(const PartitionedQueues& queues) {
    std::vector<QueuePartitions> rows;
    for (const auto& [queue, partitions] : queues) {
      rows.push_back({shard_of_queue(queue, kShards), queue, partitions});
    }
    const MutexLock lock(mutex_);
    table_.set_partitioned(std::move(rows));
  }
  Clock& clock() { return clock_; }

 private:
  SystemClock clock_;
  const std::chrono::milliseconds lease_length_;
  Mutex mutex_;
  MemoryLeaseTable table_ DETENT_GUARDED_BY(mutex_);
  std::array<MemoryDisk, kShards> disks_;
  bool is_down_ DETENT_GUARDED_BY(mutex_) = false;
  int opens_to_fail_ DETENT_GUARDED_BY(mutex_) = 0;
};

/// A node and its HTTP server.
class TestNode {
 public:
  TestNode(World& world, const std::string& name, RoutesOptions routes = {}) {
    http_ = net::HttpServer::start(
                {},
                [this](net::HttpRequest request, net::Responder responder) {
                  ClusterNode* const node = node_now_.load();
                  if (node == nullptr) return responder.send(http_problem(503, "starting"));
                  node->handle(std::move(request), std::move(responder));
                },
                http_problem)
                .value();
    node_ = ClusterNode::start(
                {.me = {name, "127.0.0.1:" + std::to_string(http_->port())},
                 .secret = std::string(kSecret),
                 .open = [&world](const ShardLease& lease,
                                  ChangeFeed& changes) { return world.open(lease, changes); },
                 .routes = std::move(routes)},
                std::make_unique<World::View>(world), world.clock())
                .value();
    EXPECT_TRUE(node_->start_beanstalk({}));
    node_now_ = node_.get();
    client_ = new_client();
  }
  ~TestNode() { stop(); }
  TestNode(const TestNode&) = delete;
  TestNode& operator=(const TestNode&) = delete;

  void stop() {
    node_->end_waits();
    node_->stop();
    http_->stop(10s);
  }
  void check_again() { node_->check_again(); }
  std::unique_ptr<net::HttpClient> new_client() const {
    return net::HttpClient::create("http://" + address(), 60s).value();
  }
  ClusterNode& node() { return *node_; }
  std::uint16_t beanstalk_port() const { return node_->beanstalk()->port(); }
  std::uint16_t port() const { return http_->port(); }
  std::string address() const { return "127.0.0.1:" + std::to_string(http_->port()); }
  net::HttpResponse send(const std::string& method, const std::string& target,
                         const std::string& body = "", net::HttpHeaders headers = {}) {
    return client_
        ->send({.method = method, .target = target, .headers = std::move(headers), .body = body})
        .value();
  }
  /// Asks again until the answer no longer says that the shard is moving.
  net::HttpResponse ask(const std::string& method, const std::string& target,
                        const std::string& body = "") {
    for (;;) {
      net::HttpResponse answer = send(method, target, body);
      if (answer.status != 503) return answer;
    }
  }

 private:
  std::atomic<ClusterNode*> node_now_{nullptr};
  std::unique_ptr<ClusterNode> node_;  // outlives the requests that come by the server
  std::unique_ptr<net::HttpServer> http_;
  std::unique_ptr<net::HttpClient> client_;
};

/// Two nodes.
class TwoNodesTest : public ::testing::Test {
 protected:
  static constexpr std::chrono::milliseconds kLease{1'000};
  World world_{kLease};
  TestNode a_{world_, "a"};
  TestNode b_{world_, "b"};

  /// Waits until each of the two nodes has half of the shards open.
  void settle() {
    const auto is_settled = [](TestNode& node) {
      const std::string cluster = node.send("GET", "/v1/cluster").body;
      std::size_t halves = 0;
      for (std::size_t at = 0; (at = cluster.find(R"("shards":4)", at)) != std::string::npos;
           ++at) {
        ++halves;
      }
      return halves == 2 && node.send("GET", "/readyz").status == 200;
    };
    while (!is_settled(a_) || !is_settled(b_)) {
    }
  }
};

}  // namespace detent::server

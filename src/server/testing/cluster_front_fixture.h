// Fixture: the front of one node. Its shards are real. The other nodes are a fake caller that
// records their requests and answers when the test says so.
#pragma once

#include <gtest/gtest.h>

#include <atomic>
#include <future>
#include <memory>
#include <string>
#include <utility>

#include "protocol/json/answer_codec.h"
#include "server/cluster/cluster_front.h"
#include "server/cluster/shard_jobs.h"
#include "server/testing/one_shard_fixture.h"

namespace detent::server {

/// A client's request, and its answer.
class Client {
 public:
  void ask(ClusterFront& front, net::HttpRequest request) {
    auto exchange = std::make_shared<net::LocalExchange>(
        [answer = answer_](std::optional<net::HttpResponse> response) {
          answer->set_value(std::move(response).value_or(net::HttpResponse{.status = 500}));
          return true;
        });
    exchange_ = exchange;
    front.handle(std::move(request), net::Responder(std::move(exchange)));
  }
  void go_away() {
    if (const auto exchange = exchange_.lock()) exchange->abandon();
  }
  bool is_answered() const { return future_.wait_for(0s) == std::future_status::ready; }
  net::HttpResponse answer() { return future_.get(); }

 private:
  std::shared_ptr<std::promise<net::HttpResponse>> answer_ =
      std::make_shared<std::promise<net::HttpResponse>>();
  std::future<net::HttpResponse> future_ = answer_->get_future();
  std::weak_ptr<net::LocalExchange> exchange_;
};

inline net::HttpRequest lease_request(const std::string& body = R"({"wait":"30s"})") {
  return {.method = "POST",
          .target = "/v1/queues/q/lease",
          .headers = {{"host", "localhost"}},
          .body = body};
}

/// A cluster of one shard.
class ClusterFrontTest : public OneShardTest {
 protected:
  static constexpr std::size_t kMostCalls = 4;
  static constexpr std::size_t kMostCallsToAll = kMostCalls + 1;

  void serve() {
    open_shard();
    hold(kLease);
  }
  /// Tells the front that this node has the shard at that epoch.
  void hold(const ShardLease& lease) {
    front_.update({.members = {{"a", "10.0.0.1:7070"}},
                   .owners = {{0, "a", lease.epoch, false}},
                   .held_until = {{lease, clock_.now() + 1h}}});
  }
  /// Tells the front that another node has the shard.
  void give_to(const std::string& node, const std::string& address) {
    front_.update({.members = {{"a", "10.0.0.1:7070"}, {node, address}},
                   .owners = {{0, node, 7, false}},
                   .held_until = {}});
  }
  void await_worker() {
    const net::HttpRequest stats{
        .method = "GET", .target = "/v1/stats", .headers = {{"host", "localhost"}}, .body = ""};
    while (ask_shard(stats).body.find(R"("waiting_workers":1)") == std::string::npos) {
    }
  }
  /// Checks that a worker of the shard gets the task without waiting for a lease to expire.
  void expect_free() {
    const auto tasks =
        json::parse_leased_tasks(ask_shard(lease_request(R"({"wait":"20s"})")).body).value();
    EXPECT_EQ(tasks.size(), 1u);
  }
  static net::HttpRequest jobs_request() {
    return {.method = "POST", .target = std::string(kJobsTarget), .headers = {}, .body = ""};
  }
  static net::HttpResponse leased() {
    return {
        .status = 200,
        .body =
            R"({"tasks":[{"id":"256","queue":"q","payload":1,"attempt":1,)"
            R"("priority":5,"due_at":"2026-01-01T00:00:00.000Z","lateness_ms":0,"lease":"1-256",)"
            R"("lease_until":"2026-01-01T00:01:00.000Z","headers":{}}]})"};
  }

  std::atomic<int> strays_{0};
  ClusterFront front_{{.shards = 1,
                       .node = "a",
                       .max_calls_to_a_node = kMostCalls,
                       .max_calls_to_all_nodes = kMostCallsToAll},
                      shards_,
                      here_,
                      link_,
                      clock_,
                      [this] { ++strays_; }};
};

}  // namespace detent::server

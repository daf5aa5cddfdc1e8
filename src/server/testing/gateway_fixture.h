// Fixture for tests of the gateway: a cluster of three shards next to a single server. Engines,
// routes and sockets are real. The stores are in memory, and the test moves the one clock.
//
// Each server makes its own ids and leases, so their answers are compared by number: the nth task
// or lease that an answer names is "@n" or "#n" in the test.
#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "base/log/log.h"
#include "gateway/request_plan.h"
#include "net/http_client/http_client.h"
#include "server/routes/routes.h"
#include "server/watch/event_hub.h"
#include "store/testing/memory_store.h"

namespace detent::server {

using namespace std::chrono_literals;  // NOLINT(google-build-using-namespace): literals only

/// A server of one shard. All requests that it gets concern this shard.
class ShardServer {
 public:
  ShardServer(ManualClock& clock, ShardNumber shard, RoutesOptions options = {})
      : store_(MemoryStore::open(disk_).value()),
        engine_(
            OpenEngine{
                .store = nullptr,
                .engine =
                    Engine::open(*store_, clock, {.shard = shard, .changes = &changes_}).value()},
            clock),
        events_(engine_, changes_, clock),
        routes_(engine_, events_, clock, std::move(options)),
        http_(net::HttpServer::start(
                  {},
                  [this](net::HttpRequest request, net::Responder responder) {
                    routes_.handle(std::move(request), std::move(responder));
                  },
                  http_problem)
                  .value()),
        client_(net::HttpClient::create("http://127.0.0.1:" + std::to_string(http_->port()), 30s)
                    .value()) {}
  ~ShardServer() {
    http_->stop(0ms);
    events_.stop();
    engine_.stop();
  }
  ShardServer(const ShardServer&) = delete;
  ShardServer& operator=(const ShardServer&) = delete;

  net::HttpResponse send(const net::HttpRequest& request) {
    ++requests_;
    return client_->send(request).value();
  }
  int requests() const noexcept { return requests_; }

 private:
  MemoryDisk disk_;
  std::unique_ptr<Store> store_;
  ChangeFeed changes_;
  EngineThread engine_;
  EventHub events_;
  Routes routes_;
  std::unique_ptr<net::HttpServer> http_;
  std::unique_ptr<net::HttpClient> client_;
  int requests_ = 0;
};

/// Maps the numbers of the test to one side's ids of tasks and leases.
class Names {
 public:
  /// Replaces "@3" and "#0" in the text of a test by this side's ids.
  std::string to_side(std::string_view text) const {
    std::string out;
    while (!text.empty()) {
      const char kind = text.front();
      text.remove_prefix(1);
      if (kind != '@' && kind != '#') {
        out.push_back(kind);
        continue;
      }
      const std::string_view digits = take(text, "0123456789");
      const auto number = static_cast<std::size_t>(std::stoul(std::string(digits)));
      out += (kind == '@' ? tasks_ : leases_).order.at(number);
    }
    return out;
  }
  /// The reverse of to_side(). A new id gets the next number.
  std::string to_test(std::string_view text) {
    constexpr std::pair<std::string_view, char> kBefore[] = {{R"("id":")", '@'},
                                                             {"task ", '@'},
                                                             {"/v1/tasks/", '@'},
                                                             {R"("last_task":")", '@'},
                                                             {R"("lease":")", '#'}};
    std::string out;
    while (!text.empty()) {
      std::size_t length = 1;
      char kind = 0;
      for (const auto& [before, of] : kBefore) {
        if (!text.starts_with(before)) continue;
        length = before.size();
        kind = of;
      }
      out += text.substr(0, length);
      text.remove_prefix(length);
      if (kind == 0) continue;
      const std::string_view name = take(text, kind == '@' ? "0123456789" : "0123456789abcdef-");
      if (!name.empty()) out += kind + std::to_string(number(name, kind == '@' ? tasks_ : leases_));
    }
    return out;
  }
  std::size_t tasks() const noexcept { return tasks_.order.size(); }
  std::size_t leases() const noexcept { return leases_.order.size(); }

 private:
  struct Book {
    std::vector<std::string> order;
    std::map<std::string, std::size_t, std::less<>> numbers;
  };
  static std::string_view take(std::string_view& text, std::string_view letters) noexcept {
    const std::string_view taken = text.substr(0, text.find_first_not_of(letters));
    text.remove_prefix(taken.size());
    return taken;
  }
  static std::size_t number(std::string_view name, Book& book) {
    const auto [place, is_new] = book.numbers.try_emplace(std::string(name), book.order.size());
    if (is_new) book.order.emplace_back(name);
    return place->second;
  }

  Book tasks_;
  Book leases_;
};

class GatewayRoutesTest : public ::testing::Test {
 protected:
  static constexpr ShardNumber kShards = 3;

  /// All servers send unsealed cursors, as shards do, so that answers can be compared.
  explicit GatewayRoutesTest(const RoutesOptions& options = {})
      : one_(clock_, 0, as_shard(options)) {
    set_log_level(LogLevel::error);
    for (ShardNumber shard = 0; shard < kShards; ++shard) {
      shards_.push_back(std::make_unique<ShardServer>(clock_, shard, as_shard(options)));
    }
  }

  static RoutesOptions as_shard(RoutesOptions options) {
    options.is_shard = true;
    return options;
  }
  /// Carries out the plan of a request, as a node of the cluster does.
  net::HttpResponse ask_cluster(net::HttpRequest request) {
    gateway::Step step = gateway::plan_request(std::move(request), ShardMap{.shards = kShards}, 0);
    while (gateway::Plan* const plan = std::get_if<gateway::Plan>(&step)) {
      std::vector<net::HttpResponse> answers;
      for (const gateway::Part& part : plan->parts) {
        answers.push_back(shards_.at(part.shard)->send(part.request));
      }
      gateway::Step next = plan->join(std::move(answers));
      step = std::move(next);
    }
    return std::get<net::HttpResponse>(std::move(step));
  }
  /// Returns the answers of the single server and of the cluster, with the test's names.
  std::pair<net::HttpResponse, net::HttpResponse> ask_both(const net::HttpRequest& request) {
    return {in_words_of_test(one_names_, one_.send(in_words_of(one_names_, request))),
            in_words_of_test(cluster_names_, ask_cluster(in_words_of(cluster_names_, request)))};
  }
  /// Expects both answers to be equal and returns the answer.
  net::HttpResponse same(const std::string& method, const std::string& target,
                         std::string body = "", net::HttpHeaders headers = {}) {
    const auto [one, cluster] = ask_both({.method = method,
                                          .target = target,
                                          .headers = std::move(headers),
                                          .body = std::move(body)});
    EXPECT_EQ(one.status, cluster.status) << method << " " << target << "\n" << cluster.body;
    EXPECT_EQ(one.content_type, cluster.content_type) << method << " " << target;
    EXPECT_EQ(one.body, cluster.body) << method << " " << target;
    for (const char* header : {"location", "allow", "www-authenticate", "retry-after",
                               "access-control-allow-origin", "access-control-allow-methods"}) {
      EXPECT_EQ(one.header(header), cluster.header(header)) << method << " " << target;
    }
    return cluster;
  }
  /// Moves time after all pending work is done.
  void advance(std::chrono::milliseconds by) {
    await_rest();
    clock_.advance(by);
    await_rest();
  }
  void await_rest() const { clock_.await_waiters(2 * (1 + static_cast<int>(kShards))); }

  /// Names of queues: `of_each` names per shard, alternating between the shards.
  static std::vector<std::string> queues(std::size_t of_each) {
    std::vector<std::vector<std::string>> by_shard(kShards);
    for (int i = 0; i < 1'000; ++i) {
      const std::string name = "q" + std::to_string(i);
      std::vector<std::string>& names = by_shard.at(shard_of_queue(name, kShards));
      if (names.size() < of_each) names.push_back(name);
    }
    std::vector<std::string> all;
    for (std::size_t i = 0; i < of_each; ++i) {
      for (const auto& names : by_shard) all.push_back(names.at(i));
    }
    return all;
  }

  ManualClock clock_;
  ShardServer one_;
  std::vector<std::unique_ptr<ShardServer>> shards_;
  Names one_names_;
  Names cluster_names_;

 private:
  static net::HttpRequest in_words_of(const Names& side, net::HttpRequest request) {
    request.target = side.to_side(request.target);
    request.body = side.to_side(request.body);
    return request;
  }
  static net::HttpResponse in_words_of_test(Names& side, net::HttpResponse answer) {
    answer.body = side.to_test(answer.body);
    for (auto& header : answer.headers) header.second = side.to_test(header.second);
    return answer;
  }
};

}  // namespace detent::server

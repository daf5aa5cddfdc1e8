// Fixture: a node of a cluster of one shard, without its front. The shard is real once it is
// opened. The other nodes are a fake caller that records questions and answers when the test says
// so.
#pragma once

#include <gtest/gtest.h>

#include <chrono>
#include <cstddef>
#include <future>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/log/log.h"
#include "net/http_server/local_exchange.h"
#include "server/cluster/cluster_shards.h"
#include "server/cluster/peer_link.h"
#include "server/routes/routes.h"
#include "server/watch/change_collector.h"
#include "server/watch/event_hub.h"
#include "store/testing/memory_store.h"

namespace detent::server {

using namespace std::chrono_literals;  // NOLINT(google-build-using-namespace): literals only

class FakeCaller final : public net::HttpCaller {
 public:
  struct Call {
    std::string address;
    net::HttpRequest request;
    Done done;
    UniqueFunction<void()> slow;  // empty: the question has no slow callback
    net::HttpUrl::Scheme scheme{};
    bool is_abandoned = false;
  };

  using HttpCaller::call;
  CallNumber call(net::HttpUrl url, net::HttpRequest request, Done done, WhenSlow slow) override {
    calls.push_back({url.host + ":" + std::to_string(url.port), std::move(request)});
    calls.back().request.target = url.target;
    calls.back().scheme = url.scheme;
    calls.back().done = std::move(done);
    calls.back().slow = std::move(slow.tell);
    const CallNumber number = calls.size();
    if (auto then = std::exchange(on_call, {})) then();
    return number;
  }
  void abandon(CallNumber number) override {
    calls.at(number - 1).is_abandoned = true;
    calls.at(number - 1).done = {};
    calls.at(number - 1).slow = {};
  }
  void answer(std::size_t call, net::HttpResponse response) { finish(call, std::move(response)); }
  void fail(std::size_t call) { finish(call, net::CallFailure{.message = "connect: refused"}); }
  /// Reports the answer to this call as slow.
  void be_slow(std::size_t call) {
    UniqueFunction<void()> slow = std::move(calls.at(call).slow);
    if (slow) slow();
  }

  std::vector<Call> calls;
  UniqueFunction<void()> on_call;  // runs within the next call, once

 private:
  void finish(std::size_t call, net::CallOutcome outcome) {
    calls.at(call).slow = {};
    Done done = std::move(calls.at(call).done);
    done(std::move(outcome));
  }
};

class OneShardTest : public ::testing::Test {
 public:
  OneShardTest() { set_log_level(LogLevel::error); }

 protected:
  static constexpr ShardLease kLease{.shard = 0, .epoch = 1};

  Result<OpenEngine> open(MemoryDisk& disk) {
    OpenEngine opened;
    ASSIGN_OR_RETURN(opened.store, MemoryStore::open(disk));
    ASSIGN_OR_RETURN(opened.engine, Engine::open(*opened.store, clock_, {}));
    return opened;
  }
  /// Opens the shard and waits until it is open.
  void open_shard() {
    shards_.open(kLease);
    while (!shards_.find(0)) {
    }
  }
  /// Asks the shard itself.
  net::HttpResponse ask_shard(net::HttpRequest request) {
    std::promise<net::HttpResponse> answer;
    shards_.find(0)->handle(std::move(request),
                            net::Responder(std::make_shared<net::LocalExchange>(
                                [&answer](std::optional<net::HttpResponse> response) {
                                  answer.set_value(*std::move(response));
                                  return true;
                                })));
    return answer.get_future().get();
  }
  void put_task() {
    EXPECT_EQ(ask_shard({.method = "POST",
                         .target = "/v1/tasks",
                         .headers = {{"host", "localhost"}},
                         .body = R"({"queue":"q","payload":1})"})
                  .status,
              201);
  }
  static std::string header(const FakeCaller::Call& call, std::string_view name) {
    return std::string(call.request.header(name));
  }

  SystemClock clock_;
  MemoryDisk disk_;
  ChangeCollector changes_{1};
  EventHub events_{[](auto&&) { return false; }, changes_, clock_};  // without figures
  Routes here_{events_, clock_};
  ClusterShards shards_{
      {.open = [this](const ShardLease&, ChangeFeed&) { return open(disk_); }}, events_, clock_};
  FakeCaller caller_;
  PeerLink link_{{.secret = "s"}, caller_};
};

}  // namespace detent::server

// Fixture for tests of the routes: a real socket, the real routes and engine, a store in memory,
// and a clock that only the test moves.
#pragma once

#include <gtest/gtest.h>

#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "net/http_client/http_client.h"
#include "protocol/json/answer_codec.h"
#include "protocol/json/stats_codec.h"
#include "server/routes/routes.h"
#include "server/watch/event_hub.h"
#include "store/testing/fault_store.h"
#include "store/testing/memory_store.h"

namespace detent::server {

using namespace std::chrono_literals;  // NOLINT(google-build-using-namespace): literals only

class RoutesTest : public ::testing::Test {
 public:
  RoutesTest() { start(); }
  ~RoutesTest() override { stop(); }

 protected:
  void start() {
    store_ = std::make_unique<FaultStore>(MemoryStore::open(*disk_).value());
    engine_ = std::make_unique<EngineThread>(
        OpenEngine{
            .store = nullptr,
            .engine =
                Engine::open(*store_, clock_, {.changes = &changes_, .intake = &intake_}).value()},
        clock_);
    events_ = std::make_unique<EventHub>(*engine_, changes_, clock_);
    routes_ = std::make_unique<Routes>(*engine_, *events_, clock_);
    listen(10s);
  }
  void stop() {
    http_->stop(0ms);
    events_->stop();
    engine_->stop();
    store_.reset();
  }
  /// Replaces the server by a new, empty server.
  void begin_anew() {
    stop();
    disk_ = std::make_unique<MemoryDisk>();
    start();
  }
  void listen(std::chrono::milliseconds read_timeout) {
    http_ = net::HttpServer::start(
                {.read_timeout = read_timeout},
                [this](net::HttpRequest request, net::Responder responder) {
                  routes_->handle(std::move(request), std::move(responder));
                },
                http_problem,
                [this](const net::HttpRequest& head) { return routes_->refuse_unread(head); })
                .value();
    client_ = new_client();
  }
  /// Replaces the routes. The objects in `options` must live until the HTTP server is stopped.
  void listen_with(RoutesOptions options) {
    http_->stop(0ms);
    routes_ = std::make_unique<Routes>(*engine_, *events_, clock_, std::move(options));
    listen(10s);
  }
  std::unique_ptr<net::HttpClient> new_client() {
    return net::HttpClient::create("http://127.0.0.1:" + std::to_string(http_->port()), 30s)
        .value();
  }
  net::HttpResponse send(const std::string& method, const std::string& target,
                         std::string body = "") {
    return client_
        ->send({.method = method, .target = target, .headers = {}, .body = std::move(body)})
        .value();
  }
  net::HttpResponse post(const std::string& target, std::string body) {
    return send("POST", target, std::move(body));
  }
  /// Schedules a task and returns its id as text.
  std::string schedule(const std::string& body) {
    return to_string(json::parse_accepted(post("/v1/tasks", body).body).value().id);
  }
  std::vector<json::LeasedTaskAnswer> lease(const std::string& queue,
                                            const std::string& body = "") {
    return json::parse_leased_tasks(post("/v1/queues/" + queue + "/lease", body).body).value();
  }
  /// Moves time after the engine has done all its work.
  void advance(std::chrono::milliseconds by) {
    await_rest();
    clock_.advance(by);
    await_rest();
  }
  /// Waits until the engine and the event hub have done all their work.
  void await_rest() const { clock_.await_waiters(2); }
  /// Runs `act` on the engine's thread before its next command, once `has_begun` is true. This is
  /// between two steps of a verb that runs in steps.
  void between_steps(std::function<bool(const Engine&)> has_begun,
                     std::function<void(Engine&)> act) {
    (void)engine_->post([this, has_begun, act](Engine& engine) {
      if (!has_begun(engine)) return between_steps(has_begun, act);
      act(engine);
    });
  }
  json::ServerStats engine_stats() {
    return json::parse_stats(send("GET", "/v1/stats").body).value();
  }
  /// Expects a problem of this status that mentions all of `words`.
  void expect_problem(const net::HttpResponse& response, int status,
                      std::vector<std::string> words) {
    EXPECT_EQ(response.status, status) << response.body;
    EXPECT_EQ(response.content_type, "application/problem+json");
    for (const std::string& word : words) {
      EXPECT_NE(response.body.find(word), std::string::npos) << word << " in " << response.body;
    }
  }

  ManualClock clock_;
  std::unique_ptr<MemoryDisk> disk_ = std::make_unique<MemoryDisk>();
  std::unique_ptr<FaultStore> store_;
  ChangeFeed changes_;
  TaskIntake intake_;
  std::unique_ptr<EngineThread> engine_;
  std::unique_ptr<EventHub> events_;
  std::unique_ptr<Routes> routes_;
  std::unique_ptr<net::HttpServer> http_;
  std::unique_ptr<net::HttpClient> client_;
};

}  // namespace detent::server

// Event streams and waiting requests that are open while the tokens are read again.
#include <gtest/gtest.h>

#include <future>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <utility>

#include "net/http_server/local_exchange.h"
#include "server/testing/routes_access_fixture.h"
#include "server/watch/change_collector.h"
#include "tests/support/raw_socket.h"

namespace detent::server {
namespace {

class RoutesReloadTest : public RoutesAccessTest {
 protected:
  /// Starts a worker with this token. Returns when it waits for a task of a.q, as the wait number
  /// `waiting`.
  test::RawSocket wait_for_task(const std::string& token, int waiting) {
    const std::string body = R"({"wait":"60s"})";
    test::RawSocket worker(http_->port());
    worker.send(
        "POST /v1/queues/a.q/lease HTTP/1.1\r\nHost: 127.0.0.1\r\nAuthorization: Bearer dt_" +
        token + "\r\nContent-Length: " + std::to_string(body.size()) + "\r\n\r\n" + body);
    const std::string count = "\"waiting_workers\":" + std::to_string(waiting);
    while (as("admin", "GET", "/v1/stats").body.find(count) == std::string::npos) {
    }
    return worker;
  }
};

TEST_F(RoutesReloadTest, AnEventStreamEndsWhenItsTokenIsRemoved) {
  const auto watch = [this](const char* token) {
    test::RawSocket client(http_->port());
    client.send(
        "GET /v1/events?types=task HTTP/1.1\r\nHost: 127.0.0.1\r\nAuthorization: Bearer dt_" +
        std::string(token) + "\r\n\r\n");
    std::string begin;
    while (begin.find("id: ") == std::string::npos) {  // from then on, the stream gets events
      const std::string byte = client.read(1);
      if (byte.empty()) break;
      begin += byte;
    }
    EXPECT_TRUE(begin.starts_with("HTTP/1.1 200 OK")) << begin;
    return client;
  };
  test::RawSocket revoked = watch("read");
  test::RawSocket other = watch("admin");
  write_tokens("read");
  ASSERT_TRUE(access_->reload());
  events_->check_again();
  const std::string rest = revoked.read_to_last_chunk();
  EXPECT_TRUE(rest.ends_with("0\r\n\r\n")) << rest;
  while (events_->streams() != 1) std::this_thread::yield();
  schedule_in("a.q", "k");
  advance(ChangeCollector::kTakePeriod);
  std::string told;
  while (told.find("\"change\":\"scheduled\"") == std::string::npos) {
    const std::string byte = other.read(1);
    ASSERT_FALSE(byte.empty()) << told;
    told += byte;
  }
}

TEST_F(RoutesReloadTest, AWaitForATaskEndsWhenItsTokenMayLeaseNoMore) {
  test::RawSocket revoked = wait_for_task("consume-a", 1);
  test::RawSocket demoted = wait_for_task("admin-a", 2);
  test::RawSocket other = wait_for_task("admin", 3);
  write_tokens("consume-a", "admin-a");
  ASSERT_TRUE(access_->reload());
  routes_->check_again();
  const std::string unknown = revoked.read_response();
  EXPECT_TRUE(unknown.starts_with("HTTP/1.1 401 ")) << unknown;
  const std::string refused = demoted.read_response();
  EXPECT_TRUE(refused.starts_with("HTTP/1.1 403 ")) << refused;
  EXPECT_NE(refused.find("consume"), std::string::npos) << refused;
  // The first waiting worker has lost its permission. The task goes to the next worker that still
  // has the permission.
  as("admin", "POST", "/v1/tasks", R"({"queue":"a.q","payload":"for the last"})");
  EXPECT_NE(other.read_response().find("for the last"), std::string::npos);
}

TEST_F(RoutesReloadTest, AWaitThatEndsInVainIsNotRefused) {
  test::RawSocket worker = wait_for_task("consume-a", 1);
  routes_->check_again();
  advance(60s);
  const std::string answer = worker.read_response();
  EXPECT_TRUE(answer.starts_with("HTTP/1.1 200 ")) << answer;
  EXPECT_TRUE(answer.ends_with(R"({"tasks":[]})")) << answer;
}

TEST_F(RoutesReloadTest, AWaitThatTheEngineComesToAfterTheReloadDoesNotBegin) {
  std::promise<void> go_on;
  std::promise<std::optional<net::HttpResponse>> answer;
  ASSERT_TRUE(engine_->post([stands = go_on.get_future()](Engine&) { stands.wait(); }));
  routes_->handle({.method = "POST",
                   .target = "/v1/queues/a.q/lease",
                   .headers = {{"authorization", "Bearer dt_consume-a"}},
                   .body = R"({"wait":"60s"})"},
                  net::Responder(std::make_shared<net::LocalExchange>(
                      [&answer](std::optional<net::HttpResponse> response) {
                        answer.set_value(std::move(response));
                        return true;
                      })));
  write_tokens("consume-a");
  ASSERT_TRUE(access_->reload());
  go_on.set_value();
  advance(60s);  // a request that still waited would end without a task
  expect_problem(answer.get_future().get().value(), 401, {"a token is needed"});
}

}  // namespace
}  // namespace detent::server

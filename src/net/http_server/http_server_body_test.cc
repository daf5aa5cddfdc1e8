// Request bodies: a client that may not send one is told before it does, and the bodies of all
// connections together are limited.
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "net/http_server/http_server.h"
#include "net/testing/http_server_fixture.h"
#include "tests/support/raw_socket.h"

namespace detent::net {
namespace {

using test::RawSocket;

constexpr std::size_t kKilobyte = 1024;

std::string head_of_post(const std::string& target, std::size_t size, const char* more = "") {
  return "POST " + target + " HTTP/1.1\r\nHost: a\r\n" + more +
         "Content-Length: " + std::to_string(size) + "\r\n\r\n";
}

constexpr const char* kExpect = "Expect: 100-continue\r\n";

/// A server that refuses requests for "/no", and counts the calls of its head check.
struct CheckingServer {
  explicit CheckingServer(HttpHandler handler)
      : server(HttpServer::start(
                   {}, std::move(handler),
                   [](int status, std::string_view detail) {
                     return text(std::string(detail), status);
                   },
                   [this](const HttpRequest& head) { return check(head); })
                   .value()) {}

  std::optional<HttpResponse> check(const HttpRequest& head) {
    ++checks;
    is_body_empty = is_body_empty && head.body.empty();
    if (head.target != "/no" || head.peer != "127.0.0.1") return std::nullopt;
    return text("no " + head.method + " with " + std::string(head.header("x-a")), 401);
  }

  std::atomic<int> checks = 0;  // written by the I/O thread, read by the test
  std::atomic<bool> is_body_empty = true;
  std::unique_ptr<HttpServer> server;
};

TEST(HttpServerBody, IsNotAskedForWhenTheHeadIsRefused) {
  Mailbox<HeldRequest> held;
  const CheckingServer checking(HoldingHandler{held});
  RawSocket client(checking.server->port());
  client.send(head_of_post("/no", 3, "Expect: 100-continue\r\nX-A: b\r\n"));
  const std::string response = client.read_to_end();
  EXPECT_EQ(status_of(response), 401);
  EXPECT_EQ(body_of(response), "no POST with b");
  EXPECT_TRUE(held.empty());
  EXPECT_TRUE(checking.is_body_empty);
}

TEST(HttpServerBody, MayBeUnderWayWhenTheHeadIsRefused) {
  Mailbox<HeldRequest> held;
  const CheckingServer checking(HoldingHandler{held});
  RawSocket client(checking.server->port());
  client.send(head_of_post("/no", 4'000'000));
  EXPECT_TRUE(client.send(std::string(4'000'000, 'x')));
  client.shut_down_sending();
  EXPECT_EQ(status_of(client.read_to_end()), 401);
  EXPECT_FALSE(client.was_reset());
  EXPECT_TRUE(held.empty());
}

TEST(HttpServerBody, IsAskedForAfterTheHeadIsAccepted) {
  const CheckingServer checking(echo);
  RawSocket client(checking.server->port());
  for (int request = 1; request <= 2; ++request) {
    const std::string body(1'000 * kKilobyte, 'x');  // it arrives in many reads
    client.send(head_of_post("/yes", body.size(), kExpect));
    EXPECT_EQ(client.read(25), "HTTP/1.1 100 Continue\r\n\r\n");
    client.send(body);
    EXPECT_EQ(body_of(client.read_response()), "POST /yes " + body);
    EXPECT_EQ(checking.checks, request);
  }
}

TEST(HttpServerBody, OfARequestInOnePieceIsNotChecked) {
  const CheckingServer checking(echo);
  RawSocket client(checking.server->port());
  client.send(head_of_post("/no", 3) + "abc" + get("/no"));
  EXPECT_EQ(body_of(client.read_response()), "POST /no abc");
  EXPECT_EQ(body_of(client.read_response()), "GET /no ");
  EXPECT_EQ(checking.checks, 0);
}

TEST(HttpServerBody, OfAllConnectionsTogetherAreLimited) {
  constexpr std::size_t kClients = 40;
  constexpr std::size_t kFit = 10;
  const auto server = start_server(echo, {.max_body_bytes_of_all = kFit * 100 * kKilobyte});
  std::vector<RawSocket> clients;
  for (std::size_t i = 0; i < kClients; ++i) {
    clients.emplace_back(server->port());
    clients.back().send(head_of_post("/", 900 * kKilobyte));
    clients.back().send(std::string(100 * kKilobyte, 'x'));
  }
  // The server answers the requests above the limit immediately. The others wait for their bodies.
  const auto refused = [](const RawSocket& client) { return client.has_input(); };
  while (std::ranges::count_if(clients, refused) < static_cast<std::ptrdiff_t>(kClients - kFit)) {
    std::this_thread::yield();
  }
  for (RawSocket& client : clients) {
    if (!refused(client)) continue;
    EXPECT_EQ(body_of(client.read_response()),
              "error 503: too many large requests at the same time: try again");
  }

  RawSocket small(server->port());
  small.send(head_of_post("/", 3) + "abc");
  EXPECT_EQ(body_of(small.read_response()), "POST / abc");

  clients.clear();
  while (server->connections() > 1) std::this_thread::yield();
  small.send(head_of_post("/", 900 * kKilobyte));
  small.send(std::string(900 * kKilobyte, 'y'));
  EXPECT_EQ(status_of(small.read_response()), 200);
}

TEST(HttpServerBody, CountsUntilItsRequestIsAnswered) {
  Mailbox<HeldRequest> held;
  const auto server =
      start_server(HoldingHandler{held}, {.max_body_bytes_of_all = 1000 * kKilobyte});
  const std::string large = head_of_post("/", 700 * kKilobyte) + std::string(700 * kKilobyte, 'x');
  RawSocket first(server->port());
  first.send(large);
  const HeldRequest request = held.pop();
  RawSocket second(server->port());
  second.send(large);
  EXPECT_EQ(status_of(second.read_response()), 503);
  request.responder.send(text("done"));
  EXPECT_EQ(body_of(first.read_response()), "done");
  first.send(large);
  held.pop().responder.send(text("again"));
  EXPECT_EQ(body_of(first.read_response()), "again");
}

}  // namespace
}  // namespace detent::net

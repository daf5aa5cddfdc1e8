// The stop of an HTTP server: open requests are answered within the grace, the others are cut, and
// Responders may outlive the server.
#include <gtest/gtest.h>

#include <optional>
#include <thread>

#include "net/testing/http_server_fixture.h"
#include "tests/support/raw_socket.h"

namespace detent::net {
namespace {

using namespace std::chrono_literals;
using test::RawSocket;

TEST(HttpServerStop, AnswersAHeldRequestWithinTheGraceAndCloses) {
  Mailbox<HeldRequest> held;
  const auto server = start_server(HoldingHandler{held});
  RawSocket idle(server->port());
  RawSocket client(server->port());
  client.send(get("/"));
  const HeldRequest request = held.pop();
  std::thread stopping([&server] { server->stop(kLong); });
  EXPECT_EQ(idle.read_to_end(), "");  // this means that the server has begun to stop
  EXPECT_FALSE(idle.gave_up());
  EXPECT_FALSE(RawSocket(server->port()).is_open());
  request.responder.send(text("in time"));
  const std::string response = client.read_to_end();
  EXPECT_EQ(body_of(response), "in time");
  EXPECT_NE(response.find("Connection: close\r\n"), std::string::npos);
  stopping.join();
  EXPECT_EQ(server->connections(), 0u);
}

TEST(HttpServerStop, WaitsForTheRestOfARequestThatHasBegun) {
  const auto server = start_server(echo, {.read_timeout = kLong});
  RawSocket idle(server->port());
  RawSocket client(server->port());
  client.send("POST / HTTP/1.1\r\nHost: a\r\nExpect: 100-continue\r\nContent-Length: 3\r\n\r\n");
  EXPECT_EQ(client.read(25), "HTTP/1.1 100 Continue\r\n\r\n");
  std::thread stopping([&server] { server->stop(kLong); });
  EXPECT_EQ(idle.read_to_end(), "");
  client.send("abc");
  EXPECT_EQ(body_of(client.read_to_end()), "POST / abc");
  stopping.join();
}

TEST(HttpServerStop, CutsUnansweredRequestsAfterTheGrace) {
  Mailbox<HeldRequest> held;
  const auto server = start_server(HoldingHandler{held});
  RawSocket client(server->port());
  client.send(get("/"));
  const HeldRequest request = held.pop();
  bool gone = false;
  request.responder.on_gone([&gone] { gone = true; });
  server->stop(20ms);
  EXPECT_TRUE(gone);
  EXPECT_EQ(client.read_to_end(), "");
  EXPECT_FALSE(client.gave_up());
  request.responder.send(text("too late"));
}

TEST(HttpServerStop, AResponderMayOutliveTheServer) {
  Mailbox<HeldRequest> held;
  auto server = start_server(HoldingHandler{held});
  RawSocket answered(server->port());
  RawSocket dropped(server->port());
  answered.send(get("/"));
  std::optional<HeldRequest> first = held.pop();
  dropped.send(get("/"));
  std::optional<HeldRequest> second = held.pop();
  server.reset();
  first->responder.send(text("nobody"));
  second.reset();
  bool gone = false;
  first->responder.on_gone([&gone] { gone = true; });
  EXPECT_TRUE(gone);
}

TEST(HttpServerStop, AnswersMayRaceWithTheEnd) {
  for (int round = 0; round < 50; ++round) {
    Mailbox<HeldRequest> held;
    auto server = start_server(HoldingHandler{held});
    RawSocket client(server->port());
    client.send(get("/"));
    std::thread answering([request = held.pop()] { request.responder.send(text("maybe")); });
    server.reset();
    answering.join();
  }
}

TEST(HttpServerStop, MayBeCalledByManyThreads) {
  const auto server = start_server(echo);
  RawSocket client(server->port());
  std::thread other([&server] { server->stop(kLong); });
  server->stop(kLong);
  other.join();
  server->stop(0ms);
  EXPECT_EQ(client.read_to_end(), "");
  EXPECT_EQ(server->connections(), 0u);
}

TEST(HttpServerStopDeathTest, CannotBeStoppedByItsOwnThread) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_DEATH(
      {
        std::unique_ptr<HttpServer> server;
        server = start_server([&server](HttpRequest, Responder) { server->stop(0ms); });
        RawSocket client(server->port());
        client.send(get("/"));
        client.read_to_end();
      },
      "check failed");
}

}  // namespace
}  // namespace detent::net

// Requests that the server cannot accept: it answers once, closes, and never reads a body as a
// request. Also the time limits for slow clients.
#include <gtest/gtest.h>

#include <string>

#include "net/testing/http_server_fixture.h"
#include "tests/support/raw_socket.h"

namespace detent::net {
namespace {

using namespace std::chrono_literals;
using test::RawSocket;

constexpr auto kIdle = 150ms;  // longer than the time from connecting to sending on a busy machine

// http_parser_test.cc has the full table of the grammar. This test sends one request of each kind.
TEST(HttpServerFraming, AnswersOnceAndCloses) {
  const auto server = start_server(
      [](HttpRequest request, Responder) { ADD_FAILURE() << "handled " << request.target; });
  const struct {
    const char* name;
    std::string bytes;
    int status;
  } cases[] = {
      {"length and coding",
       "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 30\r\nTransfer-Encoding: chunked\r\n\r\n"
       "0\r\n\r\n" +
           get("/smuggled"),
       400},
      {"two lengths",
       "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 0\r\nContent-Length: 5\r\n\r\n" +
           get("/smuggled"),
       400},
      {"other coding",
       "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: identity\r\n\r\n" + get("/smuggled"), 400},
      {"folded line", "GET / HTTP/1.1\r\nHost: a\r\nX: a\r\n b\r\n\r\n" + get("/next"), 400},
      {"line feed alone", "GET / HTTP/1.1\nHost: a\n\n" + get("/next"), 400},
      {"bad method", "G(T / HTTP/1.1\r\nHost: a\r\n\r\n" + get("/next"), 400},
      {"bad target", "GET nowhere HTTP/1.1\r\nHost: a\r\n\r\n" + get("/next"), 400},
      {"bad version", "GET / HTTP/3.0\r\nHost: a\r\n\r\n" + get("/next"), 400},
      {"no Host", "GET / HTTP/1.1\r\n\r\n" + get("/next"), 400},
      {"bad chunk",
       "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\nx\r\n" + get("/smuggled"),
       400},
      {"long header", "GET / HTTP/1.1\r\nHost: a\r\nX: " + std::string(17 * 1024, 'x') + "\r\n\r\n",
       431},
      {"header without end", "GET /" + std::string(70 * 1024, 'x'), 431},
      {"long body",
       "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 16777217\r\n\r\n" + get("/smuggled"), 413},
      {"long chunk",
       "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n"
       "1000001\r\n" +
           get("/smuggled"),
       413},
  };
  for (const auto& refused : cases) {
    SCOPED_TRACE(refused.name);
    RawSocket client(server->port());
    client.send(refused.bytes);
    const std::string response = client.read_to_end();
    EXPECT_EQ(status_of(response), refused.status) << response;
    EXPECT_NE(response.find("Connection: close\r\n"), std::string::npos);
    EXPECT_EQ(response.find("HTTP/1.1", 1), std::string::npos) << "a second answer: " << response;
    EXPECT_FALSE(client.was_reset());
    EXPECT_FALSE(client.gave_up());
  }
}

TEST(HttpServerFraming, AnswersRequestsThatCameBeforeTheBadOne) {
  const auto server = start_server(echo);
  RawSocket client(server->port());
  client.send(get("/good") + "bad\r\n\r\n");
  EXPECT_EQ(body_of(client.read_response()), "GET /good ");
  EXPECT_EQ(status_of(client.read_to_end()), 400);
}

TEST(HttpServerTimeouts, HalfAHeaderIsAnswered408) {
  const auto server = start_server(echo, {.read_timeout = 30ms, .idle_timeout = kLong});
  RawSocket client(server->port());
  client.send("GET / HT");
  const std::string response = client.read_to_end();
  EXPECT_EQ(body_of(response), "error 408: the request did not arrive in time");
  EXPECT_FALSE(client.gave_up());
}

TEST(HttpServerTimeouts, HalfABodyIsAnswered408) {
  const auto server = start_server(echo, {.read_timeout = 30ms, .idle_timeout = kLong});
  RawSocket client(server->port());
  client.send(get("/first") + "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 9\r\n\r\nhalf");
  EXPECT_EQ(status_of(client.read_response()), 200);
  EXPECT_EQ(status_of(client.read_to_end()), 408);
  EXPECT_FALSE(client.gave_up());
}

// A client that sends a few bytes from time to time must not extend the deadline of its request.
TEST(HttpServerTimeouts, ADrippingBodyIsAnswered408) {
  const auto server = start_server(echo, {.read_timeout = 50ms, .idle_timeout = kLong});
  RawSocket client(server->port());
  client.send("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 16000000\r\n\r\n");
  RawSocket pacing(server->port());
  while (!client.has_input()) {
    ASSERT_TRUE(client.send("x"));
    pacing.send(get("/"));  // after the answer to this, the server has also seen the byte
    ASSERT_EQ(status_of(pacing.read_response()), 200);
  }
  EXPECT_EQ(status_of(client.read_to_end()), 408);
}

TEST(HttpServerTimeouts, AMissingBodyAfterContinueIsAnswered408) {
  const auto server = start_server(echo, {.read_timeout = 30ms, .idle_timeout = kLong});
  RawSocket client(server->port());
  client.send("POST / HTTP/1.1\r\nHost: a\r\nExpect: 100-continue\r\nContent-Length: 3\r\n\r\n");
  EXPECT_EQ(client.read(25), "HTTP/1.1 100 Continue\r\n\r\n");
  EXPECT_EQ(status_of(client.read_to_end()), 408);
}

TEST(HttpServerTimeouts, AnIdleConnectionIsClosedWithoutAnAnswer) {
  const auto server = start_server(echo, {.read_timeout = kLong, .idle_timeout = kIdle});
  RawSocket silent(server->port());
  RawSocket used(server->port());
  used.send(get("/"));
  EXPECT_EQ(status_of(used.read_response()), 200);
  EXPECT_EQ(silent.read_to_end(), "");
  EXPECT_FALSE(silent.gave_up());
  EXPECT_EQ(used.read_to_end(), "");
  EXPECT_FALSE(used.gave_up());
}

TEST(HttpServerTimeouts, AHeldRequestHasNoDeadline) {
  Mailbox<HeldRequest> held;
  const auto server = start_server(
      HoldingHandler{held}, {.read_timeout = 20ms, .write_timeout = 20ms, .idle_timeout = kIdle});
  RawSocket client(server->port());
  client.send(get("/"));
  const HeldRequest request = held.pop();
  // This wait is longer than the idle limit of a connection that was opened after the request.
  RawSocket later(server->port());
  EXPECT_EQ(later.read_to_end(), "");
  EXPECT_FALSE(later.gave_up());
  request.responder.send(text("late"));
  EXPECT_EQ(body_of(client.read_response()), "late");
}

TEST(HttpServerTimeouts, AClientThatDoesNotReadIsCut) {
  const auto server = start_server(
      [](HttpRequest, Responder responder) {
        responder.send(text(std::string(64 * 1024 * 1024, 'y')));
      },
      {.read_timeout = kLong, .write_timeout = 30ms, .idle_timeout = kLong});
  RawSocket client(server->port(), 4096);
  client.send(get("/"));
  EXPECT_TRUE(client.await_reset());
}

}  // namespace
}  // namespace detent::net

// Streamed answers: framing, clients that disconnect or are slow, and the stop of the server.
#include <gtest/gtest.h>

#include <atomic>
#include <thread>
#include <vector>

#include "net/testing/http_server_fixture.h"
#include "tests/support/raw_socket.h"

namespace detent::net {
namespace {

using namespace std::chrono_literals;
using test::RawSocket;

constexpr std::size_t kMuch = 16'000'000;  // more than the system stores for an unread socket

std::string much() {
  std::string bytes;
  bytes.resize(kMuch, 'x');
  return bytes;
}

/// Reads until `end`, and returns everything including `end`.
std::string read_until(RawSocket& client, std::string_view end) {
  std::string read;
  while (!read.ends_with(end)) {
    const std::string byte = client.read(1);
    if (byte.empty()) break;
    read += byte;
  }
  return read;
}

/// Reads the next chunk and returns its bytes; "" for the last chunk.
std::string read_chunk(RawSocket& client) {
  const std::size_t size = std::strtoul(read_until(client, "\r\n").c_str(), nullptr, 16);
  std::string chunk = client.read(size);
  EXPECT_EQ(client.read(2), "\r\n");
  return chunk;
}

/// Reads chunks until it has `size` bytes, because the server decides how it collects the bytes.
std::string read_chunks(RawSocket& client, std::size_t size) {
  std::string all;
  while (all.size() < size) {
    const std::string chunk = read_chunk(client);
    if (chunk.empty()) break;
    all += chunk;
  }
  return all;
}

TEST(HttpServerStream, SendsEachPartImmediatelyAndThenTheNextAnswer) {
  Mailbox<HeldRequest> held;
  const auto server = start_server(HoldingHandler{held});
  RawSocket client(server->port());
  client.send(get("/stream"));
  const ResponseStream stream = held.pop().responder.stream(text("zero"));
  const std::string head = read_until(client, "\r\n\r\n");
  EXPECT_EQ(status_of(head), 200);
  EXPECT_NE(head.find("\r\nTransfer-Encoding: chunked\r\n"), std::string::npos);
  EXPECT_EQ(head.find("Content-Length"), std::string::npos);
  EXPECT_EQ(head.find("Connection"), std::string::npos);
  EXPECT_EQ(read_chunks(client, 4), "zero");
  EXPECT_TRUE(stream.send("one"));
  EXPECT_EQ(read_chunks(client, 3), "one");
  EXPECT_TRUE(stream.send(""));  // sends no chunk, because an empty chunk would end the body
  EXPECT_TRUE(stream.send(std::string(300, '2')));
  EXPECT_EQ(read_chunks(client, 300), std::string(300, '2'));
  stream.end();
  EXPECT_FALSE(stream.send("late"));
  EXPECT_EQ(read_chunk(client), "");
  client.send(get("/next"));
  held.pop().responder.send(text("next"));
  EXPECT_EQ(body_of(client.read_response()), "next");
}

TEST(HttpServerStream, EndsWithTheConnectionForHttp10) {
  Mailbox<HeldRequest> held;
  const auto server = start_server(HoldingHandler{held});
  RawSocket client(server->port());
  client.send("GET / HTTP/1.0\r\nConnection: keep-alive\r\n\r\n");
  const ResponseStream stream = held.pop().responder.stream(text(""));
  stream.send("one,");
  stream.send("two");
  stream.end();
  const std::string response = client.read_to_end();
  EXPECT_FALSE(client.gave_up());
  EXPECT_EQ(body_of(response), "one,two");
  EXPECT_EQ(response.find("Transfer-Encoding"), std::string::npos);
  EXPECT_NE(response.find("Connection: close\r\n"), std::string::npos);
}

TEST(HttpServerStream, IsOverImmediatelyForAHeadRequest) {
  Mailbox<HeldRequest> held;
  const auto server = start_server(HoldingHandler{held});
  RawSocket client(server->port());
  client.send("HEAD / HTTP/1.1\r\nHost: a\r\n\r\n" + get("/next"));
  const ResponseStream stream = held.pop().responder.stream(text("not sent"));
  Mailbox<int> gone;
  stream.on_gone([&gone] { gone.push(1); });
  EXPECT_EQ(gone.pop(), 1);
  EXPECT_FALSE(stream.send("nor this"));
  held.pop().responder.send(text("next"));
  const std::string head = read_until(client, "\r\n\r\n");
  EXPECT_NE(head.find("Transfer-Encoding: chunked\r\n"), std::string::npos);
  EXPECT_EQ(body_of(client.read_response()), "next");
}

TEST(HttpServerStream, AnswersPipelinedRequestsAfterItsEnd) {
  Mailbox<HeldRequest> held;
  const auto server = start_server(HoldingHandler{held});
  RawSocket client(server->port());
  client.send(get("/stream") + get("/next"));
  const ResponseStream stream = held.pop().responder.stream(text(""));
  stream.send("body");
  read_until(client, "\r\n\r\n");
  EXPECT_EQ(read_chunks(client, 4), "body");
  EXPECT_TRUE(held.empty());
  stream.end();
  held.pop().responder.send(text("next"));
  EXPECT_EQ(read_chunk(client), "");
  EXPECT_EQ(body_of(client.read_response()), "next");
}

TEST(HttpServerStream, TellsTheSenderThatTheClientHasGone) {
  Mailbox<HeldRequest> held;
  const auto server = start_server(HoldingHandler{held});
  for (const bool reset : {false, true}) {
    RawSocket client(server->port());
    client.send(get("/"));
    const ResponseStream stream = held.pop().responder.stream(text("begun"));
    Mailbox<int> gone;
    stream.on_gone([&gone] { gone.push(1); });
    read_until(client, "begun\r\n");
    if (reset) {
      client.reset();
    } else {
      client.close();
    }
    EXPECT_EQ(gone.pop(), 1);
    EXPECT_FALSE(stream.send("the client has gone"));
    stream.end();
  }
}

// For a client that reads nothing, only the system's buffer and max_stream_bytes are stored.
TEST(HttpServerStream, CutsAClientAboveTheLimitOfWaitingBytes) {
  Mailbox<HeldRequest> held;
  const auto server =
      start_server(HoldingHandler{held}, {.max_stream_bytes = 64'000, .write_timeout = kLong});
  RawSocket slow(server->port(), 4096);
  slow.send(get("/slow"));
  const ResponseStream stream = held.pop().responder.stream(text(""));
  Mailbox<int> gone;
  stream.on_gone([&gone] { gone.push(1); });
  const std::string part(1'000, 'x');
  std::size_t taken = 0;
  while (stream.send(part)) ++taken;
  EXPECT_GE(taken, 64u);
  EXPECT_LT(taken, 32'000u) << "more than a system stores for a socket";
  EXPECT_EQ(gone.pop(), 1);
  EXPECT_TRUE(slow.await_reset());
  RawSocket other(server->port());
  other.send(get("/other"));
  held.pop().responder.send(text("still here"));
  EXPECT_EQ(body_of(other.read_response()), "still here");
}

TEST(HttpServerStream, CutsAClientInTheMiddleOfAPart) {
  Mailbox<HeldRequest> held;
  const auto server =
      start_server(HoldingHandler{held}, {.max_stream_bytes = kMuch, .write_timeout = kLong});
  RawSocket slow(server->port(), 4096);
  slow.send(get("/"));
  const ResponseStream stream = held.pop().responder.stream(text(""));
  Mailbox<int> gone;
  stream.on_gone([&gone] { gone.push(1); });
  EXPECT_TRUE(stream.send(much()));
  read_until(slow, "x");  // the part is being written, and is larger than the buffers
  EXPECT_FALSE(stream.send("y"));
  EXPECT_EQ(gone.pop(), 1);
}

TEST(HttpServerStream, NoticesAfterAPartThatTheClientHasGone) {
  Mailbox<HeldRequest> held;
  const auto server =
      start_server(HoldingHandler{held}, {.max_stream_bytes = kMuch, .write_timeout = kLong});
  RawSocket client(server->port(), 4096);
  client.send(get("/"));
  const ResponseStream stream = held.pop().responder.stream(text(""));
  Mailbox<int> gone;
  stream.on_gone([&gone] { gone.push(1); });
  EXPECT_TRUE(stream.send(much()));
  read_until(client, "x");
  client.shut_down_sending();
  // After an answer on another connection, the I/O thread has handled all earlier events.
  RawSocket other(server->port());
  other.send(get("/other"));
  held.pop().responder.send(text(""));
  other.read_response();
  client.read_to_end();
  EXPECT_EQ(gone.pop(), 1);
}

TEST(HttpServerStream, CutsAClientThatReadsNoBytesInTime) {
  Mailbox<HeldRequest> held;
  const auto server =
      start_server(HoldingHandler{held}, {.max_stream_bytes = kMuch, .write_timeout = 20ms});
  RawSocket slow(server->port(), 4096);
  slow.send(get("/"));
  const ResponseStream stream = held.pop().responder.stream(text(""));
  Mailbox<int> gone;
  stream.on_gone([&gone] { gone.push(1); });
  EXPECT_TRUE(stream.send(much()));
  EXPECT_EQ(gone.pop(), 1);
  EXPECT_TRUE(slow.await_reset());
  EXPECT_FALSE(stream.send("x"));
}

TEST(HttpServerStream, ShowsTheClientThatABodyIsIncomplete) {
  Mailbox<HeldRequest> held;
  const auto server = start_server(HoldingHandler{held});
  RawSocket client(server->port());
  client.send(get("/"));
  {
    const ResponseStream stream = held.pop().responder.stream(text("half"));
    read_until(client, "half\r\n");
  }
  EXPECT_EQ(client.read_to_end(), "");
  EXPECT_FALSE(client.gave_up());
}

TEST(HttpServerStream, TakesPartsFromManyThreads) {
  Mailbox<HeldRequest> held;
  const auto server = start_server(HoldingHandler{held});
  RawSocket client(server->port());
  client.send(get("/"));
  const ResponseStream stream = held.pop().responder.stream(text(""));
  std::vector<std::thread> senders;
  for (int i = 0; i < 4; ++i) {
    senders.emplace_back([stream, i] {
      for (int n = 0; n < 500; ++n) EXPECT_TRUE(stream.send(std::string(9, char('a' + i)) + "\n"));
    });
  }
  read_until(client, "\r\n\r\n");
  const std::string all = read_chunks(client, 4 * 500 * 10);
  for (std::thread& sender : senders) sender.join();
  ASSERT_EQ(all.size(), 4u * 500 * 10);
  for (std::size_t at = 0; at < all.size(); at += 10) {
    EXPECT_EQ(all.substr(at, 10), std::string(9, all[at]) + "\n");
  }
}

TEST(HttpServerStream, SurvivesPartsDuringADisconnect) {
  Mailbox<HeldRequest> held;
  const auto server = start_server(HoldingHandler{held});
  std::atomic<int> gone = 0;  // written by the I/O thread, read by the test after stop()
  for (int round = 0; round < 200; ++round) {
    RawSocket client(server->port());
    client.send(get("/"));
    const ResponseStream stream = held.pop().responder.stream(text("begun"));
    stream.on_gone([&gone] { ++gone; });
    std::thread going([&client] { client.close(); });
    stream.send("maybe");
    if (round % 2 == 0) stream.end();
    going.join();
  }
  server->stop(0ms);
  EXPECT_LE(gone, 200);
}

TEST(HttpServerStream, IsWaitedForByAStop) {
  Mailbox<HeldRequest> held;
  const auto server = start_server(HoldingHandler{held});
  RawSocket idle(server->port());
  RawSocket client(server->port());
  client.send(get("/"));
  const ResponseStream stream = held.pop().responder.stream(text(""));
  stream.on_gone([] { FAIL() << "the stream has ended before"; });
  read_until(client, "\r\n\r\n");
  std::thread stopping([&server] { server->stop(kLong); });
  EXPECT_EQ(idle.read_to_end(), "");  // this means that the server has begun to stop
  EXPECT_TRUE(stream.send("in time"));
  stream.end();
  EXPECT_EQ(client.read_to_end(), "7\r\nin time\r\n0\r\n\r\n");
  EXPECT_FALSE(client.gave_up());
  stopping.join();
  EXPECT_EQ(server->connections(), 0u);
}

TEST(HttpServerStream, IsCutAtTheEndOfAStopsGrace) {
  Mailbox<HeldRequest> held;
  const auto server = start_server(HoldingHandler{held});
  RawSocket client(server->port());
  client.send(get("/"));
  const ResponseStream stream = held.pop().responder.stream(text(""));
  bool gone = false;
  stream.on_gone([&gone] { gone = true; });
  read_until(client, "\r\n\r\n");
  server->stop(20ms);
  EXPECT_TRUE(gone);
  EXPECT_FALSE(stream.send("too late"));
  EXPECT_EQ(client.read_to_end(), "");
}

}  // namespace
}  // namespace detent::net

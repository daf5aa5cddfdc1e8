// Requests and answers over real sockets: kept connections, pipelining, held requests, disconnects
// and limits.
#include "net/http_server/http_server.h"

#include <gtest/gtest.h>
#include <sys/resource.h>

#include <atomic>
#include <thread>
#include <vector>

#include "net/http_server/exchange.h"
#include "net/testing/http_server_fixture.h"
#include "tests/support/raw_socket.h"

namespace detent::net {
namespace {

using namespace std::chrono_literals;
using test::RawSocket;

TEST(HttpServer, AnswersOneRequestAfterTheOtherOnAConnection) {
  const auto server = start_server(echo);
  RawSocket client(server->port());
  client.send(get("/1"));
  EXPECT_EQ(body_of(client.read_response()), "GET /1 ");
  client.send("POST /2 HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\n\r\nabc");
  EXPECT_EQ(body_of(client.read_response()), "POST /2 abc");
  client.send(
      "PUT /3 HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n"
      "2\r\nab\r\n1\r\nc\r\n0\r\n\r\n");
  EXPECT_EQ(body_of(client.read_response()), "PUT /3 abc");
  EXPECT_EQ(server->connections(), 1u);
}

TEST(HttpServer, ClosesIfTheClientAsksForIt) {
  const auto server = start_server(echo);
  RawSocket client(server->port());
  client.send("GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n");
  const std::string response = client.read_to_end();
  EXPECT_EQ(status_of(response), 200);
  EXPECT_NE(response.find("Connection: close\r\n"), std::string::npos);
  EXPECT_FALSE(client.gave_up());
}

TEST(HttpServer, ClosesAfterHttp10UnlessAskedToKeep) {
  const auto server = start_server(echo);
  RawSocket closed(server->port());
  closed.send("GET / HTTP/1.0\r\n\r\n");
  EXPECT_EQ(status_of(closed.read_to_end()), 200);
  EXPECT_FALSE(closed.gave_up());

  RawSocket kept(server->port());
  for (int i = 0; i < 2; ++i) {
    kept.send("GET / HTTP/1.0\r\nConnection: keep-alive\r\n\r\n");
    EXPECT_NE(kept.read_response().find("Connection: keep-alive\r\n"), std::string::npos);
  }
}

TEST(HttpServer, AnswersPipelinedRequestsInOrder) {
  const auto server = start_server(echo);
  RawSocket client(server->port());
  std::string requests;
  for (int i = 0; i < 200; ++i) requests += get("/" + std::to_string(i));
  client.send(requests);
  for (int i = 0; i < 200; ++i) {
    ASSERT_EQ(body_of(client.read_response()), "GET /" + std::to_string(i) + " ");
  }
}

TEST(HttpServer, HandlesTheNextRequestOnlyAfterTheAnswer) {
  Mailbox<HeldRequest> held;
  const auto server = start_server(HoldingHandler{held});
  RawSocket client(server->port());
  client.send(get("/1") + get("/2"));
  HeldRequest first = held.pop();
  // After an answer on another connection, the I/O thread has handled all earlier events.
  RawSocket other(server->port());
  other.send(get("/other"));
  EXPECT_EQ(held.pop().request.target, "/other");
  other.read_response();
  EXPECT_TRUE(held.empty());
  first.responder.send(text("one"));
  held.pop().responder.send(text("two"));
  EXPECT_EQ(body_of(client.read_response()), "one");
  EXPECT_EQ(body_of(client.read_response()), "two");
}

TEST(HttpServer, SendsNoBodyForHead) {
  const auto server = start_server(echo);
  RawSocket client(server->port());
  client.send("HEAD /abc HTTP/1.1\r\nHost: a\r\n\r\n" + get("/next"));
  // The answer to HEAD has the length of "HEAD /abc " but no body. So read_response() also reads
  // the first 10 bytes of the next answer.
  const std::string both = client.read_response();
  EXPECT_NE(both.find("Content-Length: 10\r\n"), std::string::npos);
  EXPECT_EQ(body_of(both), "HTTP/1.1 2");
}

TEST(HttpServer, SendsContinueIfTheClientWaitsForIt) {
  const auto server = start_server(echo);
  RawSocket client(server->port());
  client.send("POST / HTTP/1.1\r\nHost: a\r\nExpect: 100-continue\r\nContent-Length: 3\r\n\r\n");
  EXPECT_EQ(client.read(25), "HTTP/1.1 100 Continue\r\n\r\n");
  client.send("abc");
  EXPECT_EQ(body_of(client.read_response()), "POST / abc");
}

TEST(HttpServer, RefusesATooLargeBodyInsteadOfSendingContinue) {
  const auto server = start_server(echo);
  RawSocket client(server->port());
  client.send(
      "POST / HTTP/1.1\r\nHost: a\r\nExpect: 100-continue\r\nContent-Length: 16777217\r\n\r\n");
  const std::string response = client.read_to_end();
  EXPECT_EQ(status_of(response), 413);
  EXPECT_EQ(body_of(response), "error 413: the body is larger than 16777216 bytes");
}

TEST(HttpServer, TakesTheLargestBody) {
  const auto server = start_server([](HttpRequest request, Responder responder) {
    responder.send(text(std::to_string(request.body.size())));
  });
  RawSocket client(server->port());
  client.send("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 16777216\r\n\r\n");
  client.send(std::string(16 * 1024 * 1024, 'x'));
  EXPECT_EQ(body_of(client.read_response()), "16777216");
}

// If the server closed a connection with unread bytes, the system would reset it, and the client
// could lose the answer.
TEST(HttpServer, AClientThatIsStillSendingCanReadTheRefusal) {
  const auto server = start_server(echo, {.max_body_bytes = 1000});
  RawSocket client(server->port());
  client.send("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 4000000\r\n\r\n");
  EXPECT_TRUE(client.send(std::string(4'000'000, 'x')));
  client.shut_down_sending();
  EXPECT_EQ(status_of(client.read_to_end()), 413);
  EXPECT_FALSE(client.was_reset());
}

TEST(HttpServer, WritesALargeAnswerToASlowReader) {
  const std::string large(8 * 1024 * 1024, 'y');
  const auto server =
      start_server([&large](HttpRequest, Responder responder) { responder.send(text(large)); });
  RawSocket client(server->port(), 4096);
  client.send(get("/"));
  EXPECT_EQ(body_of(client.read_response()), large);
}

TEST(HttpServer, ServesTwoHundredConnections) {
  const auto server = start_server(echo);
  std::vector<RawSocket> clients;
  for (int i = 0; i < 200; ++i) clients.emplace_back(server->port());
  for (RawSocket& client : clients) client.send(get("/"));
  for (RawSocket& client : clients) EXPECT_EQ(status_of(client.read_response()), 200);
  EXPECT_EQ(server->connections(), 200u);
}

TEST(HttpServer, AnswersConnectionsAboveTheLimitWith503) {
  const auto server = start_server(echo, {.max_connections = 2});
  std::vector<RawSocket> clients;
  for (int i = 0; i < 2; ++i) {
    clients.emplace_back(server->port());
    clients.back().send(get("/"));
    EXPECT_EQ(status_of(clients.back().read_response()), 200);
  }
  RawSocket third(server->port());
  third.send(get("/"));
  EXPECT_EQ(body_of(third.read_to_end()), "error 503: too many connections");
  clients.back().send("GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n");
  EXPECT_EQ(status_of(clients.back().read_to_end()), 200);
}

TEST(HttpServer, OneAddressMayNotHaveAllConnections) {
  const auto server = start_server(echo, {.max_connections_of_address = 2});
  {
    std::vector<RawSocket> clients;
    for (int i = 0; i < 2; ++i) {
      clients.emplace_back(server->port());
      clients.back().send(get("/"));
      EXPECT_EQ(status_of(clients.back().read_response()), 200);
    }
    RawSocket third(server->port());
    third.send(get("/"));
    EXPECT_EQ(body_of(third.read_to_end()), "error 503: too many connections from this address");
  }
  int status = 0;  // 200 after the server has noticed the disconnects
  while (status != 200) {
    RawSocket again(server->port());
    again.send("GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n");
    status = status_of(again.read_to_end());
  }
}

/// Connects, sends a request, reads the answer, and returns the open connection.
RawSocket answered_client(const HttpServer& server, const std::string& body) {
  RawSocket client(server.port());
  client.send(get("/"));
  EXPECT_EQ(body_of(client.read_response()), body);
  return client;
}

TEST(HttpServer, ClosesSilentConnectionsForNewOnesOldestFirst) {
  const auto server = start_server(echo, {.max_connections = 3});
  RawSocket oldest(server->port());
  RawSocket known = answered_client(*server, "GET / ");
  RawSocket newer(server->port());
  const RawSocket first = answered_client(*server, "GET / ");
  EXPECT_EQ(oldest.read_to_end(), "");
  EXPECT_FALSE(newer.has_input()) << "only one connection must be closed";
  const RawSocket second = answered_client(*server, "GET / ");
  EXPECT_EQ(newer.read_to_end(), "");
  RawSocket third(server->port());
  third.send(get("/"));
  EXPECT_EQ(body_of(third.read_to_end()), "error 503: too many connections");
  known.send(get("/again"));
  EXPECT_EQ(body_of(known.read_response()), "GET /again ");
}

TEST(HttpServer, ClosesSilentConnectionsOfAnAddressThatHasTooMany) {
  const auto server = start_server(echo, {.max_connections_of_address = 1});
  RawSocket silent(server->port());
  const RawSocket first = answered_client(*server, "GET / ");
  EXPECT_EQ(silent.read_to_end(), "");
}

// The I/O thread is busy when the request arrives, so it accepts the new connection before it reads
// the request.
TEST(HttpServer, AConnectionWhoseRequestWaitsToBeReadIsNotSilent) {
  Mailbox<bool> begun;
  Mailbox<bool> go_on;
  const auto handler = [&](HttpRequest request, Responder responder) {
    if (request.target == "/busy") {
      begun.push(true);
      go_on.pop();
    }
    echo(std::move(request), std::move(responder));
  };
  const auto server = start_server(handler, {.max_connections = 2});
  RawSocket asking(server->port());
  RawSocket busy(server->port());
  busy.send(get("/busy"));
  begun.pop();
  asking.send(get("/asked"));
  RawSocket third(server->port());
  go_on.push(true);
  EXPECT_EQ(body_of(third.read_to_end()), "error 503: too many connections");
  EXPECT_EQ(body_of(asking.read_response()), "GET /asked ");
}

TEST(HttpServer, SlowClientsAreCutAndDelayNoOther) {
  const auto server = start_server(echo, {.read_timeout = 300ms});
  std::vector<RawSocket> slow;
  for (int i = 0; i < 200; ++i) {
    slow.emplace_back(server->port());
    slow.back().send(i % 2 == 0 ? "GET / HT"
                                : "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 9\r\n\r\nx");
  }
  RawSocket healthy(server->port());
  for (int i = 0; i < 100; ++i) {
    healthy.send(get("/"));
    EXPECT_EQ(status_of(healthy.read_response()), 200);
  }
  for (RawSocket& socket : slow) EXPECT_EQ(status_of(socket.read_to_end()), 408);
}

TEST(HttpServer, GivesTheHandlerTheAddressOfTheClient) {
  Mailbox<HeldRequest> held;
  const auto server = start_server(HoldingHandler{held});
  RawSocket client(server->port());
  client.send(get("/"));
  HeldRequest request = held.pop();
  EXPECT_EQ(request.request.peer, "127.0.0.1");
  request.responder.send(text("x"));
}

TEST(HttpServer, TakesAnswersFromOtherThreads) {
  Mailbox<HeldRequest> held;
  const auto server = start_server(HoldingHandler{held});
  std::thread worker([&held] {
    for (int i = 0; i < 500; ++i) {
      HeldRequest next = held.pop();
      next.responder.send(text(next.request.target));
    }
  });
  std::vector<RawSocket> clients;
  for (int i = 0; i < 5; ++i) clients.emplace_back(server->port());
  for (int i = 0; i < 100; ++i) {
    for (RawSocket& client : clients) client.send(get("/" + std::to_string(i)));
    for (RawSocket& client : clients) {
      ASSERT_EQ(body_of(client.read_response()), "/" + std::to_string(i));
    }
  }
  worker.join();
}

TEST(HttpServer, AnswersADroppedRequestWith500) {
  const auto server = start_server([](HttpRequest, Responder) {});
  RawSocket client(server->port());
  client.send(get("/"));
  EXPECT_EQ(body_of(client.read_response()), std::string("error 500: ") + kNoAnswer);
  client.send(get("/"));
  EXPECT_EQ(status_of(client.read_response()), 500);
}

TEST(HttpServer, NoticesThatTheClientOfAHeldRequestHasGone) {
  Mailbox<HeldRequest> held;
  const auto server = start_server(HoldingHandler{held});
  for (const bool reset : {false, true}) {
    RawSocket client(server->port());
    client.send(get("/"));
    const HeldRequest request = held.pop();
    Mailbox<int> gone;
    request.responder.on_gone([&gone] { gone.push(1); });
    if (reset) {
      client.reset();
    } else {
      client.close();
    }
    EXPECT_EQ(gone.pop(), 1);
    request.responder.send(text("the client has gone"));
    bool at_once = false;
    request.responder.on_gone([&at_once] { at_once = true; });
    EXPECT_TRUE(at_once);
  }
  RawSocket next(server->port());
  next.send(get("/"));
  held.pop().responder.send(text("still here"));
  EXPECT_EQ(body_of(next.read_response()), "still here");
}

// One thread serves both connections. So when the second client gets its answer, the server has
// already seen that the first client has closed its sending side.
TEST(HttpServer, AnswersAClientThatClosedOnlyItsSendingSide) {
  Mailbox<HeldRequest> held;
  const auto server = start_server(HoldingHandler{held});
  RawSocket client(server->port());
  client.send(get("/first") + get("/second"));
  client.shut_down_sending();
  RawSocket other(server->port());
  const auto pass = [&] {
    other.send(get("/"));
    held.pop().responder.send(text(""));
    (void)other.read_response();
  };
  const HeldRequest first = held.pop();
  pass();
  first.responder.send(text("1"));
  EXPECT_EQ(body_of(client.read_response()), "1");
  const HeldRequest second = held.pop();
  pass();
  EXPECT_FALSE(second.responder.offer(text("only for a client that is still connected")));
  bool gone = false;
  second.responder.on_gone([&gone] { gone = true; });
  EXPECT_TRUE(gone);
  second.responder.send(text("2"));
  EXPECT_EQ(body_of(client.read_response()), "2");
  EXPECT_EQ(client.read_to_end(), "");
  EXPECT_FALSE(client.gave_up());
}

TEST(HttpServer, SurvivesAnswersDuringADisconnect) {
  Mailbox<HeldRequest> held;
  const auto server = start_server(HoldingHandler{held});
  std::atomic<int> gone = 0;  // written by the I/O thread, read by the test after stop()
  for (int round = 0; round < 300; ++round) {
    RawSocket client(server->port());
    client.send(get("/"));
    const HeldRequest request = held.pop();
    request.responder.on_gone([&gone] { ++gone; });
    std::thread going([&client] { client.close(); });
    request.responder.send(text("maybe"));
    going.join();
  }
  server->stop(0ms);
  EXPECT_LE(gone, 300);
}

/// Limits the number of open files of the process until the end of the scope.
class FileLimit {
 public:
  explicit FileLimit(rlim_t files) {
    ::getrlimit(RLIMIT_NOFILE, &before_);
    const rlimit lower{.rlim_cur = files, .rlim_max = before_.rlim_max};
    ::setrlimit(RLIMIT_NOFILE, &lower);
  }
  ~FileLimit() { ::setrlimit(RLIMIT_NOFILE, &before_); }
  FileLimit(const FileLimit&) = delete;
  FileLimit& operator=(const FileLimit&) = delete;

 private:
  rlimit before_{};
};

TEST(HttpServer, AcceptsAgainAfterItRanOutOfFiles) {
  const auto server = start_server(echo);
  RawSocket known(server->port());
  known.send(get("/"));
  EXPECT_EQ(status_of(known.read_response()), 200);
  std::optional<RawSocket> waiting;
  {
    const int next_free = ::dup(0);
    ::close(next_free);
    // The client's socket uses the last file, so the server cannot accept the connection.
    const FileLimit limit(static_cast<rlim_t>(next_free) + 1);
    waiting.emplace(server->port());
    ASSERT_TRUE(waiting->is_open());
    waiting->send(get("/"));
    known.send(get("/"));  // answered by the thread that could not accept
    EXPECT_EQ(status_of(known.read_response()), 200);
  }
  EXPECT_EQ(status_of(waiting->read_response()), 200);
}

TEST(HttpServer, NamesTheAddressItCannotListenOn) {
  const auto server = start_server(echo);
  const auto error_page = [](int, std::string_view) { return HttpResponse{}; };
  const auto second = HttpServer::start({.port = server->port()}, echo, error_page);
  ASSERT_FALSE(second);
  EXPECT_EQ(second.error().code, ErrorCode::unavailable);
  EXPECT_EQ(second.error().message,
            "listen on 127.0.0.1:" + std::to_string(server->port()) + ": Address already in use");

  const auto nonsense = HttpServer::start({.address = "localhost"}, echo, error_page);
  ASSERT_FALSE(nonsense);
  EXPECT_EQ(nonsense.error().code, ErrorCode::invalid_argument);
  EXPECT_EQ(nonsense.error().message,
            "\"localhost\" is not an IP address; expected one such as 127.0.0.1");
}

}  // namespace
}  // namespace detent::net

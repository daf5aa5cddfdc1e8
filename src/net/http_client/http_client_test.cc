#include "net/http_client/http_client.h"

#include <gtest/gtest.h>

#include <optional>
#include <string>
#include <thread>

#include "net/testing/http_server_fixture.h"

namespace detent::net {
namespace {

using namespace std::chrono_literals;
using std::chrono::milliseconds;

std::string url_of(const HttpServer& server) {
  return "http://127.0.0.1:" + std::to_string(server.port());
}

std::unique_ptr<HttpClient> make_client(const HttpServer& server,
                                        std::chrono::milliseconds timeout = kLong) {
  return HttpClient::create(url_of(server), timeout).value();
}

HttpRequest request(std::string method, std::string target, std::string body = "") {
  return {.method = std::move(method),
          .target = std::move(target),
          .headers = {},
          .body = std::move(body)};
}

TEST(HttpClient, SendsAndReceivesOnOneConnection) {
  const auto server = start_server([](HttpRequest sent, Responder responder) {
    responder.send({.status = 201,
                    .content_type = "text/plain",
                    .body = sent.method + sent.target + sent.body + std::string(sent.header("x-a")),
                    .headers = {{"X-B", "c"}}});
  });
  const auto client = make_client(*server);
  for (int i = 0; i < 3; ++i) {
    HttpRequest sent = request("POST", "/a?b", "body");
    sent.headers = {{"X-A", "header"}};
    const auto answer = client->send(sent);
    ASSERT_TRUE(answer) << answer.error().message;
    EXPECT_EQ(answer->status, 201);
    EXPECT_EQ(answer->content_type, "text/plain");
    EXPECT_EQ(answer->body, "POST/a?bbodyheader");
    EXPECT_EQ(answer->header("x-b"), "c");
    EXPECT_EQ(server->connections(), 1u);
  }
}

TEST(HttpClient, UnderstandsHead) {
  const auto server = start_server(echo);
  const auto client = make_client(*server);
  EXPECT_EQ(client->send(request("HEAD", "/"))->body, "");
  EXPECT_EQ(client->send(request("GET", "/"))->body, "GET / ");
}

TEST(HttpClient, PipelinesInOrder) {
  const auto server = start_server(echo);
  const auto client = make_client(*server);
  std::vector<HttpRequest> requests;
  for (int i = 0; i < 200; ++i) requests.push_back(request("POST", "/", std::to_string(i)));
  const auto answers = client->send_all(requests);
  ASSERT_TRUE(answers) << answers.error().message;
  ASSERT_EQ(answers->size(), 200u);
  for (std::size_t i = 0; i < 200; ++i) {
    EXPECT_EQ((*answers)[i].body, "POST / " + std::to_string(i));
  }
  EXPECT_TRUE(client->send_all({})->empty());
}

// More bytes than the sockets hold in both directions. A client that writes all before it reads
// would never finish.
TEST(HttpClient, PipelinesMoreThanTheSocketsHold) {
  const auto server = start_server(echo);
  const auto client = make_client(*server);
  const std::vector<HttpRequest> requests(16, request("POST", "/", std::string(2'000'000, 'x')));
  const auto answers = client->send_all(requests);
  ASSERT_TRUE(answers) << answers.error().message;
  EXPECT_EQ(answers->back().body.size(), 2'000'000u + 7);
}

/// A server that closes connections early, on a free port of 127.0.0.1.
class RudeServer {
 public:
  RudeServer() : listener_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    EXPECT_EQ(::bind(listener_, reinterpret_cast<const sockaddr*>(&address), sizeof address), 0);
    EXPECT_EQ(::listen(listener_, 8), 0);
    socklen_t size = sizeof address;
    ::getsockname(listener_, reinterpret_cast<sockaddr*>(&address), &size);
    port_ = ntohs(address.sin_port);
  }
  ~RudeServer() { ::close(listener_); }
  RudeServer(const RudeServer&) = delete;
  RudeServer& operator=(const RudeServer&) = delete;

  std::uint16_t port() const { return port_; }
  /// Serves one connection. For each element of `answers` it reads a request and sends the element;
  /// "" sends nothing. Then it closes the connection.
  void serve(const std::vector<std::string_view>& answers) const {
    const int client = ::accept(listener_, nullptr, nullptr);
    for (const std::string_view answer : answers) {
      std::array<char, 4096> buffer{};
      if (::recv(client, buffer.data(), buffer.size(), 0) <= 0) break;
      ::send(client, answer.data(), answer.size(), MSG_NOSIGNAL);
    }
    ::close(client);
  }
  /// Reads a request, calls `received`, and answers after the client has closed its sending side.
  template <class F>
  void serve_after_half_close(const F& received, std::string_view answer) const {
    const int client = ::accept(listener_, nullptr, nullptr);
    std::array<char, 4096> buffer{};
    EXPECT_GT(::recv(client, buffer.data(), buffer.size(), 0), 0);
    received();
    EXPECT_EQ(::recv(client, buffer.data(), buffer.size(), 0), 0);
    ::send(client, answer.data(), answer.size(), MSG_NOSIGNAL);
    ::close(client);
  }

 private:
  int listener_;
  std::uint16_t port_ = 0;
};

constexpr std::string_view kOk = "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n";

// The server has closed the idle connection. No byte of the request was sent, so the client can
// send it on a new connection, whatever its method is.
TEST(HttpClient, ReplacesAnIdleConnectionThatWasClosed) {
  const RudeServer server;
  const auto client =
      HttpClient::create("http://127.0.0.1:" + std::to_string(server.port()), kLong).value();
  for (int i = 0; i < 2; ++i) {
    std::thread serving([&server] { server.serve({kOk}); });
    EXPECT_TRUE(client->send(request("POST", "/")));
    serving.join();  // the connection is closed before the next request is sent
  }
}

TEST(HttpClient, RepeatsOnlyGetWhenAKeptConnectionIsLost) {
  const RudeServer server;
  const auto client =
      HttpClient::create("http://127.0.0.1:" + std::to_string(server.port()), kLong).value();
  std::thread serving([&server] {
    server.serve({kOk, ""});  // reads the GET and closes; the client must repeat it
    server.serve({kOk, ""});  // reads the POST and closes; the client must not repeat it
  });
  EXPECT_TRUE(client->send(request("GET", "/1")));
  EXPECT_TRUE(client->send(request("GET", "/2")));
  const auto lost = client->send(request("POST", "/3"));
  serving.join();
  ASSERT_FALSE(lost);
  EXPECT_EQ(lost.error().code, ErrorCode::unavailable);
  EXPECT_EQ(lost.error().message, "127.0.0.1:" + std::to_string(server.port()) +
                                      ": closed the connection before its answer");
}

TEST(HttpClient, DoesNotRepeatOnANewConnection) {
  const RudeServer server;
  const auto client =
      HttpClient::create("http://127.0.0.1:" + std::to_string(server.port()), kLong).value();
  std::thread serving([&server] { server.serve({""}); });
  EXPECT_FALSE(client->send(request("GET", "/")));
  serving.join();
}

TEST(HttpClient, ReportsAnIncompleteAnswerAndOneThatIsNotHttp) {
  const struct {
    std::string answer;
    ErrorCode code;
  } cases[] = {
      {"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nabc", ErrorCode::unavailable},
      {"SSH-2.0-OpenSSH\r\n\r\n", ErrorCode::internal},
      {"HTTP/1.1 200 OK\r\nContent-Length: 99999999999\r\n\r\n", ErrorCode::too_large},
  };
  for (const auto& bad : cases) {
    const RudeServer server;
    const auto client =
        HttpClient::create("http://127.0.0.1:" + std::to_string(server.port()), kLong).value();
    std::thread serving([&] { server.serve({bad.answer}); });
    const auto answer = client->send(request("GET", "/"));
    serving.join();
    ASSERT_FALSE(answer);
    EXPECT_EQ(answer.error().code, bad.code) << answer.error().message;
  }
}

TEST(HttpClient, TimesOut) {
  Mailbox<HeldRequest> held;
  const auto server = start_server(HoldingHandler{held});
  const auto client = make_client(*server, 20ms);
  const auto answer = client->send(request("GET", "/"));
  ASSERT_FALSE(answer);
  EXPECT_EQ(answer.error().code, ErrorCode::unavailable);
  EXPECT_EQ(answer.error().message,
            "127.0.0.1:" + std::to_string(server->port()) + ": no answer within 20 ms");
}

// The server refuses the request because of its length, and reads further only so that the client
// can read the answer.
TEST(HttpClient, ReadsARefusalThatComesBeforeTheBodyIsSent) {
  const auto server = start_server(echo, {.max_body_bytes = 1000});
  const auto client = make_client(*server);
  const auto answer = client->send(request("POST", "/", std::string(4'000'000, 'x')));
  ASSERT_TRUE(answer) << answer.error().message;
  EXPECT_EQ(answer->status, 413);
  EXPECT_TRUE(client->send(request("POST", "/", "short")));
}

TEST(HttpClient, NamesTheAddressItCannotReach) {
  auto server = start_server(echo);
  const std::uint16_t port = server->port();
  const auto client = make_client(*server);
  server.reset();
  const auto answer = client->send(request("GET", "/"));
  ASSERT_FALSE(answer);
  EXPECT_EQ(answer.error().code, ErrorCode::unavailable);
  EXPECT_EQ(answer.error().message,
            "connect to 127.0.0.1:" + std::to_string(port) + ": Connection refused");
}

TEST(HttpClient, TellsWhetherTheServerMayHaveSeenARequestThatFailed) {
  const RudeServer server;
  const auto client =
      HttpClient::create("http://127.0.0.1:" + std::to_string(server.port()), kLong).value();
  std::thread serving([&server] { server.serve({kOk, ""}); });
  EXPECT_TRUE(client->send(request("POST", "/")));
  EXPECT_FALSE(client->send(request("POST", "/")));
  serving.join();
  EXPECT_TRUE(client->may_have_been_seen());
  auto gone = start_server(echo);
  const auto later = make_client(*gone);
  EXPECT_TRUE(later->send(request("POST", "/")));
  gone.reset();
  EXPECT_FALSE(later->send(request("POST", "/")));
  EXPECT_FALSE(later->may_have_been_seen());
}

TEST(HttpClient, IsInterruptedInACallAndFromThenOn) {
  Mailbox<HeldRequest> held;
  const auto server = start_server(HoldingHandler{held});
  const auto client = make_client(*server);
  std::optional<HeldRequest> sent;  // answered when it is destroyed
  std::thread interrupting([&] {
    sent = held.pop();
    client->interrupt();
    Mailbox<bool> gone;
    sent->responder.on_gone([&gone] { gone.push(true); });
    EXPECT_TRUE(gone.pop());  // the server notices the disconnect
  });
  const auto answer = client->send(request("GET", "/"));
  interrupting.join();
  ASSERT_FALSE(answer);
  EXPECT_EQ(answer.error().code, ErrorCode::unavailable);
  EXPECT_EQ(client->send(request("GET", "/")).error().message, "interrupted");
  EXPECT_FALSE(client->may_have_been_seen());
  EXPECT_TRUE(held.empty());
}

// The server answers after the client has closed its sending side.
TEST(HttpClient, AnInterruptedCallStillTakesAnAnswerThatIsOnItsWay) {
  const RudeServer server;
  const auto client =
      HttpClient::create("http://127.0.0.1:" + std::to_string(server.port()), kLong).value();
  std::thread serving([&] { server.serve_after_half_close([&] { client->interrupt(); }, kOk); });
  EXPECT_TRUE(client->send(request("POST", "/")));
  serving.join();
}

// The server does not check whether the client has gone, so the closed side does not end the
// request.
TEST(HttpClient, AnInterruptedCallEndsEvenIfTheServerIgnoresTheClosedSide) {
  Mailbox<HeldRequest> held;
  const auto server = start_server(HoldingHandler{held});
  const auto client = make_client(*server);
  std::optional<HeldRequest> sent;
  std::thread interrupting([&] {
    sent = held.pop();
    client->interrupt();
  });
  EXPECT_EQ(client->send(request("GET", "/")).error().message, "interrupted");
  interrupting.join();
}

TEST(HttpClient, RefusesInvalidRequests) {
  const auto server = start_server(echo);
  const auto client = make_client(*server);
  for (const char* target : {"", "/a b", "/a\r\nX: y"}) {
    const auto answer = client->send(request("GET", target));
    ASSERT_FALSE(answer) << target;
    EXPECT_EQ(answer.error().code, ErrorCode::invalid_argument);
  }
  EXPECT_FALSE(client->send(request("G T", "/")));
}

// For example, the token was read from a file with a line break at its end.
TEST(HttpClient, RefusesAHeaderWithControlCharacters) {
  for (const char* const value : {"secret\n", "secret\r\nX-Other: 1", "a\x7f"}) {
    const auto client = HttpClient::create("http://h", kLong, {.headers = {{"x-a", value}}});
    ASSERT_FALSE(client) << value;
    EXPECT_EQ(client.error().code, ErrorCode::invalid_argument);
    EXPECT_EQ(client.error().message.find("secret"), std::string::npos);
  }
  EXPECT_TRUE(HttpClient::create("http://h", kLong, {.headers = {{"x-a", "\tb \xc3\xa4"}}}));
}

TEST(HttpClient, RefusesATimeoutOfZeroOrOfMoreThanADay) {
  for (const milliseconds timeout :
       {0ms, -1ms, milliseconds::min(), milliseconds::max(), milliseconds{48h}}) {
    const auto client = HttpClient::create("http://h", timeout);
    ASSERT_FALSE(client) << timeout.count();
    EXPECT_EQ(client.error().code, ErrorCode::invalid_argument);
    EXPECT_EQ(client.error().field, "timeout");
  }
  EXPECT_TRUE(HttpClient::create("http://h", 1ms));
  EXPECT_TRUE(HttpClient::create("http://h", 24h + 1min)) << "one day, plus the wait of a lease";
}

TEST(HttpClient, ReadsUrls) {
  for (const char* url : {"http://localhost", "http://127.0.0.1:80", "http://[::1]",
                          "http://[::1]:7070", "http://a.b:65535/", "https://a"}) {
    EXPECT_TRUE(HttpClient::create(url, 1s)) << url;
  }
  for (const char* url :
       {"", "127.0.0.1:80", "ftp://a", "http://", "https://", "http:///", "http://a/b",
        "http://a?b", "http://a:", "http://a:0", "http://a:65536", "http://a:1x", "http://[::1",
        "http://[::1]x", "http://b@a", "http://:80", "http://[]:1"}) {
    const auto client = HttpClient::create(url, 1s);
    ASSERT_FALSE(client) << url;
    EXPECT_EQ(client.error().code, ErrorCode::invalid_argument);
    EXPECT_EQ(client.error().field, "url");
  }
}

}  // namespace
}  // namespace detent::net

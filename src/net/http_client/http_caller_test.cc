// The caller with servers of this folder, with sockets that send wrong bytes, and with untrusted
// TLS servers. src/delivery decides which addresses are allowed, and tests this.
#include "net/http_client/http_caller.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <string>
#include <thread>

#include "net/socket/stream_server.h"
#include "net/testing/http_caller_rig.h"
#include "net/testing/http_server_fixture.h"
#include "net/testing/test_certificate.h"
#include "net/testing/tls_server_rig.h"

namespace detent::net {
namespace {

using namespace std::chrono_literals;

/// Long time limits, except for the step that a test wants to time out.
HttpCallerOptions patient() {
  return {.resolve_timeout = 600s,
          .connect_timeout = 600s,
          .handshake_timeout = 600s,
          .answer_timeout = 600s,
          .body_timeout = 600s,
          .total_timeout = 600s};
}

std::string url_of(const HttpServer& server, const std::string& host = "127.0.0.1") {
  return "http://" + host + ":" + std::to_string(server.port()) + "/path?query";
}

/// Serves one connection at a time. It answers every request with these bytes, and keeps the
/// connection open.
class RawServer {
 public:
  explicit RawServer(std::string answer)
      : server_(StreamServer::start({}, [answer](const std::shared_ptr<Stream>& stream) {
                  return std::make_unique<Handler>(stream, answer);
                }).value()) {}
  std::string url() const { return "http://127.0.0.1:" + std::to_string(server_->port()) + "/"; }

 private:
  class Handler final : public StreamHandler {
   public:
    Handler(const std::shared_ptr<Stream>& stream, std::string answer)
        : stream_(stream), answer_(std::move(answer)) {}
    void on_bytes(std::string_view bytes) override {
      read_.append(bytes);
      if (read_.find("\r\n\r\n") == std::string::npos) return read_on();
      if (answer_.empty()) return read_on();
      if (const auto stream = stream_.lock()) stream->send(std::exchange(answer_, ""));
    }
    void on_sent() override { read_on(); }
    void on_end() override {}
    void on_closed() override {}

   private:
    void read_on() {
      if (const auto stream = stream_.lock()) stream->read(600s);
    }
    std::weak_ptr<Stream> stream_;
    std::string answer_;
    std::string read_;
  };

  std::unique_ptr<StreamServer> server_;
};

TEST(HttpCaller, SendsTheRequestAndGivesTheAnswer) {
  const auto answer_with_it = [](HttpRequest sent, Responder responder) {
    responder.send({.status = 202,
                    .content_type = "text/plain",
                    .body = sent.method + " " + sent.target + " " + sent.body + " " +
                            std::string(sent.header("x-a")) + " " +
                            std::string(sent.header("host")),
                    .headers = {{"X-B", "c"}}});
  };
  const auto server = start_server(answer_with_it, {.idle_timeout = std::chrono::hours{1}});
  ScriptedResolver resolver;
  resolver.add("a.test", {"127.0.0.1"});
  CallerRig rig(resolver, patient());
  HttpRequest request = CallerRig::post("body");
  request.headers = {{"x-a", "header"}, {"connection", "keep-alive"}};
  const HttpResponse answer = answer_of(rig.call(url_of(*server, "A.test"), request));
  EXPECT_EQ(answer.status, 202);
  EXPECT_EQ(answer.body, "POST /path?query body header a.test:" + std::to_string(server->port()));
  EXPECT_EQ(answer.header("x-b"), "c");
  // The connection is not kept. The server notices a little later that it was closed.
  while (server->connections() != 0) std::this_thread::yield();
}

TEST(HttpCaller, MakesManyCallsAtOnce) {
  Mailbox<HeldRequest> held;
  const auto server = start_server(HoldingHandler{held});
  ScriptedResolver resolver;
  CallerRig rig(resolver, patient());
  Mailbox<CallOutcome> outcomes;
  for (int i = 0; i < 20; ++i) {
    rig.caller().call(*parse_http_url(url_of(*server)), CallerRig::post(""),
                      [&outcomes](CallOutcome outcome) { outcomes.push(std::move(outcome)); });
  }
  std::vector<HeldRequest> all;
  for (int i = 0; i < 20; ++i) all.push_back(held.pop());
  for (const HeldRequest& request : all) request.responder.send(text("x"));
  for (int i = 0; i < 20; ++i) EXPECT_EQ(answer_of(outcomes.pop()).status, 200);
}

TEST(HttpCaller, ReportsASlowAnswerAndStillDeliversIt) {
  Mailbox<HeldRequest> held;
  const auto server = start_server(HoldingHandler{held});
  ScriptedResolver resolver;
  CallerRig rig(resolver, patient());
  Mailbox<CallOutcome> outcomes;
  Mailbox<int> slow;
  for (const auto after : {1ms, std::chrono::milliseconds{600s}}) {
    const auto count = static_cast<int>(after.count());
    rig.caller().call(*parse_http_url(url_of(*server)), CallerRig::post(""),
                      [&outcomes](CallOutcome outcome) { outcomes.push(std::move(outcome)); },
                      {.after = after, .tell = [&slow, count] { slow.push(count); }});
  }
  const HeldRequest one = held.pop();
  const HeldRequest other = held.pop();
  EXPECT_EQ(slow.pop(), 1);
  for (const HeldRequest& request : {one, other}) request.responder.send(text("x"));
  for (int i = 0; i < 2; ++i) EXPECT_EQ(answer_of(outcomes.pop()).status, 200);
}

TEST(HttpCaller, AsksTheFilterAboutEveryAddressBeforeItConnects) {
  const CountingListener listener;
  ScriptedResolver resolver;
  resolver.add("a.test", {"127.0.0.1", "::1", "192.0.2.1"});
  std::vector<std::string> seen;
  CallerRig rig(resolver, patient(), [&seen](const IpAddress& address, std::uint16_t port) {
    seen.push_back(to_string(address) + " " + std::to_string(port));
    if (address.family() == IpAddress::Family::v4 && address.bytes()[0] == 192) {
      return Result<void>(Error{ErrorCode::invalid_argument, "not this one", ""});
    }
    return ok();
  });
  const std::string port = std::to_string(listener.port());
  const CallFailure failure = failure_of(rig.call("http://a.test:" + port));
  EXPECT_EQ(failure.step, CallStep::filter);
  EXPECT_EQ(failure.message, "address: not this one");
  EXPECT_EQ(seen,
            (std::vector<std::string>{"127.0.0.1 " + port, "::1 " + port, "192.0.2.1 " + port}));
  EXPECT_EQ(listener.count_connects(), 0);
}

TEST(HttpCaller, ResolvesOnceAndConnectsToTheCheckedAddress) {
  const auto server = start_server(echo);
  ScriptedResolver resolver;
  resolver.add("a.test", {"127.0.0.1"});
  resolver.add("a.test", {"192.0.2.1"});  // the answer to a second look-up, which must not happen
  CallerRig rig(resolver, patient());
  EXPECT_EQ(answer_of(rig.call(url_of(*server, "a.test"))).status, 200);
  EXPECT_EQ(resolver.asked(), 1);
}

TEST(HttpCaller, DoesNotResolveAnAddress) {
  const auto server = start_server(echo);
  ScriptedResolver resolver;
  CallerRig rig(resolver, patient());
  EXPECT_EQ(answer_of(rig.call(url_of(*server))).status, 200);
  EXPECT_EQ(resolver.asked(), 0);
}

TEST(HttpCaller, TriesTheNextAddressWhenOneRefuses) {
  const auto server = start_server(echo);
  ScriptedResolver resolver;
  resolver.add("a.test", {"127.0.0.2", "::1", "127.0.0.1"});  // the server listens on the last one
  CallerRig rig(resolver, patient());
  EXPECT_EQ(answer_of(rig.call(url_of(*server, "a.test"))).status, 200);
}

TEST(HttpCaller, NamesTheFailedStep) {
  std::string closed_port;
  {
    const CountingListener listener;
    closed_port = std::to_string(listener.port());
  }
  ScriptedResolver resolver;
  CallerRig rig(resolver, patient());
  const CallFailure unknown = failure_of(rig.call("http://unknown/"));
  EXPECT_EQ(unknown.step, CallStep::resolve);
  EXPECT_EQ(unknown.message, "resolve: no such name");
  const CallFailure refused = failure_of(rig.call("http://127.0.0.1:" + closed_port));
  EXPECT_EQ(refused.step, CallStep::connect);
  EXPECT_EQ(refused.message, "connect: Connection refused");
  const RawServer not_http("no http\r\n\r\n");
  EXPECT_EQ(failure_of(rig.call(not_http.url())).step, CallStep::exchange);
}

TEST(HttpCaller, FollowsNoRedirect) {
  const CountingListener inside;
  const auto server = start_server([&](const HttpRequest&, const Responder& responder) {
    HttpResponse answer = text("", 302);
    answer.headers = {{"Location", "http://127.0.0.1:" + std::to_string(inside.port()) + "/"}};
    responder.send(answer);
  });
  ScriptedResolver resolver;
  CallerRig rig(resolver, patient());
  EXPECT_EQ(answer_of(rig.call(url_of(*server))).status, 302);
  EXPECT_EQ(inside.count_connects(), 0);
}

TEST(HttpCaller, TimesOutInEachStep) {
  ScriptedResolver resolver;  // gives no answer
  HttpCallerOptions options = patient();
  options.resolve_timeout = 20ms;
  options.answer_timeout = 20ms;
  options.handshake_timeout = 20ms;
  CallerRig rig(resolver, options);
  const CallFailure unresolved = failure_of(rig.call("http://a.test/"));
  EXPECT_EQ(unresolved.step, CallStep::resolve);
  EXPECT_EQ(unresolved.kind, CallFailure::Kind::timed_out);
  EXPECT_EQ(unresolved.message, "timed out after 20 ms looking up the host's name");
  const CountingListener silent;
  const std::string authority = "127.0.0.1:" + std::to_string(silent.port());
  const CallFailure unanswered = failure_of(rig.call("http://" + authority));
  EXPECT_EQ(unanswered.step, CallStep::exchange);
  EXPECT_EQ(unanswered.kind, CallFailure::Kind::timed_out);
  EXPECT_EQ(unanswered.message, "timed out after 20 ms waiting for the answer");
  const CallFailure unencrypted = failure_of(rig.call("https://" + authority));
  EXPECT_EQ(unencrypted.step, CallStep::handshake);
  EXPECT_EQ(unencrypted.message, "timed out after 20 ms in the TLS handshake");
  EXPECT_EQ(silent.count_connects(), 2);
}

TEST(HttpCaller, TimesOutAsAWhole) {
  ScriptedResolver resolver;
  HttpCallerOptions options = patient();
  options.total_timeout = 20ms;
  CallerRig rig(resolver, options);
  const CallFailure late = failure_of(rig.call("http://a.test/"));
  EXPECT_EQ(late.kind, CallFailure::Kind::timed_out);
  EXPECT_EQ(late.message, "timed out after 20 ms in all, looking up the host's name");
}

TEST(HttpCaller, AnAnswerWithAnIncompleteBodyIsStillAnAnswer) {
  ScriptedResolver resolver;
  HttpCallerOptions options = patient();
  options.body_timeout = 20ms;
  CallerRig rig(resolver, options);
  const RawServer slow("HTTP/1.1 204 x\r\n\r\n");
  EXPECT_EQ(answer_of(rig.call(slow.url())).status, 204);
  const RawServer stuck("HTTP/1.1 500 x\r\nContent-Length: 100\r\n\r\nabc");
  const HttpResponse part = answer_of(rig.call(stuck.url()));
  EXPECT_EQ(part.status, 500);
  EXPECT_EQ(part.body, "abc");
}

TEST(HttpCaller, ReadsNoMoreThanTheLimits) {
  ScriptedResolver resolver;
  CallerRig rig(resolver, patient());
  const RawServer endless("HTTP/1.1 200 x\r\n\r\n" + std::string(1'000'000, 'x'));
  const HttpResponse cut = answer_of(rig.call(endless.url()));
  EXPECT_GE(cut.body.size(), 64u * 1024);
  EXPECT_LE(cut.body.size(), 80u * 1024);
  const RawServer claims("HTTP/1.1 200 x\r\nContent-Length: 99999999999\r\n\r\n" +
                         std::string(100'000, 'x'));
  EXPECT_EQ(answer_of(rig.call(claims.url())).status, 200);
  const RawServer header("HTTP/1.1 200 x\r\nX: " + std::string(20'000, 'x') + "\r\n\r\n");
  EXPECT_EQ(failure_of(rig.call(header.url())).step, CallStep::exchange);
}

TEST(HttpCaller, CutsRunningCallsWhenItIsDestroyed) {
  const CountingListener silent;
  ScriptedResolver resolver;
  int told = 0;
  {
    CallerRig rig(resolver, patient());
    for (const std::string host : {"a.test", "127.0.0.1"}) {
      rig.caller().call(*parse_http_url("http://" + host + ":" + std::to_string(silent.port())),
                        CallerRig::post(""), [&told](const CallOutcome&) { ++told; });
    }
  }
  EXPECT_EQ(told, 0);
}

TEST(HttpCaller, AnIncompleteBodyIsAFailureIfWholeAnswersAreRequired) {
  const auto server = start_server([](const HttpRequest&, Responder responder) {
    const ResponseStream stream = responder.stream({.body = "begun"});
    stream.send(" and");  // the stream is destroyed before end()
  });
  ScriptedResolver resolver;
  HttpCallerOptions options = patient();
  EXPECT_EQ(answer_of(CallerRig(resolver, options).call(url_of(*server))).status, 200);
  options.wants_whole_answers = true;
  const CallFailure failure = failure_of(CallerRig(resolver, options).call(url_of(*server)));
  EXPECT_EQ(failure.step, CallStep::exchange);
}

HttpCallerOptions keeping(std::chrono::milliseconds idle_timeout = 600s) {
  HttpCallerOptions options = patient();
  options.max_idle_connections = 1;
  options.idle_timeout = idle_timeout;
  return options;
}

TEST(HttpCallerConnections, AreUsedAgainIfTheyMayBeKept) {
  const auto server = start_server(echo);
  ScriptedResolver resolver;
  resolver.add("a.test", {"127.0.0.1"});
  CallerRig rig(resolver, keeping());
  for (int i = 0; i < 3; ++i) {
    EXPECT_EQ(answer_of(rig.call(url_of(*server, "a.test"))).status, 200);
  }
  EXPECT_EQ(resolver.asked(), 1);
  EXPECT_EQ(server->connections(), 1u);
}

TEST(HttpCallerConnections, AreNotUsedAgainIfTheyAreTooOld) {
  const auto server = start_server(echo);
  ScriptedResolver resolver;
  resolver.add("a.test", {"127.0.0.1"});
  CallerRig rig(resolver, keeping(-1ms));
  for (int i = 0; i < 3; ++i) {
    EXPECT_EQ(answer_of(rig.call(url_of(*server, "a.test"))).status, 200);
  }
  EXPECT_EQ(resolver.asked(), 3);
}

TEST(HttpCallerConnections, AreNotUsedAgainIfTheHostHasClosedThem) {
  ScriptedResolver resolver;
  CallerRig rig(resolver, keeping());
  auto server = start_server(echo);
  const std::uint16_t port = server->port();
  EXPECT_EQ(answer_of(rig.call(url_of(*server))).status, 200);
  server->stop(600s);
  server.reset();
  server = start_server(echo, {.port = port});
  EXPECT_EQ(answer_of(rig.call(url_of(*server))).status, 200);
}

TEST(HttpCallerConnections, AreNotUsedAgainIfTheAnswerClosesThem) {
  const RawServer server("HTTP/1.1 200 OK\r\nContent-Length: 2\r\nConnection: close\r\n\r\nok");
  ScriptedResolver resolver;
  CallerRig rig(resolver, keeping());
  EXPECT_EQ(answer_of(rig.call(server.url())).body, "ok");
  EXPECT_EQ(answer_of(rig.call(server.url())).body, "ok") << "with a new connection";
}

TEST(HttpCallerConnections, AreClosedIfTheirCallIsAbandoned) {
  Mailbox<Responder> asked;
  Mailbox<bool> gone;
  const auto server = start_server([&](const HttpRequest&, Responder responder) {
    responder.on_gone([&gone] { gone.push(true); });
    asked.push(std::move(responder));
  });
  ScriptedResolver resolver;
  CallerRig rig(resolver, keeping());
  const auto number = rig.caller().call(parse_http_url(url_of(*server)).value(),
                                        CallerRig::post("{}"), [](const CallOutcome&) { FAIL(); });
  const Responder waiting = asked.pop();
  rig.caller().abandon(number);
  EXPECT_TRUE(gone.pop());
  rig.caller().abandon(number);  // it has ended, so this has no effect
}

/// Calls over TLS, with a folder for certificates. A caller trusts at most one certificate file.
class HttpCallerTls : public ::testing::Test {
 public:
  HttpCallerTls() {
    std::filesystem::create_directories(folder_);
    write_certificate(path("trusted.crt"), path("trusted.key"), {});
    resolver_.add("localhost", {"127.0.0.1"});
    resolver_.add("other.test", {"127.0.0.1"});
  }
  ~HttpCallerTls() override { std::filesystem::remove_all(folder_); }

 protected:
  std::string path(const std::string& name) const { return (folder_ / name).string(); }
  CallOutcome call(const std::string& url, const std::string& trusted) {
    HttpCallerOptions options = patient();
    if (!trusted.empty()) options.ca_file = path(trusted) + ".crt";
    return CallerRig(resolver_, options).call(url);
  }

  const std::filesystem::path folder_ =
      std::filesystem::path(::testing::TempDir()) / ("detent-tls-" + std::to_string(::getpid()));
  ScriptedResolver resolver_;
};

TEST_F(HttpCallerTls, AcceptsATrustedCertificateForTheHost) {
  const TlsServerRig server(path("trusted"));
  for (const std::string host : {"localhost", "127.0.0.1"}) {
    const HttpResponse answer =
        answer_of(call("https://" + host + ":" + server.port() + "/a", "trusted"));
    EXPECT_EQ(answer.status, 200);
    EXPECT_EQ(answer.body, "/a");
  }
}

TEST_F(HttpCallerTls, RefusesACertificateOfAnotherName) {
  const TlsServerRig server(path("trusted"));
  const CallFailure failure =
      failure_of(call("https://other.test:" + server.port() + "/", "trusted"));
  EXPECT_EQ(failure.step, CallStep::handshake);
  EXPECT_TRUE(failure.message.find("certificate") != std::string::npos) << failure.message;
}

TEST_F(HttpCallerTls, RefusesAnUntrustedCertificate) {
  const TlsServerRig server(path("trusted"));
  const CallFailure failure = failure_of(call("https://localhost:" + server.port() + "/", ""));
  EXPECT_EQ(failure.step, CallStep::handshake);
  EXPECT_TRUE(failure.message.find("self-signed") != std::string::npos) << failure.message;
}

TEST_F(HttpCallerTls, RefusesAnExpiredCertificate) {
  write_certificate(path("old.crt"), path("old.key"), {.valid_from = -7200, .valid_to = -3600});
  const TlsServerRig server(path("old"));
  const CallFailure failure = failure_of(call("https://localhost:" + server.port() + "/", "old"));
  EXPECT_TRUE(failure.message.find("expired") != std::string::npos) << failure.message;
}

TEST_F(HttpCallerTls, RefusesAHostWithoutTls) {
  const auto server = start_server(echo);
  const std::string port = std::to_string(server->port());
  EXPECT_EQ(failure_of(call("https://localhost:" + port + "/", "trusted")).step,
            CallStep::handshake);
}

TEST_F(HttpCallerTls, ReportsAnUnreadableCaFile) {
  const auto caller =
      HttpCaller::start({.ca_file = path("none")}, resolver_, CallerRig::allow_all());
  ASSERT_FALSE(caller);
  EXPECT_EQ(caller.error().code, ErrorCode::invalid_argument);
}

}  // namespace
}  // namespace detent::net

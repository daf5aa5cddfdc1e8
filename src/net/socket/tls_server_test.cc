// The HTTP server and client over TLS: which clients are served, and that slow or wrong clients do
// not delay others.
#include "net/socket/tls_server.h"

#include <gtest/gtest.h>
#include <openssl/ssl.h>
#include <unistd.h>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <memory>
#include <string>
#include <vector>

#include "net/http_client/http_client.h"
#include "net/testing/http_server_fixture.h"
#include "net/testing/test_certificate.h"

namespace detent::net {
namespace {

using namespace std::chrono_literals;  // NOLINT(google-build-using-namespace): literals only

class TlsServerTest : public ::testing::Test {
 public:
  TlsServerTest() {
    const std::string name = ::testing::UnitTest::GetInstance()->current_test_info()->name();
    folder_ = ::testing::TempDir() + "tls_" + name + "_" + std::to_string(getpid());
    std::filesystem::create_directory(folder_);
    write_certificate(cert(), key(), {.names = "IP:127.0.0.1"});
  }
  ~TlsServerTest() override {
    server_.reset();
    std::filesystem::remove_all(folder_);
  }

 protected:
  std::string cert() const { return folder_ + "/cert.pem"; }
  std::string key() const { return folder_ + "/key.pem"; }
  void start(HttpServerOptions options = {}) {
    tls_ = TlsServer::load(cert(), key()).value();
    options.tls = tls_;
    server_ = start_server(echo, std::move(options));
  }
  std::string url(const std::string& host = "127.0.0.1") const {
    return "https://" + host + ":" + std::to_string(server_->port());
  }
  Result<HttpResponse> ask(HttpClient& client, std::string body = "") const {
    return client.send({.method = "POST", .target = "/x", .headers = {}, .body = std::move(body)});
  }
  std::unique_ptr<HttpClient> client_that_trusts(const std::string& ca) const {
    return HttpClient::create(url(), 30s, {.headers = {}, .ca_file = ca}).value();
  }
  /// Returns whether the server accepts a client that offers only this version of TLS.
  bool speaks(int version) const {
    const test::RawSocket socket(server_->port());
    const std::unique_ptr<SSL_CTX, void (*)(SSL_CTX*)> context(SSL_CTX_new(TLS_client_method()),
                                                               SSL_CTX_free);
    SSL_CTX_set_security_level(context.get(), 0);  // otherwise OpenSSL refuses old versions itself
    SSL_CTX_set_min_proto_version(context.get(), version);
    SSL_CTX_set_max_proto_version(context.get(), version);
    const std::unique_ptr<SSL, void (*)(SSL*)> ssl(SSL_new(context.get()), SSL_free);
    SSL_set_fd(ssl.get(), socket.fd());
    return SSL_connect(ssl.get()) == 1;
  }

  std::string folder_;
  std::shared_ptr<TlsServer> tls_;
  std::unique_ptr<HttpServer> server_;
};

TEST_F(TlsServerTest, AClientThatTrustsTheCertificateIsServed) {
  start();
  const auto client = client_that_trusts(cert());
  for (int i = 0; i < 3; ++i) {  // with one connection
    const auto answer = ask(*client, "hello");
    ASSERT_TRUE(answer) << answer.error().message;
    EXPECT_EQ(answer->body, "POST /x hello");
  }
  EXPECT_EQ(server_->connections(), 1U);
}

TEST_F(TlsServerTest, LargeBodiesPassWhole) {
  start();
  const auto client = client_that_trusts(cert());
  std::string body(5'000'000, 'a');
  for (std::size_t i = 0; i < body.size(); i += 997) body[i] = static_cast<char>('b' + i % 20);
  const auto answer = ask(*client, body);
  ASSERT_TRUE(answer) << answer.error().message;
  EXPECT_EQ(answer->body, "POST /x " + body);
}

TEST_F(TlsServerTest, PipelinedRequestsAreAllAnswered) {
  start();
  const auto client = client_that_trusts(cert());
  std::vector<HttpRequest> requests;
  for (int i = 0; i < 500; ++i) {
    requests.push_back({.method = "POST",
                        .target = "/" + std::to_string(i),
                        .headers = {},
                        .body = std::string(static_cast<std::size_t>(i * 7 % 900), 'x')});
  }
  const auto answers = client->send_all(requests);
  ASSERT_TRUE(answers) << answers.error().message;
  for (std::size_t i = 0; i < requests.size(); ++i) {
    EXPECT_EQ((*answers)[i].body, "POST " + requests[i].target + " " + requests[i].body);
  }
}

TEST_F(TlsServerTest, AnUnknownCertificateIsRefused) {
  start();
  write_certificate(folder_ + "/other.pem", folder_ + "/other.key", {.names = "IP:127.0.0.1"});
  for (const std::string& ca : {folder_ + "/other.pem", std::string()}) {
    const auto answer = ask(*client_that_trusts(ca));
    ASSERT_FALSE(answer);
    EXPECT_NE(answer.error().message.find("certificate verify failed"), std::string::npos)
        << answer.error().message;
  }
}

TEST_F(TlsServerTest, ACertificateOfAnotherHostIsRefused) {
  start();
  const auto client =
      HttpClient::create(url("localhost"), 30s, {.headers = {}, .ca_file = cert()}).value();
  EXPECT_FALSE(ask(*client));
}

TEST_F(TlsServerTest, OldVersionsAreRefused) {
  start();
  EXPECT_FALSE(speaks(TLS1_VERSION));
  EXPECT_FALSE(speaks(TLS1_1_VERSION));
  EXPECT_TRUE(speaks(TLS1_2_VERSION));
  EXPECT_TRUE(speaks(TLS1_3_VERSION));
}

TEST_F(TlsServerTest, PlainHttpIsClosedWithoutAnAnswer) {
  start();
  test::RawSocket plain(server_->port());
  plain.send(get("/"));
  EXPECT_EQ(status_of(plain.read_to_end()), 0);
  EXPECT_TRUE(ask(*client_that_trusts(cert())));
}

TEST_F(TlsServerTest, SlowHandshakesDelayNoOtherAndAreCut) {
  start({.read_timeout = 300ms});
  std::vector<std::unique_ptr<test::RawSocket>> slow;
  for (int i = 0; i < 200; ++i) {
    slow.push_back(std::make_unique<test::RawSocket>(server_->port()));
    slow.back()->send("\x16\x03\x01");  // the beginning of a ClientHello
  }
  EXPECT_TRUE(ask(*client_that_trusts(cert())));
  for (const auto& socket : slow) EXPECT_EQ(socket->read_to_end(), "");
}

TEST_F(TlsServerTest, AReloadedCertificateIsForNewConnections) {
  start();
  const auto before = client_that_trusts(cert());
  ASSERT_TRUE(ask(*before));
  write_certificate(cert(), key(), {.names = "IP:127.0.0.1"});
  EXPECT_FALSE(ask(*client_that_trusts(cert())));  // the new certificate is not used yet
  ASSERT_TRUE(tls_->reload());
  EXPECT_TRUE(ask(*client_that_trusts(cert())));
  EXPECT_TRUE(ask(*before));
}

TEST_F(TlsServerTest, WrongFilesAreRefusedByNameAndTheOldCertificateStays) {
  start();
  const auto client = client_that_trusts(cert());
  write_certificate(folder_ + "/other.pem", folder_ + "/other.key", {.names = "IP:127.0.0.1"});
  std::filesystem::copy_file(folder_ + "/other.key", key(),
                             std::filesystem::copy_options::overwrite_existing);
  const Result<void> reloaded = tls_->reload();
  ASSERT_FALSE(reloaded);
  EXPECT_NE(reloaded.error().message.find(key()), std::string::npos) << reloaded.error().message;
  EXPECT_TRUE(ask(*client));
  const auto missing = TlsServer::load(folder_ + "/none.pem", key());
  ASSERT_FALSE(missing);
  EXPECT_NE(missing.error().message.find("none.pem"), std::string::npos);
  EXPECT_FALSE(HttpClient::create(url(), 1s, {.headers = {}, .ca_file = key()}));
}

TEST_F(TlsServerTest, AMissingOrEmptyFileIsNamedWithTheReason) {
  const std::string wrong = folder_ + "/wrong.pem";
  const auto message = [&](const std::string& certificate, const std::string& key_file) {
    const auto loaded = TlsServer::load(certificate, key_file);
    return loaded ? "" : loaded.error().message;
  };
  const std::string missing = wrong + ": read " + wrong + ": No such file or directory";
  EXPECT_EQ(message(wrong, key()), "--tls-cert " + missing);
  EXPECT_EQ(message(cert(), wrong), "--tls-key " + missing);
  std::ofstream(wrong).flush();
  EXPECT_EQ(message(wrong, key()), "--tls-cert " + wrong + ": the file is empty");
  EXPECT_EQ(message(cert(), wrong), "--tls-key " + wrong + ": the file is empty");
  std::ofstream(wrong) << "no PEM";
  const std::string not_pem = wrong + ": must be a PEM file with the ";
  EXPECT_TRUE(message(wrong, key()).starts_with("--tls-cert " + not_pem + "certificate chain"));
  EXPECT_TRUE(message(cert(), wrong).starts_with("--tls-key " + not_pem + "private key"));
}

TEST_F(TlsServerTest, FaultsAreTheReasonsWhyClientsRefuseTheCertificate) {
  write_certificate(cert(), key(), {.names = "DNS:a.example,DNS:*.b.example,IP:::1,IP:10.0.0.1"});
  tls_ = TlsServer::load(cert(), key()).value();
  const auto now = std::chrono::floor<WallTime::duration>(SystemClock().wall_now());
  const std::vector<std::string> names{"a.example", "*.b.example", "::1", "10.0.0.1"};
  EXPECT_EQ(tls_->names(), names);
  std::vector<std::string> hosts = names;
  hosts.emplace_back("x.b.example");
  EXPECT_EQ(tls_->faults(now, hosts), std::vector<std::string>{});
  EXPECT_EQ(tls_->faults(now, {"b.example", "10.0.0.2"}),
            (std::vector<std::string>{"the certificate is not for b.example",
                                      "the certificate is not for 10.0.0.2"}));
  const auto expired = tls_->faults(now + 2h, {});
  ASSERT_EQ(expired.size(), 1U);
  EXPECT_TRUE(expired[0].starts_with("the certificate expired on 20")) << expired[0];
  const auto early = tls_->faults(now - 2h, {});
  ASSERT_EQ(early.size(), 1U);
  EXPECT_TRUE(early[0].starts_with("the certificate is not valid before 20")) << early[0];
}

TEST_F(TlsServerTest, AnExpiredCertificateOfTheChainIsAFault) {
  write_certificate(folder_ + "/signer.pem", folder_ + "/signer.key",
                    {.names = "DNS:ca", .valid_from = -7200, .valid_to = -3600});
  std::ofstream(cert(), std::ios::app) << std::ifstream(folder_ + "/signer.pem").rdbuf();
  tls_ = TlsServer::load(cert(), key()).value();
  const auto faults =
      tls_->faults(std::chrono::floor<WallTime::duration>(SystemClock().wall_now()), {});
  ASSERT_EQ(faults.size(), 1U);
  EXPECT_TRUE(faults[0].starts_with("a certificate that signed it expired on")) << faults[0];
}

TEST_F(TlsServerTest, AStopEndsIdleConnectionsAndHandshakes) {
  start();
  const auto client = client_that_trusts(cert());
  ASSERT_TRUE(ask(*client));
  test::RawSocket half(server_->port());
  half.send("\x16\x03\x01");
  server_->stop(10s);
  EXPECT_EQ(half.read_to_end(), "");
  EXPECT_FALSE(ask(*client));
}

}  // namespace
}  // namespace detent::net

// Tests that secrets do not reach the log or the metrics. The server logs at level debug. All
// fields of valid and invalid requests contain a "canary", a word that must not appear in the
// output.
#include <gtest/gtest.h>

#include <cstdint>
#include <string>
#include <vector>

#include "base/testing/test_folder.h"
#include "tests/durability/child_server.h"
#include "tests/support/raw_socket.h"

namespace detent {
namespace {

/// The word in each request. The search also finds it in base64.
constexpr const char* kCanary = "canary";
constexpr const char* kCanaryInBase64 = "Y2FuYXJ5";

bool has_canary(const std::string& text) {
  return text.find(kCanary) != std::string::npos || text.find(kCanaryInBase64) != std::string::npos;
}

struct Request {
  std::string method;
  std::string target;
  std::string body = {};
  std::string headers = {};
};

class Secrets : public ::testing::Test {
 protected:
  /// Sends a request and returns the whole answer.
  std::string send(const Request& request) const {
    test::RawSocket socket(port_of(server_.url()));
    socket.send(request.method + " " + request.target + " HTTP/1.1\r\nHost: 127.0.0.1\r\n" +
                request.headers + "Content-Length: " + std::to_string(request.body.size()) +
                "\r\n\r\n" + request.body);
    return socket.read_response();
  }
  static std::uint16_t port_of(const std::string& url) {
    return static_cast<std::uint16_t>(std::stoi(url.substr(url.rfind(':') + 1)));
  }
  std::string metrics() const { return send({"GET", "/metrics"}); }

  TestFolder folder_;
  ChildServer server_{{.program = DETENT_BINARY,
                       .data = folder_ / "data",
                       .flags = {"--external", "redis://canary-user:canary-pw@127.0.0.1:1"},
                       .log_level = "debug"}};
};

/// Valid and invalid requests with the canary in each field, except names of queues and schedules.
std::vector<Request> requests() {
  const std::string token = "Authorization: Bearer canary-token\r\n";
  return {
      {"POST", "/v1/tasks", R"({"queue":"q","payload":{"card":"canary"},"key":"canary-key"})",
       token},
      {"POST", "/v1/tasks", R"({"queue":"q","payload_base64":"Y2FuYXJ5","delay":"1000d"})"},
      {"POST", "/v1/tasks", R"({"queue":"q","payload":canary})"},
      {"POST", "/v1/tasks", R"({"queue":"q","canary":"canary"})"},
      {"POST", "/v1/tasks", R"({"queue":"q","delay":"canary"})"},
      {"POST", "/v1/tasks", R"({"queue":"q","payload_base64":"canary!"})"},
      {"POST", "/v1/tasks",
       R"({"queue":"q","webhook":"https://u:canary@127.0.0.1:1/canary",)"
       R"("headers":{"Authorization":"Bearer canary"}})"},
      {"POST", "/v1/tasks", R"({"queue":"q","payload":")" + std::string(70'000, 'x') + "canary\"}"},
      {"POST", "/v1/tasks/batch",
       "[{\"queue\":\"q\",\"payload\":\"canary\"},{\"canary\":1},canary"},
      {"GET", "/v1/tasks?queue=q&token=canary", "", token},
      {"GET", "/v1/tasks?cursor=canary&state=canary"},
      {"GET", "/v1/canary"},
      {"GET", "/v1/tasks/canary"},
      {"GET", "/v1/queues/q/keys/canary-key"},
      {"PATCH", "/v1/queues/q", R"({"webhook":"https://u:canary@127.0.0.1:1/","sink":"canary"})"},
      {"POST", "/v1/queues/q/lease", R"({"max":1,"worker":"canary"})", token},
      {"POST", "/v1/leases/complete", R"({"leases":["canary"]})"},
      {"POST", "/v1/leases/fail", R"({"leases":["1-1"],"error":"canary"})"},
      {"GET", "/v1/stats", "", "Authorization: Basic Y2FuYXJ5\r\nCookie: session=canary\r\n"},
      {"GET", "/v1/stats", "", "Authorization: canary\r\nIf-Match: \"canary\"\r\n"},
      {"CANARY", "/canary", "canary", "X-Canary: canary\r\n"},
      {"GET", "/v1/stats", "", " canary: obsolete folding\r\n"},
      {"POST", "/v1/tasks", "canary", "Transfer-Encoding: canary\r\n"},
  };
}

TEST_F(Secrets, NeverReachTheLogOrTheMetrics) {
  ASSERT_TRUE(server_.start());
  for (const Request& request : requests()) {
    EXPECT_NE(send(request), "") << request.method << " " << request.target;
  }
  test::RawSocket beanstalk(server_.beanstalk_port());
  EXPECT_TRUE(
      beanstalk.send("put 0 0 60 6\r\ncanary\r\ncanary canary\r\n"
                     "put 0 1000 60 6\r\ncanaryX\r\n"));
  beanstalk.shut_down_sending();
  (void)beanstalk.read_to_end();
  EXPECT_FALSE(has_canary(metrics()));
  EXPECT_EQ(server_.stop(), 0);
  EXPECT_FALSE(has_canary(server_.log())) << server_.log();
  EXPECT_NE(server_.log().find("info stopping"), std::string::npos) << "the log was looked at";
}

// Checks the search itself. Names are not secret, so the metrics show them, and the search finds
// them.
TEST_F(Secrets, ANameIsShown) {
  ASSERT_TRUE(server_.start());
  send({"POST", "/v1/tasks", R"({"queue":"canary","delay":"1h"})"});
  EXPECT_TRUE(has_canary(metrics()));
  EXPECT_EQ(server_.stop(), 0);
}

// The error for a bad address contains the address, but without its password.
TEST_F(Secrets, ABadAddressIsReportedWithoutItsPassword) {
  for (const char* url : {"redis://u:canary@", "ftp://u:canary@127.0.0.1:1", "redis://u:canary"}) {
    server_.options().flags = {"--external", url};
    ASSERT_TRUE(server_.spawn());
    EXPECT_FALSE(server_.await_ready(std::chrono::minutes{1}));
  }
  EXPECT_FALSE(has_canary(server_.log())) << server_.log();
  EXPECT_NE(server_.log().find("detent serve: "), std::string::npos);
}

}  // namespace
}  // namespace detent

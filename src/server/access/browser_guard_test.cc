#include "server/access/browser_guard.h"

#include <gtest/gtest.h>

#include <vector>

namespace detent::server {
namespace {

net::HttpRequest request_with(std::string method, net::HttpHeaders headers) {
  return {.method = std::move(method), .target = "/", .headers = std::move(headers), .body = ""};
}

bool may_change(const std::string& host, const std::string& origin, const std::string& cors = "") {
  return is_from_own_page(request_with("POST", {{"host", host}, {"origin", origin}}), cors);
}

TEST(BrowserGuard, APageOfThisServerMayChangeThings) {
  EXPECT_TRUE(may_change("127.0.0.1:7070", "http://127.0.0.1:7070"));
  EXPECT_TRUE(may_change("Tasks.example", "https://tasks.example"));  // a proxy ends TLS
  EXPECT_TRUE(may_change("[::1]:7070", "http://[::1]:7070"));
}

TEST(BrowserGuard, APageOfAnotherSiteMayNot) {
  for (const char* origin : {"https://evil.example", "http://127.0.0.1:8080", "http://127.0.0.1",
                             "http://localhost:7070", "null", "file://", "127.0.0.1:7070",
                             "http://127.0.0.1:7070.evil.example", "ftp://127.0.0.1:7070"}) {
    EXPECT_FALSE(may_change("127.0.0.1:7070", origin)) << origin;
  }
  EXPECT_FALSE(may_change("127.0.0.1:7070", "")) << "an empty one is not an absent one";
  EXPECT_FALSE(is_from_own_page(
      request_with("POST", {{"host", "h"}, {"origin", "http://h"}, {"origin", "http://evil"}}), ""))
      << "every one of several counts";
  EXPECT_FALSE(may_change("", "null"));
  EXPECT_FALSE(may_change("", "http://"));
}

TEST(BrowserGuard, TheSiteThatMayUseItMayChangeThings) {
  EXPECT_TRUE(may_change("127.0.0.1:7070", "https://a.example", "https://a.example"));
  EXPECT_FALSE(may_change("127.0.0.1:7070", "https://b.example", "https://a.example"));
  EXPECT_TRUE(may_change("127.0.0.1:7070", "https://b.example", "*"));
}

TEST(BrowserGuard, RequestsThatChangeNothingOrComeFromNoBrowserAreAllowed) {
  const net::HttpHeaders foreign{{"host", "h"}, {"origin", "https://evil.example"}};
  for (const char* method : {"GET", "HEAD", "OPTIONS"}) {
    EXPECT_TRUE(is_from_own_page(request_with(method, foreign), "")) << method;
  }
  for (const char* method : {"POST", "PUT", "PATCH", "DELETE"}) {
    EXPECT_FALSE(is_from_own_page(request_with(method, foreign), "")) << method;
    EXPECT_TRUE(is_from_own_page(request_with(method, {{"host", "h"}}), "")) << method;
  }
}

TEST(BrowserGuard, OnlyAddressesAndOwnNamesAreAnswered) {
  const std::vector<std::string> names{"tasks.example"};
  const auto is_own = [&names](const char* host) {
    return is_own_name(request_with("GET", {{"host", host}}), names);
  };
  for (const char* host :
       {"127.0.0.1", "127.0.0.1:7070", "[::1]:7070", "[::1]", "localhost", "LocalHost:7070",
        "10.0.0.1:80", "tasks.example", "Tasks.Example:443", "detent", "detent:7070"}) {
    EXPECT_TRUE(is_own(host)) << host;
  }
  for (const char* host :
       {"evil.example", "evil.example:7070", "localhost.evil.example", "127.0.0.1.evil.example",
        "x.tasks.example", "tasks.example.", "1.2.3", "[evil]", "["}) {
    EXPECT_FALSE(is_own(host)) << host;
  }
  EXPECT_TRUE(is_own_name(request_with("GET", {}), {}));
}

}  // namespace
}  // namespace detent::server

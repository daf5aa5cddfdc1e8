// The files of the dashboard as a browser gets them. The behaviour of the page is tested in
// tests/browser.
#include <gtest/gtest.h>

#include <string>

#include "server/routes/dashboard_files.h"
#include "server/testing/routes_fixture.h"

namespace detent::server {
namespace {

using net::HttpResponse;

class RoutesDashboardTest : public RoutesTest {
 protected:
  HttpResponse get(const std::string& target, net::HttpHeaders headers = {}) {
    return client_
        ->send({.method = "GET", .target = target, .headers = std::move(headers), .body = ""})
        .value();
  }
};

TEST_F(RoutesDashboardTest, ThePageIsAtTheRoot) {
  const HttpResponse page = get("/");
  EXPECT_EQ(page.status, 200);
  EXPECT_EQ(page.content_type, "text/html; charset=utf-8");
  EXPECT_TRUE(page.body.starts_with("<!doctype html>"));
  EXPECT_EQ(page.body, find_dashboard_file("index.html")->plain);
  EXPECT_EQ(page.header("content-encoding"), "");
}

TEST_F(RoutesDashboardTest, EveryAnswerForbidsWhatThePageDoesNotNeed) {
  for (const char* target : {"/", "/assets/app.js", "/assets/style.css", "/assets/uplot.js"}) {
    const HttpResponse answer = get(target);
    EXPECT_EQ(answer.status, 200) << target;
    const std::string policy(answer.header("content-security-policy"));
    EXPECT_TRUE(policy.starts_with("default-src 'none'; script-src 'self'; ")) << policy;
    EXPECT_EQ(policy.find("unsafe"), std::string::npos) << policy;
    EXPECT_NE(policy.find("frame-ancestors 'none'"), std::string::npos) << policy;
    EXPECT_EQ(answer.header("x-content-type-options"), "nosniff");
    EXPECT_EQ(answer.header("referrer-policy"), "no-referrer");
    EXPECT_EQ(answer.header("cross-origin-opener-policy"), "same-origin");
    EXPECT_EQ(answer.header("cache-control"), "no-cache");
  }
}

TEST_F(RoutesDashboardTest, AClientThatAcceptsGzipGetsIt) {
  const HttpResponse packed = get("/assets/app.js", {{"accept-encoding", "br, gzip;q=0.8"}});
  EXPECT_EQ(packed.header("content-encoding"), "gzip");
  EXPECT_EQ(packed.body, find_dashboard_file("app.js")->gzip);
  EXPECT_TRUE(packed.body.starts_with("\x1F\x8B"));
  EXPECT_EQ(packed.header("vary"), "accept-encoding");
  for (const char* accepted : {"", "br", "gzip;q=0", "gzip; q=0.000, br"}) {
    const HttpResponse plain = get("/assets/app.js", {{"accept-encoding", accepted}});
    EXPECT_EQ(plain.header("content-encoding"), "") << accepted;
    EXPECT_EQ(plain.body, find_dashboard_file("app.js")->plain) << accepted;
  }
}

TEST_F(RoutesDashboardTest, ABrowserThatHasTheFileGets304) {
  for (const char* coding : {"gzip", "identity"}) {
    const HttpResponse first = get("/assets/app.js", {{"accept-encoding", coding}});
    const std::string etag(first.header("etag"));
    ASSERT_NE(etag, "");
    const HttpResponse second =
        get("/assets/app.js", {{"accept-encoding", coding}, {"if-none-match", etag}});
    EXPECT_EQ(second.status, 304);
    EXPECT_EQ(second.body, "");
    EXPECT_EQ(second.header("etag"), etag);
    EXPECT_EQ(
        get("/assets/app.js", {{"accept-encoding", coding}, {"if-none-match", "\"x\""}}).status,
        200);
  }
  EXPECT_NE(get("/", {{"accept-encoding", "gzip"}}).header("etag"), get("/").header("etag"));
}

TEST_F(RoutesDashboardTest, AnUnknownFileIsNotFound) {
  for (const char* target : {"/assets/none.js", "/assets/..%2Fmain.cc", "/assets/app.js%00"}) {
    expect_problem(get(target), 404, {"the dashboard has no file"});
  }
  EXPECT_EQ(find_dashboard_file(""), nullptr);
  EXPECT_EQ(send("POST", "/").status, 405);
}

}  // namespace
}  // namespace detent::server

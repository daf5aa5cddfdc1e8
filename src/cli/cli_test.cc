// Tests the whole command line over a real connection to a scripted server.
#include "cli/cli.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "base/mutex.h"
#include "net/http_server/http_server.h"  // tidy-ok(layering): the test plays the server

namespace detent::cli {
namespace {

/// Gives the same answer to each request, and keeps the requests.
class FakeServer {
 public:
  explicit FakeServer(net::HttpResponse answer) : answer_(std::move(answer)) {
    auto server = net::HttpServer::start(
        {},
        [this](net::HttpRequest request, const net::Responder& responder) {
          {
            const MutexLock lock(mu_);
            asked_.push_back(std::move(request));
          }
          responder.send(answer_);
        },
        [](int status, std::string_view) { return net::HttpResponse{.status = status}; });
    if (!server) {
      ADD_FAILURE() << server.error().message;
      return;
    }
    server_ = *std::move(server);
  }

  std::string url() const { return "http://127.0.0.1:" + std::to_string(server_->port()); }
  std::vector<net::HttpRequest> asked() const {
    const MutexLock lock(mu_);
    return asked_;
  }

 private:
  const net::HttpResponse answer_;
  mutable Mutex mu_;
  std::vector<net::HttpRequest> asked_ DETENT_GUARDED_BY(mu_);
  std::unique_ptr<net::HttpServer> server_;  // last: its thread uses the others
};

struct Ended {
  int exit_code = 0;
  std::string out;
  std::string err;
};

Ended run_program(std::vector<std::string> words, const LocalCommands& local = {}) {
  words.insert(words.begin(), "detent");
  std::vector<const char*> argv;
  for (const std::string& word : words) argv.push_back(word.c_str());
  std::istringstream in;
  std::ostringstream out;
  std::ostringstream err;
  const int exit_code = run(static_cast<int>(argv.size()), argv.data(), {in, out, err}, local);
  return {exit_code, out.str(), err.str()};
}

TEST(Cli, AsksTheServerAndShowsItsAnswer) {
  const FakeServer server(
      {.status = 201, .body = R"({"id":"256","queue":"q","state":"scheduled","due_at":0})"});
  const Ended ended = run_program({"put", "q", "[1, 2]", "--server", server.url()});
  EXPECT_EQ(ended.exit_code, 0) << ended.err;
  EXPECT_EQ(ended.out, "256  scheduled  1970-01-01T00:00:00.000Z\n");
  const auto asked = server.asked();
  ASSERT_EQ(asked.size(), 1U);
  EXPECT_EQ(asked[0].method, "POST");
  EXPECT_EQ(asked[0].target, "/v1/tasks");
  EXPECT_EQ(asked[0].body, R"({"queue":"q","payload":[1, 2]})");
}

TEST(Cli, WaitsForATaskOverAConnectionOfItsOwn) {
  const FakeServer server({.body = R"({"tasks":[]})"});
  const Ended ended =
      run_program({"lease", "a/b", "--wait", "20s", "--server", server.url(), "--json"});
  EXPECT_EQ(ended.exit_code, 0) << ended.err;
  EXPECT_EQ(ended.out, "{\"tasks\":[]}\n");
  ASSERT_EQ(server.asked().size(), 1U);
  EXPECT_EQ(server.asked()[0].target, "/v1/queues/a%2Fb/lease");
}

TEST(Cli, NotFoundAndFailureHaveDifferentExitCodes) {
  const FakeServer missing(
      {.status = 404, .body = R"({"type":"urn:detent:error:not_found","detail":"no task 256"})"});
  const Ended not_found = run_program({"get", "256", "--server", missing.url()});
  EXPECT_EQ(not_found.exit_code, 3);
  EXPECT_EQ(not_found.out, "");
  EXPECT_EQ(not_found.err, "detent: no task 256\n");

  const FakeServer starting({.status = 503, .body = "starting"});
  EXPECT_EQ(run_program({"stats", "--server", starting.url()}).exit_code, 1);
}

TEST(Cli, HttpsToAServerWithPlainHttpIsExplained) {
  const FakeServer server({.body = "{}"});
  const std::string address = server.url().substr(std::string("http://").size());
  const Ended ended = run_program({"stats", "--server", "https://" + address});
  EXPECT_EQ(ended.exit_code, 1);
  EXPECT_EQ(ended.err,
            "detent: connect to " + address + ": server speaks plain HTTP; use http://\n");
}

TEST(Cli, WrongUsageIsReportedOnStandardErrorOnly) {
  const Ended ended = run_program({"put"});
  EXPECT_EQ(ended.exit_code, 2);
  EXPECT_EQ(ended.out, "");
  EXPECT_NE(ended.err, "");
  EXPECT_EQ(run_program({"stats", "--server", "ftp://127.0.0.1"}).exit_code, 2);
}

TEST(Cli, HelpGoesToStandardOutput) {
  const Ended ended = run_program({"--help"});
  EXPECT_EQ(ended.exit_code, 0);
  EXPECT_EQ(ended.err, "");
  EXPECT_NE(ended.out.find("Examples:"), std::string::npos);
}

TEST(Cli, ExplainsACronExpressionWithoutAServer) {
  const Ended ended = run_program({"cron", "next", "* * * * *", "--count", "3"});
  EXPECT_EQ(ended.exit_code, 0) << ended.err;
  EXPECT_EQ(std::count(ended.out.begin(), ended.out.end(), '\n'), 3);
  EXPECT_EQ(run_program({"cron", "explain", "* * *"}).exit_code, 2);
}

TEST(Cli, ServeReturnsWhatTheServerReturned) {
  ServeOptions seen;
  const auto serve = [&seen](const ServeCall& call, const ReadAgain& read_again) {
    seen = call.options;
    EXPECT_EQ(read_again().value().options, seen);
    return 7;
  };
  const Ended ended = run_program({"serve", "--data", "d"}, {.serve = serve, .check = {}});
  EXPECT_EQ(ended.exit_code, 7);
  EXPECT_EQ(seen.data, "d");
}

TEST(Cli, CheckReturnsWhatTheCheckReturned) {
  CheckOptions seen;
  const auto check = [&seen](const CheckOptions& options) {
    seen = options;
    return 1;
  };
  const Ended ended = run_program({"check", "--data", "d"}, {.serve = {}, .check = check});
  EXPECT_EQ(ended.exit_code, 1);
  EXPECT_EQ(seen.data, "d");
}

}  // namespace
}  // namespace detent::cli

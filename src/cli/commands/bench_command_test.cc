// Tests `detent bench` with connections that answer like a small server.
#include "cli/commands/bench_command.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <memory>
#include <sstream>
#include <string>
#include <utility>

#include "base/mutex.h"
#include "tests/support/scripted_http.h"

namespace detent::cli {
namespace {

std::size_t count_in(const std::string& text, std::string_view what) {
  std::size_t count = 0;
  for (std::size_t at = 0; (at = text.find(what, at)) != std::string::npos; at += what.size()) {
    ++count;
  }
  return count;
}

std::string list_of(const char* name, std::size_t count, const std::string& element) {
  std::string text = std::string("{\"") + name + "\":[";
  for (std::size_t i = 0; i < count; ++i) text += (i == 0 ? "" : ",") + element;
  return text + "]}";
}

/// A server with one queue. It keeps only numbers of tasks. Thread-safe.
class SmallServer {
 public:
  explicit SmallServer(bool hands_out = true) : hands_out_(hands_out) {}

  Result<net::HttpResponse> answer(const net::HttpRequest& request) {
    const MutexLock lock(mu_);
    if (request.method == "DELETE") removed_ = true;
    if (request.target == "/v1/queues/bench") return queue();
    if (request.target == "/v1/tasks/batch") {
      const std::size_t count = count_in(request.body, "\"queue\"");
      ready_ += count;
      put_ += count;
      return ok_with(
          list_of("results", count, R"({"id":"256","queue":"bench","state":"ready","due_at":0})"));
    }
    if (request.target == "/v1/queues/bench/lease") {
      const std::size_t count = hands_out_ ? std::min<std::size_t>(ready_, 10) : 0;
      if (!hands_out_) clock_.advance(std::chrono::milliseconds{500});
      ready_ -= count;
      return ok_with(list_of(
          "tasks", count,
          R"({"id":"256","lease":"1-1","attempt":1,"queue":"bench","payload":1,"priority":1,)"
          R"("due_at":0,"lease_until":0,"lateness_ms":0})"));
    }
    const std::size_t count = count_in(request.body, "1-1");
    completed_ += count;
    return ok_with(list_of("results", count, R"({"status":"done"})"));
  }
  void begin_with(std::size_t tasks) {
    const MutexLock lock(mu_);
    is_there_ = true;
    ready_ = tasks;
  }
  std::size_t put() const {
    const MutexLock lock(mu_);
    return put_;
  }
  std::size_t completed() const {
    const MutexLock lock(mu_);
    return completed_;
  }
  const Clock& clock() const { return clock_; }
  bool removed() const {
    const MutexLock lock(mu_);
    return removed_;
  }

 private:
  static net::HttpResponse ok_with(std::string body) { return {.body = std::move(body)}; }
  net::HttpResponse queue() const DETENT_REQUIRES(mu_) {
    if (!is_there_) {
      return {.status = 404,
              .body = R"({"type":"urn:detent:error:not_found","detail":"no queue"})"};
    }
    return ok_with(R"({"queue":"bench","scheduled":0,"ready":)" + std::to_string(ready_) +
                   R"(,"leased":0,"dead":0,"oldest_ready_age_ms":null,"bytes":0,)"
                   R"("settings":{"paused":false}})");
  }

  const bool hands_out_;
  ManualClock clock_;  // advances when a lease request finds no task
  mutable Mutex mu_;
  bool is_there_ DETENT_GUARDED_BY(mu_) = false;
  bool removed_ DETENT_GUARDED_BY(mu_) = false;
  std::size_t ready_ DETENT_GUARDED_BY(mu_) = 0;
  std::size_t put_ DETENT_GUARDED_BY(mu_) = 0;
  std::size_t completed_ DETENT_GUARDED_BY(mu_) = 0;
};

class ToServer final : public net::HttpClient {
 public:
  explicit ToServer(SmallServer& server) : server_(server) {}
  Result<net::HttpResponse> send(const net::HttpRequest& request) override {
    return server_.answer(request);
  }
  Result<std::vector<net::HttpResponse>> send_all(const std::vector<net::HttpRequest>&) override {
    return Error{ErrorCode::internal, "not scripted", ""};
  }

 private:
  SmallServer& server_;
};

struct Ended {
  ExitCode exit_code;
  std::string out;
  std::string err;
};
Ended bench(SmallServer& server, OutputFormat format = OutputFormat::people) {
  std::istringstream in;
  std::ostringstream out;
  std::ostringstream err;
  const BenchCommand command{.tasks = 105, .batch = 10, .connections = 3, .payload_bytes = 7};
  const auto connect = [&server]() -> Result<Client> {
    return ClientInternals::over(std::make_unique<ToServer>(server),
                                 std::make_unique<ToServer>(server));
  };
  const ExitCode exit_code =
      run_bench(command, format, connect, server.clock(), {in, out, err, {}});
  return {exit_code, out.str(), err.str()};
}

TEST(Bench, PutsAndCompletesAllTasksAndRemovesItsQueue) {
  SmallServer server;
  const Ended ended = bench(server);
  EXPECT_EQ(ended.exit_code, ExitCode::done) << ended.err;
  EXPECT_EQ(server.put(), 105U);
  EXPECT_EQ(server.completed(), 105U);
  EXPECT_TRUE(server.removed()) << "bench must remove the queue that it created";
  EXPECT_EQ(ended.out.rfind("105 tasks of 7 bytes, 10 per call, 3 connections\n", 0), 0U);
  for (const char* verb : {"\nput ", "\nlease ", "\ncomplete "}) {
    EXPECT_NE(ended.out.find(verb), std::string::npos) << ended.out;
  }
  EXPECT_NE(bench(server, OutputFormat::json).out.find(R"("put":{"tasks_per_second":)"),
            std::string::npos);
}

TEST(Bench, AQueueWithTasksIsLeftAlone) {
  SmallServer server;
  server.begin_with(1);
  const Ended ended = bench(server);
  EXPECT_EQ(ended.exit_code, ExitCode::failed);
  EXPECT_NE(ended.err.find("has tasks"), std::string::npos);
  EXPECT_EQ(server.put(), 0U);
  EXPECT_FALSE(server.removed());
}

TEST(Bench, AnEmptyQueueThatExistedBeforeStays) {
  SmallServer server;
  server.begin_with(0);
  EXPECT_EQ(bench(server).exit_code, ExitCode::done);
  EXPECT_FALSE(server.removed());
}

TEST(Bench, FailsIfTheServerHandsOutNoTasks) {
  SmallServer server(false);
  const Ended ended = bench(server);
  EXPECT_EQ(ended.exit_code, ExitCode::failed);
  EXPECT_NE(ended.err.find("handed out no task"), std::string::npos) << ended.err;
}

}  // namespace
}  // namespace detent::cli

// Verbs on far tasks that an external scheduler keeps.
#include <filesystem>
#include <fstream>
#include <utility>

#include "external/far_tasks_rig.h"
#include "external/offload_thread.h"
#include "server/testing/routes_fixture.h"

namespace detent::server {
namespace {

using test::Fault;

class RoutesFar : public RoutesTest {
 public:
  RoutesFar() {
    http_->stop(0ms);
    auto external = std::make_unique<test::FakeExternal>();
    external_ = external.get();
    offload_ =
        std::make_unique<OffloadThread>(*engine_, std::move(external), clock_,
                                        FarTasksOptions{.near = 1h, .far = 2h, .interval = 1min});
    routes_ = std::make_unique<Routes>(*engine_, *events_, clock_,
                                       RoutesOptions{.offload = offload_.get()});
    listen(10s);
  }
  ~RoutesFar() override {
    http_->stop(0ms);
    offload_->stop();
  }

 protected:
  /// Moves time by one interval, at rest before and after.
  void pass_interval() {
    clock_.await_waiters(3);
    clock_.advance(1min);
    clock_.await_waiters(3);
  }
  /// Schedules a task that goes away. Returns its id as text.
  std::string schedule_far() {
    std::string id = schedule(R"({"queue":"q","payload":[1],"delay":"48h"})");
    pass_interval();
    EXPECT_EQ(external_->entries.size(), 1u);
    return id;
  }
  void break_external() {
    clock_.await_waiters(3);
    external_->next_fault = [] { return Fault::before; };
  }
  void mend_external() {
    clock_.await_waiters(3);
    external_->next_fault = [] { return Fault::none; };
  }

  test::FakeExternal* external_ = nullptr;
  std::unique_ptr<OffloadThread> offload_;
};

TEST_F(RoutesFar, GetShowsATaskThatIsAwayAndLeavesItThere) {
  const std::string id = schedule_far();
  const net::HttpResponse found = send("GET", "/v1/tasks/" + id);
  EXPECT_EQ(found.status, 200) << found.body;
  EXPECT_NE(found.body.find(R"("payload":[1])"), std::string::npos) << found.body;
  EXPECT_NE(found.body.find(R"("state":"scheduled")"), std::string::npos) << found.body;
  EXPECT_EQ(offload_->stats().moves.handed_back, 0u);
  EXPECT_EQ(engine_stats().queues.at(0).scheduled, 0u);
}

TEST_F(RoutesFar, CancelOfATaskThatIsAwayIsLikeAnyOther) {
  const std::string id = schedule_far();
  EXPECT_EQ(send("DELETE", "/v1/tasks/" + id).status, 200);
  EXPECT_EQ(send("DELETE", "/v1/tasks/" + id).status, 404);
  EXPECT_EQ(send("GET", "/v1/tasks/" + id).status, 404);
  EXPECT_EQ(engine_stats().counters.cancelled, 1u);
  pass_interval();
  EXPECT_TRUE(external_->entries.empty());
}

TEST_F(RoutesFar, ATaskThatIsAwayIsRunNow) {
  const std::string id = schedule_far();
  EXPECT_EQ(post("/v1/tasks/" + id + "/run", "").status, 200);
  const auto leased = lease("q");
  ASSERT_EQ(leased.size(), 1u);
  EXPECT_EQ(to_string(leased[0].id), id);
}

TEST_F(RoutesFar, AnUnknownPathIs404) {
  EXPECT_EQ(send("GET", "/v1/tasks/25600").status, 404);
  EXPECT_EQ(send("DELETE", "/v1/tasks/25600").status, 404);
  EXPECT_EQ(send("DELETE", "/v1/tasks/none").status, 404);
  EXPECT_EQ(send("DELETE", "/v1/queues/q/keys/k").status, 404);
}

TEST_F(RoutesFar, WhileTheOtherSystemIsDownOnlyWhatMayBeThereIsRefused) {
  const std::string id = schedule_far();
  break_external();
  expect_problem(send("GET", "/v1/tasks/" + id), 503, {id, "external scheduler", "planned fault"});
  expect_problem(send("DELETE", "/v1/tasks/" + id), 503, {id, "external scheduler"});
  const std::string near = schedule(R"({"queue":"q","delay":"1h"})");
  EXPECT_EQ(send("GET", "/v1/tasks/" + near).status, 200);
  EXPECT_EQ(send("DELETE", "/v1/tasks/" + near).status, 200);
  mend_external();
  EXPECT_EQ(send("DELETE", "/v1/tasks/" + id).status, 200) << "the 503 has changed nothing";
}

TEST_F(RoutesFar, ARestoredTaskCountsInsteadOfTheOneThatIsAway) {
  break_external();
  const std::string id = schedule(R"({"queue":"q","delay":"48h"})");
  const std::string dump = send("GET", "/v1/dump").body;
  mend_external();
  pass_interval();
  ASSERT_EQ(external_->entries.size(), 1u);
  break_external();  // it is not handed over again
  EXPECT_NE(post("/v1/restore", dump).body.find(R"("restored":1)"), std::string::npos);
  EXPECT_EQ(send("DELETE", "/v1/tasks/" + id).status, 200);
  mend_external();
  EXPECT_EQ(send("GET", "/v1/tasks/" + id).status, 404);
  pass_interval();
  EXPECT_TRUE(external_->entries.empty());
}

TEST_F(RoutesFar, TheEndOfADumpTellsHowManyAreAway) {
  EXPECT_EQ(send("GET", "/v1/dump").body,
            R"({"end":true,"queues":0,"tasks":0,"schedules":0,"damaged_tasks":0})"
            "\n");
  schedule_far();
  const std::string dump = send("GET", "/v1/dump").body;
  EXPECT_TRUE(dump.ends_with("\"tasks\":0,\"schedules\":0,\"damaged_tasks\":0,\"external\":1}\n"))
      << dump;
  EXPECT_NE(post("/v1/restore", dump).body.find(R"("errors":[])"), std::string::npos);
}

TEST_F(RoutesFar, MetricsTellHowManyAreAway) {
  schedule_far();
  const std::string text = send("GET", "/metrics").body;
  EXPECT_NE(text.find("\ndetent_external_tasks 1\n"), std::string::npos) << text;
}

TEST_F(RoutesFar, StatsTellHowManyAreAway) {
  EXPECT_EQ(engine_stats().away, 0u);
  schedule_far();
  EXPECT_EQ(engine_stats().away, 1u);
}

// As after FLUSHALL in Redis.
TEST_F(RoutesFar, ALossElsewhereIsToldAndWhatMayBeLostIsNo404) {
  const std::string id = schedule_far();
  EXPECT_EQ(send("GET", "/readyz").status, 200);
  clock_.await_waiters(3);
  external_->entries.clear();
  external_->stamped = 0;
  expect_problem(send("GET", "/v1/tasks/" + id), 503, {id, "it has lost changes", "stamp 1"});
  expect_problem(send("DELETE", "/v1/tasks/" + id), 503, {id, "it has lost changes"});
  pass_interval();
  expect_problem(send("GET", "/readyz"), 503, {"it keeps 0 tasks and kept 1"});
  EXPECT_NE(send("GET", "/metrics").body.find("\ndetent_external_lost 1\n"), std::string::npos);
  EXPECT_TRUE(engine_stats().is_away_lost);
  clock_.await_waiters(3);
  external_->stamped = 1;
  pass_interval();
  EXPECT_EQ(send("GET", "/readyz").status, 200);
  EXPECT_EQ(send("GET", "/v1/tasks/" + id).status, 404) << "the loss was accepted";
}

TEST_F(RoutesFar, ABatchFetchesTheTasksThatAreAway) {
  const std::string id = schedule_far();
  const std::string here = schedule(R"({"queue":"q","delay":"1h"})");
  const std::string ids = R"({"ids":["99",")" + id + R"(",")" + here + R"("])";
  const auto moved =
      json::parse_schedule_results(post("/v1/tasks/move", ids + R"(,"delay":"3h"})").body).value();
  EXPECT_EQ(moved.at(0).error().code, ErrorCode::not_found);
  EXPECT_EQ(to_string(moved.at(1)->id), id);
  EXPECT_EQ(to_string(moved.at(2)->id), here);
}

/// Requests with tokens: "dt_a." may do everything with queues a.…, "dt_q" with q.
class RoutesFarAccess : public RoutesFar {
 public:
  ~RoutesFarAccess() override {
    http_->stop(0ms);
    std::filesystem::remove(file_);
  }

 protected:
  RoutesFarAccess() {
    file_ = ::testing::TempDir() + "far_tokens_" + std::to_string(getpid()) + ".toml";
    std::ofstream out(file_);
    for (const char* prefix : {"a.", "q"}) {
      out << "[[token]]\nname = \"" << prefix << "\"\nsha256 = \""
          << to_hex(hash_token(std::string("dt_") + prefix)) << "\"\nscopes = [\"admin:" << prefix
          << "\"]\n";
    }
    out.close();
    access_ = Access::load(file_).value();
    id_ = schedule_far();
    routes_ =
        std::make_unique<Routes>(*engine_, *events_, clock_,
                                 RoutesOptions{.offload = offload_.get(), .access = access_.get()});
  }
  net::HttpResponse as(const std::string& token, const std::string& method,
                       const std::string& target, std::string body = "") {
    return client_
        ->send({.method = method,
                .target = target,
                .headers = {{"authorization", "Bearer dt_" + token}},
                .body = std::move(body)})
        .value();
  }
  std::string file_;
  std::unique_ptr<Access> access_;
  std::string id_;  // of a task of q that is away
};

TEST_F(RoutesFarAccess, ACallerWithoutPermissionSeesAndMovesNothing) {
  const std::string task = "/v1/tasks/" + id_;
  EXPECT_EQ(as("a.", "GET", task).status, 404);
  EXPECT_EQ(as("a.", "DELETE", task).status, 404);
  EXPECT_EQ(as("a.", "PATCH", task, R"({"priority":1})").status, 404);
  EXPECT_EQ(as("a.", "POST", task + "/run").status, 404);
  const std::string ids = R"({"ids":[")" + id_ + R"("])";
  const std::string cancelled = as("a.", "POST", "/v1/tasks/cancel", ids + "}").body;
  EXPECT_NE(cancelled.find("\"status\":404"), std::string::npos) << cancelled;
  const std::string moved = as("a.", "POST", "/v1/tasks/move", ids + R"(,"delay":"1s"})").body;
  EXPECT_NE(moved.find("\"status\":404"), std::string::npos) << moved;
  const std::string queue = as("q", "GET", "/v1/queues/q").body;
  EXPECT_NE(queue.find("\"scheduled\":0,"), std::string::npos) << "it was fetched: " << queue;
  EXPECT_EQ(external_->entries.size(), 1u);
}

TEST_F(RoutesFarAccess, WhoMayHasItAsEver) {
  EXPECT_EQ(as("q", "GET", "/v1/tasks/" + id_).status, 200);
  EXPECT_EQ(as("q", "PATCH", "/v1/tasks/" + id_, R"({"priority":1})").status, 200);
  const std::string ids = R"({"ids":[")" + id_ + R"("]})";
  const std::string cancelled = as("q", "POST", "/v1/tasks/cancel", ids).body;
  EXPECT_NE(cancelled.find("\"state\":\"cancelled\""), std::string::npos) << cancelled;
}

TEST_F(RoutesFar, ABatchSaysWhichTasksCouldNotBeAskedFor) {
  const std::string id = schedule_far();
  const std::string here = schedule(R"({"queue":"q","delay":"1h"})");
  break_external();
  const net::HttpResponse answer =
      post("/v1/tasks/cancel", R"({"ids":[")" + id + R"(",")" + here + R"("]})");
  EXPECT_EQ(answer.status, 200);
  EXPECT_NE(answer.body.find("\"status\":503"), std::string::npos) << answer.body;
  EXPECT_NE(answer.body.find(R"({"id":")" + here + R"(","state":"cancelled"})"), std::string::npos);
}

}  // namespace
}  // namespace detent::server

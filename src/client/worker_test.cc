// Tests the worker's threads with a server in this process that hands out tasks and records the
// reports. tests/clients uses the real server.
#include "detent/worker.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/mutex.h"
#include "base/thread.h"
#include "net/testing/http_server_fixture.h"
#include "protocol/json/answer_codec.h"
#include "protocol/json/request_codec.h"

namespace detent {
namespace {

using namespace std::chrono_literals;  // NOLINT(google-build-using-namespace): literals only

constexpr std::string_view kLeases = "/v1/leases/";

/// Hands out the tasks 1, 2, … up to a number. Each lease is named after its task. Thread-safe.
class TaskServer {
 public:
  /// The outcome of the call number `times` with this verb for the lease of a task.
  using OutcomeOf =
      std::function<Result<LeaseOutcome>(std::string_view verb, std::uint64_t task, int times)>;

  explicit TaskServer(std::uint64_t count, OutcomeOf outcome_of = {})
      : count_(count), outcome_of_(std::move(outcome_of)) {}

  std::string url() const { return "http://127.0.0.1:" + std::to_string(server_->port()); }
  std::uint64_t ended() const { return completed + failed + released; }
  int asked(const std::string& verb, std::uint64_t task) {
    const MutexLock lock(mu_);
    return asked_[{verb, task}];
  }

  // The server's thread writes these sums and flags, and the test reads them. Relaxed order would
  // be enough.
  std::atomic<std::uint64_t> completed = 0;
  std::atomic<std::uint64_t> failed = 0;
  std::atomic<std::uint64_t> final_failures = 0;
  std::atomic<std::uint64_t> released = 0;
  std::atomic<bool> has_lost_all = false;       // leases are in conflict
  std::atomic<bool> is_asked_for_more = false;  // after the last task

 private:
  void answer(const net::HttpRequest& request, const net::Responder& responder) {
    if (request.target == "/v1/queues/q/lease") return lease(request, responder);
    const std::string verb = request.target.substr(kLeases.size());
    std::vector<Result<LeaseOutcome>> outcomes;
    for (const auto& lease : leases_in(verb, request.body)) {
      outcomes.push_back(outcome_of(verb, lease->number));
    }
    if (verb == "complete") completed += outcomes.size();
    if (verb == "fail") failed += outcomes.size();
    if (verb == "fail" && json::parse_fail(request.body)->final) final_failures += outcomes.size();
    if (verb == "release") released += outcomes.size();
    // Like a cluster: if all elements failed with the same error, the whole call fails.
    const bool are_away = std::ranges::all_of(outcomes, [](const auto& outcome) {
      return !outcome && outcome.error().code == ErrorCode::unavailable;
    });
    if (are_away) return responder.send({.status = 503});
    responder.send({.body = json::render_lease_results(outcomes)});
  }

  static json::LeaseList leases_in(std::string_view verb, std::string_view body) {
    if (verb == "complete") return *json::parse_complete(body);
    if (verb == "fail") return json::parse_fail(body)->leases;
    return verb == "extend" ? json::parse_extend(body)->leases : json::parse_release(body)->leases;
  }

  Result<LeaseOutcome> outcome_of(const std::string& verb, std::uint64_t task) {
    const MutexLock lock(mu_);
    const int times = ++asked_[{verb, task}];
    if (outcome_of_) return outcome_of_(verb, task, times);
    return has_lost_all ? LeaseOutcome::conflict : LeaseOutcome::done;
  }

  void lease(const net::HttpRequest& request, const net::Responder& responder) {
    const std::size_t max = json::parse_lease("q", request.body)->lease.max;
    std::vector<LeasedTask> tasks;
    while (next_ <= count_ && tasks.size() < max) {
      LeasedTask leased;
      leased.task.id = TaskId{next_};
      leased.task.queue = "q";
      leased.lease = {.epoch = 1, .number = next_++};
      tasks.push_back(leased);
    }
    if (tasks.empty()) {
      is_asked_for_more = true;
      responder.on_gone([] {});
      return held_.push_back(responder);  // a long poll that stays open as long as the client
    }
    responder.send({.body = json::render_leased_tasks(tasks)});
  }

  const std::uint64_t count_;
  const OutcomeOf outcome_of_;
  Mutex mu_;
  std::map<std::pair<std::string, std::uint64_t>, int> asked_ DETENT_GUARDED_BY(mu_);
  std::uint64_t next_ = 1;            // next_ and held_: used only by the server's thread
  std::vector<net::Responder> held_;  // unanswered polls
  std::unique_ptr<net::HttpServer> server_ =
      net::start_server([this](const net::HttpRequest& request, const net::Responder& responder) {
        answer(request, responder);
      });
};

const Error kShardAway{ErrorCode::unavailable, "shard 3 is away", ""};

class WorkerTest : public testing::Test {
 protected:
  /// Waits until `is_so` returns true.
  template <class F>
  void until(F is_so) {
    while (!is_so()) (void)clock_.wait(bell_, clock_.now() + 1ms);
  }

  SystemClock clock_;
  Doorbell bell_;
};

TEST_F(WorkerTest, ReportsEachOfManyTasksOnce) {
  TaskServer server(400);
  Client client = Client::create(server.url()).value();
  std::atomic<std::uint64_t> runs = 0;  // a sum
  const auto handle = [&](const WorkTask& task) -> WorkResult {
    ++runs;
    if (task.task.id % 4 == 0) return Retry{.error = "no", .delay = 1s};
    return Done{};
  };
  Worker worker(client, "q", handle, {.concurrency = 4, .prefetch = 8, .visibility_timeout = 3ms});
  worker.start();
  until([&] { return server.ended() == 400; });
  worker.stop();
  EXPECT_EQ(runs, 400U);
  EXPECT_EQ(server.completed, 300U);
  EXPECT_EQ(server.failed, 100U);
  EXPECT_EQ(server.released, 0U);
}

TEST_F(WorkerTest, ReportsADeadTaskAsAFinalFailure) {
  TaskServer server(2);
  Client client = Client::create(server.url()).value();
  const auto handle = [](const WorkTask&) -> WorkResult { return Dead{.error = "unknown order"}; };
  Worker worker(client, "q", handle);
  worker.start();
  until([&] { return server.ended() == 2; });
  worker.stop();
  EXPECT_EQ(server.failed, 2U);
  EXPECT_EQ(server.final_failures, 2U);
}

// The test server refuses negative and too long delays, as the real server does.
TEST_F(WorkerTest, ReportsARetryWhateverItsDelay) {
  TaskServer server(3);
  Client client = Client::create(server.url()).value();
  const auto handle = [](const WorkTask& task) -> WorkResult {
    constexpr std::array kDelays{0ms, -5'000ms, std::chrono::milliseconds::max()};
    return Retry{.error = "no", .delay = kDelays.at(task.task.id - 1)};
  };
  Worker worker(client, "q", handle);
  worker.start();
  until([&] { return server.ended() == 3; });
  worker.stop();
  EXPECT_EQ(server.failed, 3U);
}

TEST_F(WorkerTest, ItsDestructorDoesNotWaitForThreadsInAChildProcess) {
  GTEST_FLAG_SET(death_test_style, "fast");
  TaskServer server(1);
  Client client = Client::create(server.url()).value();
  const auto handle = [](const WorkTask&) -> WorkResult { return Done{}; };
  auto worker = std::make_unique<Worker>(client, "q", handle);
  worker->start();
  until([&] { return server.completed == 1; });
  EXPECT_EXIT(
      {
        worker.reset();
        std::_Exit(EXIT_SUCCESS);
      },
      testing::ExitedWithCode(EXIT_SUCCESS), "");
}

TEST_F(WorkerTest, AStopReleasesUnbegunTasksAndReportsTheOthers) {
  TaskServer server(12);
  Client client = Client::create(server.url()).value();
  std::atomic<int> begun = 0;           // a sum
  std::atomic<bool> may_go_on = false;  // a flag
  const auto handle = [&](const WorkTask&) -> WorkResult {
    ++begun;
    Doorbell bell;
    SystemClock clock;
    while (!may_go_on) (void)clock.wait(bell, clock.now() + 1ms);
    return Done{};
  };
  Worker worker(client, "q", handle, {.concurrency = 2, .prefetch = 10});
  worker.start();
  until([&] { return begun == 2; });
  Thread stopping([&] { worker.stop(std::chrono::milliseconds::max()); });
  until([&] { return server.released == 10; });
  may_go_on = true;
  stopping.join();
  EXPECT_EQ(server.completed, 2U);
  EXPECT_EQ(begun, 2);
}

TEST_F(WorkerTest, ALostLeaseAbandonsItsTaskWithoutAReport) {
  TaskServer server(3);
  Client client = Client::create(server.url()).value();
  std::atomic<int> lost = 0;  // a sum
  const auto handle = [&](const WorkTask& task) -> WorkResult {
    server.has_lost_all = true;  // the others may be forgotten before they begin
    Doorbell bell;
    SystemClock clock;
    while (!task.abandoned.stop_requested()) (void)clock.wait(bell, clock.now() + 1ms);
    return Done{};
  };
  const auto on_error = [&](const ClientError& error) {
    if (error.code == ClientError::Code::conflict) ++lost;
  };
  Worker worker(client, "q", handle,
                {.prefetch = 2, .visibility_timeout = 30ms, .on_error = on_error});
  worker.start();
  until([&] { return lost == 3; });
  worker.stop();
  EXPECT_EQ(server.ended(), 0U);
}

/// A worker of a cluster while the shard of some leases is unavailable. Tests its reports and its
/// errors.
class ShardAwayTest : public WorkerTest {
 protected:
  using Code = ClientError::Code;

  WorkerOptions options(std::size_t concurrency = 1) {
    return {.concurrency = concurrency, .on_error = [this](const ClientError& error) {
              const MutexLock lock(mu_);
              errors_.push_back(error);
            }};
  }
  /// This client repeats no calls, so the worker must repeat its reports.
  static Client client_of(const TaskServer& server) {
    return Client::create(server.url(), {.retry_for = 0ms}).value();
  }
  std::vector<ClientError> errors() {
    const MutexLock lock(mu_);
    return errors_;
  }
  void expect_only_unavailable() {
    EXPECT_FALSE(errors().empty());
    for (const ClientError& error : errors()) EXPECT_EQ(error.code, Code::unavailable);
  }

 private:
  Mutex mu_;
  std::vector<ClientError> errors_ DETENT_GUARDED_BY(mu_);
};

TEST_F(ShardAwayTest, AReportIsRepeatedUntilTheShardIsBack) {
  TaskServer server(2, [](auto, std::uint64_t task, int times) -> Result<LeaseOutcome> {
    if (task == 2 && times < 4) return kShardAway;
    return LeaseOutcome::done;
  });
  Client client = client_of(server);
  const auto handle = [](const WorkTask&) -> WorkResult { return Done{}; };
  Worker worker(client, "q", handle, options(2));
  worker.start();
  until([&] { return server.is_asked_for_more && server.asked("complete", 2) == 4; });
  worker.stop();
  EXPECT_EQ(server.asked("complete", 1), 1);
  expect_only_unavailable();
}

TEST_F(ShardAwayTest, ALeaseThatCouldNotBeExtendedIsKept) {
  std::atomic<bool> may_go_on = false;  // a flag
  std::atomic<int> abandoned = 0;       // a sum
  TaskServer server(3, [&](std::string_view verb, auto task, int times) -> Result<LeaseOutcome> {
    if (verb != "extend" || task != 2) return LeaseOutcome::done;
    if (times < 4) return kShardAway;
    may_go_on = true;
    return LeaseOutcome::done;
  });
  Client client = client_of(server);
  const auto handle = [&](const WorkTask& task) -> WorkResult {
    Doorbell bell;
    SystemClock clock;
    while (!may_go_on) (void)clock.wait(bell, clock.now() + 1ms);
    if (task.abandoned.stop_requested()) ++abandoned;
    return Done{};
  };
  WorkerOptions with = options(2);
  with.prefetch = 1;
  with.visibility_timeout = 300ms;
  Worker worker(client, "q", handle, with);
  worker.start();
  until([&] { return server.completed == 3; });
  worker.stop();
  EXPECT_EQ(abandoned, 0);
  for (const std::uint64_t task : {1U, 2U, 3U})
    EXPECT_EQ(server.asked("complete", task), 1) << task;
  expect_only_unavailable();
}

/// While one shard is away, the worker can get leases of other shards. Their extension must not
/// wait for a repeated call.
TEST_F(ShardAwayTest, AnExtensionIsNotRepeatedWithinItsCall) {
  std::atomic<bool> may_go_on = false;  // a flag
  TaskServer server(1, [&](std::string_view verb, auto, int times) -> Result<LeaseOutcome> {
    if (verb != "extend") return LeaseOutcome::done;
    may_go_on = times > 2;
    return kShardAway;
  });
  Client client = Client::create(server.url(), {.retry_for = 5s}).value();
  const auto handle = [&](const WorkTask&) -> WorkResult {
    Doorbell bell;
    SystemClock clock;
    while (!may_go_on) (void)clock.wait(bell, clock.now() + 1ms);
    return Done{};
  };
  WorkerOptions with = options();
  with.visibility_timeout = 50ms;
  Worker worker(client, "q", handle, with);
  worker.start();
  until([&] { return server.is_asked_for_more.load(); });
  const std::size_t told = errors().size();
  worker.stop();
  EXPECT_GE(told, 2U) << "each call of the worker ends";
  expect_only_unavailable();
}

TEST_F(ShardAwayTest, AReportEndsWhenTheLeaseHasExpired) {
  TaskServer server(1, [](auto, auto, auto) -> Result<LeaseOutcome> { return kShardAway; });
  Client client = client_of(server);
  WorkerOptions with = options();
  with.visibility_timeout = 50ms;
  const auto handle = [](const WorkTask&) -> WorkResult { return Retry{.error = "no"}; };
  Worker worker(client, "q", handle, with);
  worker.start();
  until([&] { return server.is_asked_for_more.load(); });
  worker.stop();
  EXPECT_GE(server.failed, 1U);
  expect_only_unavailable();
}

TEST_F(ShardAwayTest, AStopEndsReportsAfterItsGrace) {
  TaskServer server(1, [](std::string_view verb, auto, auto) -> Result<LeaseOutcome> {
    if (verb == "complete") return kShardAway;
    return LeaseOutcome::done;
  });
  Client client = client_of(server);
  const auto handle = [](const WorkTask&) -> WorkResult { return Done{}; };
  Worker worker(client, "q", handle, options());
  worker.start();
  until([&] { return server.completed > 0; });
  worker.stop(0ms);
  expect_only_unavailable();
}

TEST_F(ShardAwayTest, AConflictAfterAnUnknownOutcomeSaysSo) {
  TaskServer server(1, [](auto, auto, int times) -> Result<LeaseOutcome> {
    if (times == 1) return kShardAway;
    return LeaseOutcome::conflict;
  });
  Client client = client_of(server);
  const auto handle = [](const WorkTask&) -> WorkResult { return Done{}; };
  Worker worker(client, "q", handle, options());
  worker.start();
  until([&] { return server.is_asked_for_more.load(); });
  worker.stop();
  EXPECT_NE(errors().back().message.find("or an earlier report was carried out"),
            std::string::npos);
}

}  // namespace
}  // namespace detent

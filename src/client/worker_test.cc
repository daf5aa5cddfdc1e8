// The worker's threads against a server in this process that hands out tasks and notes what it is
// told. The real server is in tests/clients.
#include "detent/worker.h"

#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/thread.h"
#include "net/http_server_fixture.h"
#include "protocol/json/answer_renderer.h"
#include "protocol/json/request_parser.h"

namespace detent {
namespace {

using namespace std::chrono_literals;  // NOLINT(google-build-using-namespace): literals only

constexpr std::string_view kLeases = "/v1/leases/";

/// Tasks 1, 2, … up to a number; a lease is named after its task. Thread-safe.
class TaskServer {
 public:
  explicit TaskServer(std::uint64_t count) : count_(count) {}

  std::string url() const { return "http://127.0.0.1:" + std::to_string(server_->port()); }
  std::uint64_t ended() const { return completed + failed + released; }

  // Written on the server's thread, read by the test: sums, so relaxed would do.
  std::atomic<std::uint64_t> completed = 0;
  std::atomic<std::uint64_t> failed = 0;
  std::atomic<std::uint64_t> released = 0;
  std::atomic<std::uint64_t> extended = 0;
  std::atomic<bool> has_lost_all = false;  // leases are in conflict

 private:
  void answer(const net::HttpRequest& request, const net::Responder& responder) {
    if (request.target == "/v1/queues/q/lease") return lease(request, responder);
    const std::string_view verb = std::string_view(request.target).substr(kLeases.size());
    std::size_t count = 0;
    if (verb == "complete") completed += count = json::parse_complete(request.body)->size();
    if (verb == "fail") failed += count = json::parse_fail(request.body)->leases.size();
    if (verb == "release") released += count = json::parse_release(request.body)->leases.size();
    if (verb == "extend") extended += count = json::parse_extend(request.body)->leases.size();
    const LeaseOutcome outcome = has_lost_all ? LeaseOutcome::conflict : LeaseOutcome::done;
    const std::vector<Result<LeaseOutcome>> outcomes(count, outcome);
    responder.send({.body = json::render_lease_results(outcomes)});
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
      responder.on_gone([] {});
      return held_.push_back(responder);  // a long poll, for as long as the client is there
    }
    responder.send({.body = json::render_leased_tasks(tasks)});
  }

  const std::uint64_t count_;
  std::uint64_t next_ = 1;            // the server's thread only, as the next
  std::vector<net::Responder> held_;  // unanswered
  std::unique_ptr<net::HttpServer> server_ =
      net::start_server([this](const net::HttpRequest& request, const net::Responder& responder) {
        answer(request, responder);
      });
};

class WorkerTest : public testing::Test {
 protected:
  /// Asks again until it is so.
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

// The server here, as the real one, reads no delay that is negative or longer than it may be.
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

TEST_F(WorkerTest, AStopReleasesWhatIsNotBegunAndReportsTheRest) {
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
  Thread stopping([&] { worker.stop(); });
  until([&] { return server.released == 10; });
  may_go_on = true;
  stopping.join();
  EXPECT_EQ(server.completed, 2U);
  EXPECT_EQ(begun, 2);
}

TEST_F(WorkerTest, ALostLeaseAbandonsItsTaskAndNothingIsReported) {
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

}  // namespace
}  // namespace detent

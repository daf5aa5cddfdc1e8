// Tests the C++ worker with the real server, which one test kills. The tests check which events
// happened and how often, but never when.
#include <gtest/gtest.h>

#include <latch>
#include <map>
#include <semaphore>
#include <set>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "base/mutex.h"
#include "base/testing/test_folder.h"
#include "base/thread.h"
#include "detent/worker.h"
#include "tests/durability/child_server.h"

namespace detent {
namespace {

using client::NewTask;
using client::TaskState;
using namespace std::chrono_literals;  // NOLINT(google-build-using-namespace): literals only

class WorkerServerTest : public testing::Test {
 protected:
  WorkerServerTest() { EXPECT_TRUE(server_.start()); }

  Client& client() {
    if (!made_) made_ = Client::create(server_.url(), {.retry_for = 60s}).value();
    return *made_;
  }
  std::uint64_t schedule(const std::string& payload,
                         std::optional<std::uint32_t> max_attempts = {}) {
    return client()
        .schedule({.queue = "q", .payload = {.data = payload}, .max_attempts = max_attempts})
        .value()
        .id;
  }
  /// Waits until `is_so` returns true.
  template <class F>
  void until(F is_so) {
    while (!is_so()) (void)clock_.wait(bell_, clock_.now() + 10ms);
  }
  client::Queue queue() { return client().queue("q").value(); }
  std::uint64_t left() {
    const client::Queue now = queue();
    return now.scheduled + now.ready + now.leased + now.dead;
  }
  bool counts(const std::string& counter) {
    return client().stats().value().find(counter) != std::string::npos;
  }

  TestFolder folder_;
  ChildServer server_{{.program = DETENT_BINARY, .data = folder_ / "data"}};
  SystemClock clock_;
  Doorbell bell_;
  std::optional<Client> made_;
};

TEST_F(WorkerServerTest, ReportsTheResultOfAHandler) {
  schedule("\"good\"");
  const auto bad = schedule("\"bad\"", 1);
  const auto later = schedule("\"later\"");
  const auto handle = [](const WorkTask& task) -> WorkResult {
    if (task.task.payload.data == "\"bad\"") throw std::runtime_error("no \xff route");
    if (task.task.payload.data == "\"later\"") return Retry{.error = "busy", .delay = 1h};
    return Done{};
  };
  Worker worker(client(), "q", handle, {.concurrency = 2, .wait = 1s});
  worker.start();
  until([&] { return client().get(bad).value().state == TaskState::dead; });
  EXPECT_EQ(client().get(bad).value().last_error, "no \xEF\xBF\xBD route");
  until([&] { return client().get(later).value().attempts == 1; });
  EXPECT_EQ(client().get(later).value().last_error, "busy");
  until([&] { return counts("\"completed\":1,"); });
}

TEST_F(WorkerServerTest, AHandlerLongerThanTheVisibilityTimeoutKeepsItsTask) {
  for (const char* const payload : {"0", "1", "2"}) schedule(payload);
  std::vector<std::string> runs;
  const auto handle = [&](const WorkTask& task) -> WorkResult {
    runs.push_back(task.task.payload.data);
    if (runs.size() == 1) {
      const MonotonicTime end = clock_.now() + 4500ms;
      until([&] { return clock_.now() >= end; });
    }
    return Done{};
  };
  Worker worker(client(), "q", handle, {.prefetch = 2, .visibility_timeout = 3s, .wait = 1s});
  worker.start();
  until([&] { return counts("\"completed\":3,"); });
  EXPECT_EQ(runs, (std::vector<std::string>{"0", "1", "2"}));
  EXPECT_TRUE(counts("\"leases_expired\":0,\"conflicts\":0,"));
}

TEST_F(WorkerServerTest, AStopReleasesUnbegunTasksAndWaitsForTheOthers) {
  std::vector<NewTask> tasks(10, NewTask{.queue = "q"});
  (void)client().schedule_many(tasks).value();
  std::latch begun(2);
  std::latch go_on(1);
  Mutex mu;
  std::set<std::uint64_t> done;
  std::vector<std::uint32_t> attempts;
  const auto wait_and_do = [&](const WorkTask& task) -> WorkResult {
    begun.count_down();
    go_on.wait();
    const MutexLock lock(mu);
    done.insert(task.task.id);
    return Done{};
  };
  const auto take = [&](const WorkTask& task) -> WorkResult {
    const MutexLock lock(mu);
    done.insert(task.task.id);
    attempts.push_back(task.task.attempt);
    return Done{};
  };
  const auto taken = [&] {
    const MutexLock lock(mu);
    return attempts.size();
  };
  Worker first(client(), "q", wait_and_do, {.concurrency = 2, .prefetch = 8, .wait = 1s});
  first.start();
  begun.wait();
  until([&] { return queue().leased == 10; });
  Thread stopping([&] { first.stop(); });
  until([&] { return queue().ready == 8; });
  Worker second(client(), "q", take, {.concurrency = 4, .wait = 1s});
  second.start();
  until([&] { return taken() == 8; });
  go_on.count_down();
  stopping.join();
  until([&] { return left() == 0; });
  second.stop();
  EXPECT_EQ(done.size(), 10U);
  EXPECT_EQ(attempts, std::vector<std::uint32_t>(8, 1));
}

TEST_F(WorkerServerTest, AHandlerThatOutlivesTheGraceIsAbandonedAndItsTaskReleased) {
  schedule("1");
  std::latch began(1);
  const auto handle = [&](const WorkTask& task) -> WorkResult {
    began.count_down();
    until([&] { return task.abandoned.stop_requested(); });
    return Done{};  // this result is not reported
  };
  Worker worker(client(), "q", handle, {.wait = 1s});
  worker.start();
  began.wait();
  worker.stop(0ms);
  const auto leased = client().lease("q", {.wait = 5s}).value();
  ASSERT_EQ(leased.size(), 1U);
  EXPECT_EQ(leased[0].attempt, 1U);
}

TEST_F(WorkerServerTest, AnIdleWorkerStopsImmediatelyAndHoldsNoTask) {
  Worker worker(client(), "q", [](const WorkTask&) { return Done{}; }, {.wait = 60s});
  worker.start();
  until([&] { return counts("\"waiting_workers\":1,"); });
  worker.stop();
  until([&] { return counts("\"waiting_workers\":0,"); });
  schedule("1");
  EXPECT_EQ(client().lease("q").value().size(), 1U);
}

TEST_F(WorkerServerTest, AServerKilledTwiceLosesNothingAndRepeatsOnlyOpenLeases) {
  constexpr std::size_t kCount = 600;
  constexpr std::size_t kConcurrency = 4;
  constexpr std::size_t kPrefetch = 8;
  std::vector<NewTask> tasks;
  for (std::size_t n = 0; n < kCount; ++n) {
    tasks.push_back({.queue = "q", .key = std::to_string(n)});
  }
  (void)client().schedule_many(tasks).value();
  Mutex mu;
  std::map<std::string, int> runs;
  const auto handle = [&](const WorkTask& task) -> WorkResult {
    const MutexLock lock(mu);
    ++runs[task.task.key];
    return Done{};
  };
  const auto seen = [&] {
    const MutexLock lock(mu);
    return runs.size();
  };
  Worker worker(client(), "q", handle,
                {.concurrency = kConcurrency, .prefetch = kPrefetch, .visibility_timeout = 60s});
  worker.start();
  constexpr std::size_t kKills = 2;
  for (std::size_t kill = 1; kill <= kKills; ++kill) {
    until([&] { return seen() >= kill * kCount / 3; });
    server_.kill();
    ASSERT_TRUE(server_.start());
  }
  until([&] { return left() == 0; });
  worker.stop();
  EXPECT_EQ(runs.size(), kCount);
  std::size_t all = 0;
  for (const auto& [key, times] : runs) all += static_cast<std::size_t>(times);
  EXPECT_LE(all - kCount, kKills * (kConcurrency + kPrefetch));
}

}  // namespace
}  // namespace detent

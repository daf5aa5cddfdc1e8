// Tests graceful stops under load. Producers and workers use HTTP while the server is stopped and
// started again several times. In the end each acknowledged task is completed, and no task is
// handed out forever.
#include <gtest/gtest.h>

#include <atomic>
#include <map>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "base/mutex.h"
#include "base/testing/test_folder.h"
#include "tests/durability/child_server.h"
#include "tests/support/client_of.h"

namespace detent {
namespace {

using namespace std::chrono_literals;  // NOLINT(google-build-using-namespace): literals only

constexpr int kRounds = 5;
constexpr std::size_t kTasksARound = 100;

/// The acknowledgements that producers and workers received. Thread-safe.
class Told {
 public:
  void accepted(std::uint64_t id) {
    const MutexLock lock(mutex_);
    accepted_.insert(id);
    changed_.notify_all();
  }
  /// Waits until `count` more tasks have been accepted.
  void await_more(std::size_t count) {
    const MutexLock lock(mutex_);
    const std::size_t enough = accepted_.size() + count;
    while (accepted_.size() < enough) changed_.wait(mutex_);
  }
  void completed(std::uint64_t id) {
    const MutexLock lock(mutex_);
    ++completed_[id];
  }
  /// Accepted tasks without an acknowledged completion.
  std::vector<std::uint64_t> open() {
    const MutexLock lock(mutex_);
    std::vector<std::uint64_t> ids;
    for (const std::uint64_t id : accepted_) {
      if (!completed_.contains(id)) ids.push_back(id);
    }
    return ids;
  }
  std::size_t completed_twice() {
    const MutexLock lock(mutex_);
    std::size_t count = 0;
    for (const auto& [id, times] : completed_) count += times > 1 ? 1 : 0;
    return count;
  }

 private:
  Mutex mutex_;
  CondVar changed_;
  std::set<std::uint64_t> accepted_ DETENT_GUARDED_BY(mutex_);
  std::map<std::uint64_t, int> completed_ DETENT_GUARDED_BY(mutex_);
};

/// Counts the starts of the server. A client that finds the server stopped waits for the next
/// start. Thread-safe.
class Starts {
 public:
  int count() {
    const MutexLock lock(mutex_);
    return count_;
  }
  void started() {
    const MutexLock lock(mutex_);
    ++count_;
    changed_.notify_all();
  }
  /// Waits until the server has been started more than `before` times.
  void await_more_than(int before) {
    const MutexLock lock(mutex_);
    while (count_ <= before) changed_.wait(mutex_);
  }

 private:
  Mutex mutex_;
  CondVar changed_;
  int count_ DETENT_GUARDED_BY(mutex_) = 0;
};

class StopAndStart : public ::testing::Test {
 protected:
  /// Calls `step` until `is_over`. If a step fails, waits for the next start of the server.
  template <class Step>
  void repeat(const std::atomic<bool>& is_over, Step step) {
    while (!is_over) {
      const int start = starts_.count();
      Client client = test::client_of(server_.url());
      while (!is_over && step(client)) {
      }
      if (!is_over) starts_.await_more_than(start);
    }
  }
  bool produce(Client& client) {
    const auto task = client.schedule({.queue = "q", .due = 5ms});
    if (task) told_.accepted(task->id);
    return task.has_value();
  }
  /// Returns false if the server does not answer.
  bool lease_and_complete(Client& client, std::chrono::milliseconds wait) {
    const auto tasks = client.lease("q", {.max = 10, .wait = wait, .visibility_timeout = 1s});
    if (!tasks) return false;
    std::vector<std::string> leases;
    for (const auto& task : *tasks) leases.push_back(task.lease);
    if (leases.empty()) return true;
    const auto outcomes = client.complete(leases);
    if (!outcomes) return false;  // the result is unknown: the tasks may be completed
    for (std::size_t i = 0; i < leases.size(); ++i) {
      if ((*outcomes)[i] == client::LeaseStatus::done) told_.completed((*tasks)[i].id);
    }
    return true;
  }

  TestFolder folder_;
  ChildServer server_{{.program = DETENT_BINARY, .data = folder_ / "data"}};
  Starts starts_;
  Told told_;
};

TEST_F(StopAndStart, UnderLoadLosesNothing) {
  ASSERT_TRUE(server_.start());
  std::atomic<bool> is_over = false;  // set once; it orders no other memory
  std::vector<std::thread> threads;
  const auto produces = [this](Client& client) { return produce(client); };
  const auto works = [this](Client& client) { return lease_and_complete(client, 1s); };
  for (int i = 0; i < 2; ++i) {
    threads.emplace_back([&] { repeat(is_over, produces); });
    threads.emplace_back([&] { repeat(is_over, works); });
  }
  for (int round = 0; round < kRounds; ++round) {
    told_.await_more(kTasksARound);
    EXPECT_EQ(server_.stop(), 0);
    EXPECT_TRUE(server_.start());
    starts_.started();
  }
  is_over = true;
  starts_.started();
  for (std::thread& thread : threads) thread.join();

  // Completes the remaining tasks. Tasks of a lost lease answer come back when their lease expires.
  Client client = test::client_of(server_.url());
  const auto left = [&client] {
    const auto queues = client.queues().value();
    return queues.empty() ? 0 : queues[0].scheduled + queues[0].ready + queues[0].leased;
  };
  while (left() > 0) ASSERT_TRUE(lease_and_complete(client, 1s));
  // If the answer to a completion was lost, the task is completed although the worker does not know
  // it. Each worker can lose at most one answer per round.
  EXPECT_LE(told_.open().size(), 2 * 10 * kRounds);
  for (const std::uint64_t id : told_.open()) {
    EXPECT_EQ(client.get(id).error().code, ClientError::Code::not_found);
  }
  EXPECT_EQ(told_.completed_twice(), 0U);
  EXPECT_EQ(server_.stop(), 0);
  EXPECT_EQ(server_.log(), "") << "no warning, no error";
}

}  // namespace
}  // namespace detent

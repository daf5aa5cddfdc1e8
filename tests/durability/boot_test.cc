// Runs a server with many more tasks than its memory holds. In one test it starts after a kill -9
// with overdue tasks, and must not report ready before it can deliver tasks. In another test all
// tasks are ready but no worker takes them, and it must stay within its memory. In both tests each
// task is delivered once in the end.
//
// DETENT_BOOT_TASKS sets the number of tasks (for a soak: 10000000). If it is set, the test also
// checks the time of a start. The test prints the figures.
#include <gtest/gtest.h>
#include <malloc.h>  // tidy-ok(third-party): glibc tells whether a sanitizer is in its place

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/testing/test_folder.h"
#include "detent/clock.h"
#include "engine/window/load_window.h"
#include "server/operate/memory_plan.h"
#include "store/rocksdb/rocksdb_store.h"
#include "task/due_bin.h"
#include "task/limits.h"
#include "tests/durability/child_server.h"
#include "tests/support/client_of.h"

namespace detent {
namespace {

using namespace std::chrono_literals;  // NOLINT(google-build-using-namespace): literals only

constexpr std::size_t kBatch = 5'000;

bool is_soak() { return std::getenv("DETENT_BOOT_TASKS") != nullptr; }
std::size_t tasks_wanted(std::size_t in_brief) {
  const char* text = std::getenv("DETENT_BOOT_TASKS");
  return text != nullptr ? std::strtoull(text, nullptr, 0) : in_brief;
}

/// Tasks with numbers from 0. Some of them are overdue.
struct Backlog {
  std::size_t tasks = 0;
  std::size_t overdue_every = 1;  // one in this many tasks is overdue
  std::size_t accepted_late = 0;  // the last tasks, sent to a running server; all overdue

  bool is_overdue(std::size_t index) const {
    return index % overdue_every == 0 || index >= tasks - accepted_late;
  }
  std::size_t overdue() const {
    std::size_t count = 0;
    for (std::size_t i = 0; i < tasks; ++i) {
      if (is_overdue(i)) ++count;
    }
    return count;
  }
};

/// Returns the task with number `index`. It was due within the last day, or becomes due between one
/// day and 30 days from now.
Task sample_task(const Backlog& backlog, std::size_t index, WallTime now) {
  Task task;
  task.id = TaskId{(index + 1) << TaskId::kShardBits};
  task.queue = "q";
  task.payload.data = std::to_string(index);
  task.created_at = now - 48h;
  // Tasks with neighbouring due times do not have neighbouring ids.
  const auto spread = static_cast<std::int64_t>((index * 2'654'435'761U) % 86'400'000U);
  const std::chrono::milliseconds part{spread};
  task.due_at = backlog.is_overdue(index) ? now - part : now + 24h + part * 29;
  return task;
}

/// A data folder of a server that has accepted the tasks, except the late ones.
class FilledFolder {
 public:
  explicit FilledFolder(const Backlog& backlog) : backlog_(backlog) {
    auto store = RocksDbStore::open({.path = path()}).value();
    const auto now = std::chrono::floor<std::chrono::milliseconds>(SystemClock().wall_now());
    const std::size_t tasks = backlog.tasks - backlog.accepted_late;
    for (std::size_t first = 0; first < tasks; first += kBatch) {
      const std::size_t end = std::min(tasks, first + kBatch);
      EXPECT_TRUE(store->write(batch(first, end, now),
                               end == tasks ? Durability::synced : Durability::buffered));
    }
  }

  std::string path() const { return folder_ / "data"; }

 private:
  WriteBatch batch(std::size_t first, std::size_t end, WallTime now) {
    WriteBatch batch;
    std::map<DueBin, std::int64_t> counts;
    for (std::size_t i = first; i < end; ++i) {
      Task task = sample_task(backlog_, i, now);
      ++counts[due_bin_of(task.due_at, task.created_at)];
      queue_.bytes += task.payload.data.size();
      const Place place{.lane = Lane::due, .at = task.due_at, .id = task.id};
      batch.puts.push_back({.from = {}, .to = {.place = place, .task = std::move(task)}});
    }
    queue_.waiting = end;
    batch.queues.push_back(queue_);
    for (const auto& [bin, count] : counts) batch.due_counts.push_back({bin, count});
    return batch;
  }

  const Backlog& backlog_;
  TestFolder folder_;
  QueueRecord queue_{.queue = "q", .number = 1};
};

double in_mb(std::size_t bytes) { return static_cast<double>(bytes) / (1 << 20); }
double seconds_since(MonotonicTime start) {
  return std::chrono::duration<double>(SystemClock().now() - start).count();
}

constexpr std::size_t kMemory = std::size_t{64} << 20;
constexpr server::MemoryPlan kPlan = server::plan_memory(kMemory);
/// The largest number of ready tasks in memory.
constexpr std::size_t kMostReady = kPlan.max_loaded * kReadyParts / kMemoryParts;
/// The memory of each of RocksDB's two background jobs (open_db.cc), in addition to cache and
/// buffers. A job reads tables and builds a table of 64 MB.
constexpr std::size_t kJobBytes = std::size_t{32} << 20;

ChildServer::Options serving(const std::string& data, const std::string& memory = "64M") {
  return {.program = DETENT_BINARY, .data = data, .flags = {"--memory", memory}};
}

/// Schedules the tasks [first, end), all overdue.
void schedule(Client& client, std::size_t first, std::size_t end) {
  std::vector<client::NewTask> tasks;
  const auto now = std::chrono::floor<std::chrono::milliseconds>(SystemClock().wall_now());
  for (std::size_t i = first; i < end; ++i) {
    tasks.push_back({.queue = "q", .payload = {.data = std::to_string(i)}, .due = now - 1min});
  }
  const auto accepted = client.schedule_many(tasks);
  ASSERT_TRUE(accepted) << accepted.error().message;
  for (const auto& task : *accepted) ASSERT_TRUE(task);
}

/// Leases and completes tasks, and counts the deliveries of each task.
class Worker {
 public:
  Worker(Client& client, std::size_t tasks) : client_(client), times_(tasks) {}

  /// Handles one batch. Returns its number of tasks.
  std::size_t take(std::chrono::milliseconds wait) {
    const auto leased = client_.lease("q", {.max = kMaxLeaseTasks, .wait = wait});
    EXPECT_TRUE(leased) << leased.error().message;
    if (!leased || leased->empty()) return 0;
    std::vector<std::string> leases;
    for (const auto& task : *leased) {
      ++times_.at(std::stoull(task.payload.data));
      leases.push_back(task.lease);
    }
    const auto outcomes = client_.complete(leases);
    EXPECT_TRUE(outcomes) << outcomes.error().message;
    if (!outcomes) return 0;
    for (const auto outcome : *outcomes) EXPECT_EQ(outcome, client::LeaseStatus::done);
    return leased->size();
  }
  /// Works until no task is ready.
  void drain() {
    while (take(500ms) > 0) {
      if (rounds_++ % 8 == 0) look();
    }
  }
  /// Checks that the number of tasks in memory is within the limit.
  void look() {
    const auto stats = test::stats_of(client_);
    ASSERT_TRUE(stats) << stats.error().message;
    most_loaded_ = std::max<std::size_t>(most_loaded_, stats->loaded);
    EXPECT_LE(stats->loaded, kPlan.max_loaded);
  }

  void expect_each_overdue_once(const Backlog& backlog) const {
    std::size_t wrong = 0;
    for (std::size_t i = 0; i < times_.size(); ++i) {
      if (times_[i] != (backlog.is_overdue(i) ? 1 : 0)) ++wrong;
    }
    EXPECT_EQ(wrong, 0u) << "tasks missed, or handed out twice or early";
  }
  std::size_t most_loaded() const noexcept { return most_loaded_; }

 private:
  Client& client_;
  std::vector<std::uint8_t> times_;
  std::size_t rounds_ = 0;
  std::size_t most_loaded_ = 0;
};

/// Returns the most memory that a server may need: the memory of a nearly empty server that answers
/// the same calls, the memory from the flag --memory, and the memory of RocksDB's background jobs.
std::size_t memory_budget() {
  const TestFolder folder;
  ChildServer server(serving(folder / "data"));
  EXPECT_TRUE(server.start());
  Client client = test::client_of(server.url());
  schedule(client, 0, kMaxLeaseTasks);
  Worker(client, kMaxLeaseTasks).drain();
  return server.peak_resident_bytes() + kMemory + 2 * kJobBytes;
}

void expect_within(std::size_t budget, std::size_t peak) {
  const bool is_sanitized = mallinfo2().uordblks == 0;  // sanitizers need more memory
  if (!is_sanitized) {
    EXPECT_LE(in_mb(peak), in_mb(budget));
  }
}

/// Waits until all tasks are ready, and checks the memory during the wait. No worker takes tasks.
void await_all_ready(Client& client, Worker& worker, std::size_t tasks) {
  while (!testing::Test::HasFailure()) {
    const auto stats = test::stats_of(client);
    ASSERT_TRUE(stats) << stats.error().message;
    if (stats->all.ready == tasks) return;
    worker.look();
    ASSERT_TRUE(client.lease("another", {.wait = 100ms}));  // a pause, so that the server can work
  }
}

/// Waits until /readyz reports ready. Returns false if the server ended, or if its output reported
/// ready before /readyz did.
bool becomes_ready(ChildServer& server, Client& client) {
  while (!client.ready()) {
    const Result<bool> has_said = server.await_ready(1ms);
    if (!has_said) return false;
    if (*has_said) return client.ready().has_value();
  }
  return true;
}

/// The longest time of a start. This is five times the target (docs/benchmarks.md), because other
/// programs run on the machine during a soak.
constexpr double kMostStartSeconds = 10;

TEST(Boot, HandsOutAllThatIsOverdueWithinItsMemory) {
  const Backlog backlog{
      .tasks = tasks_wanted(200'000), .overdue_every = 10, .accepted_late = 2'000};
  const FilledFolder folder(backlog);
  ChildServer server(serving(folder.path()));
  ASSERT_TRUE(server.start());
  Client client = test::client_of(server.url());
  schedule(client, backlog.tasks - backlog.accepted_late, backlog.tasks);
  server.kill();

  const MonotonicTime exec = SystemClock().now();
  ASSERT_TRUE(server.spawn());
  ASSERT_TRUE(becomes_ready(server, client)) << server.log();
  const double boot = seconds_since(exec);
  Worker worker(client, backlog.tasks);
  EXPECT_GT(worker.take(0ms), 0u) << "ready, and nothing to hand out";
  if (is_soak()) {
    EXPECT_LE(boot, kMostStartSeconds);
  }
  const std::size_t rss_at_boot = server.resident_bytes();
  const MonotonicTime before_drain = SystemClock().now();
  worker.drain();
  const double drained = seconds_since(before_drain);
  worker.expect_each_overdue_once(backlog);
  const auto after = test::stats_of(client).value().queues.at(0);
  EXPECT_EQ(after.scheduled, backlog.tasks - backlog.overdue());
  EXPECT_EQ(after.ready + after.leased + after.dead, 0u);
  const std::size_t budget = memory_budget();
  const std::size_t peak = server.peak_resident_bytes();
  expect_within(budget, peak);
  std::printf(
      "%zu tasks: ready after %.3f s with %.0f MB; drained in %.1f s, at most %.0f MB of %.0f\n",
      backlog.tasks, boot, in_mb(rss_at_boot), drained, in_mb(peak), in_mb(budget));
}

// This happens if all workers are away for an hour.
TEST(ReadyBacklog, ThatNobodyTakesStaysInItsMemoryAndIsHandedOutInTheEnd) {
  const Backlog backlog{.tasks = tasks_wanted(60'000)};
  const FilledFolder folder(backlog);
  ChildServer server(serving(folder.path()));
  ASSERT_TRUE(server.start());
  Client client = test::client_of(server.url());
  Worker worker(client, backlog.tasks);
  const MonotonicTime begin = SystemClock().now();
  await_all_ready(client, worker, backlog.tasks);
  const double all_ready = seconds_since(begin);
  EXPECT_LE(test::stats_of(client).value().loaded, kMostReady) << "the others are on disk only";
  const MonotonicTime before_drain = SystemClock().now();
  worker.drain();
  const double drained = seconds_since(before_drain);
  worker.expect_each_overdue_once(backlog);
  const auto after = test::stats_of(client).value().all;
  EXPECT_EQ(after.scheduled + after.ready + after.leased + after.dead, 0u);
  const std::size_t budget = memory_budget();
  const std::size_t peak = server.peak_resident_bytes();
  expect_within(budget, peak);
  std::printf(
      "%zu tasks: all ready after %.1f s; drained in %.1f s, at most %zu tasks in memory of %zu, "
      "and %.0f MB of %.0f\n",
      backlog.tasks, all_ready, drained, worker.most_loaded(), kPlan.max_loaded, in_mb(peak),
      in_mb(budget));
}

// The control: a server with a larger --memory.
TEST(ReadyBacklog, OfAServerThatUsesMoreThanItsMemoryIsFound) {
  const Backlog backlog{.tasks = 60'000};
  const FilledFolder folder(backlog);
  ChildServer server(serving(folder.path(), "256M"));
  ASSERT_TRUE(server.start());
  Client client = test::client_of(server.url());
  Worker worker(client, backlog.tasks);
  await_all_ready(client, worker, backlog.tasks);
  EXPECT_GT(test::stats_of(client).value().loaded, kMostReady);
}

}  // namespace
}  // namespace detent

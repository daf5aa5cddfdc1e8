// A server with many more tasks than its memory holds: started after a kill -9 with a part of them
// overdue, it is not ready before it can serve; with all of them ready and nobody who takes them it
// stays in the memory it was given. Either way every task is handed out in the end, once.
//
// DETENT_BOOT_TASKS sets how many tasks (for a soak: 10000000), which also has the time of a start
// asserted. The figures are printed.
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

#include "base/test_folder.h"
#include "client/api_client.h"
#include "detent/clock.h"
#include "engine/load_window.h"
#include "server/memory_plan.h"
#include "store/rocksdb/rocksdb_store.h"
#include "task/due_bin.h"
#include "task/limits.h"
#include "tests/durability/child_server.h"

namespace detent {
namespace {

using namespace std::chrono_literals;  // NOLINT(google-build-using-namespace): literals only

constexpr std::size_t kBatch = 5'000;

bool is_soak() { return std::getenv("DETENT_BOOT_TASKS") != nullptr; }
std::size_t tasks_wanted(std::size_t in_brief) {
  const char* text = std::getenv("DETENT_BOOT_TASKS");
  return text != nullptr ? std::strtoull(text, nullptr, 0) : in_brief;
}

/// Tasks by number, from 0, some of them overdue.
struct Backlog {
  std::size_t tasks = 0;
  std::size_t overdue_every = 1;  // so many tasks one is overdue
  std::size_t accepted_late = 0;  // of the tasks, the last ones; all overdue

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

/// The `index`th task: overdue by up to a day, or due within a month, not before a day.
Task sample_task(const Backlog& backlog, std::size_t index, WallTime now) {
  Task task;
  task.id = TaskId{(index + 1) << TaskId::kShardBits};
  task.queue = "q";
  task.payload.data = std::to_string(index);
  task.created_at = now - 48h;
  // Neighbours in time are no neighbours in the order of ids.
  const auto spread = static_cast<std::int64_t>((index * 2'654'435'761U) % 86'400'000U);
  const std::chrono::milliseconds part{spread};
  task.due_at = backlog.is_overdue(index) ? now - part : now + 24h + part * 29;
  return task;
}

/// A data folder as a server leaves it that has accepted the tasks, but for the late ones.
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
/// Of the tasks in memory as many may be ready, and stay so.
constexpr std::size_t kMostReady = kPlan.max_loaded * kReadyParts / kMemoryParts;
/// What RocksDB takes beside its cache and its buffers, for each of the two jobs it has in the
/// background (open_db.cc): tables that are read and one that is built, 64 MB large.
constexpr std::size_t kJobBytes = std::size_t{32} << 20;

ChildServer::Options serving(const std::string& data, const std::string& memory = "64M") {
  return {.program = DETENT_BINARY, .data = data, .flags = {"--memory", memory}};
}

/// Schedules tasks of these numbers, overdue.
void schedule(ApiClient& client, std::size_t first, std::size_t end) {
  std::vector<ScheduleRequest> requests;
  const auto now = std::chrono::floor<std::chrono::milliseconds>(SystemClock().wall_now());
  for (std::size_t i = first; i < end; ++i) {
    requests.push_back(
        {.queue = "q", .payload = {.data = std::to_string(i)}, .rules = {}, .due = now - 1min});
  }
  const auto accepted = client.schedule_batch(requests);
  ASSERT_TRUE(accepted) << accepted.error().message;
  for (const auto& task : *accepted) ASSERT_TRUE(task);
}

/// Takes and completes tasks, and counts how often each was handed out.
class Worker {
 public:
  Worker(ApiClient& client, std::size_t tasks) : client_(client), times_(tasks) {}

  /// One batch. Returns how many tasks it was.
  std::size_t take(std::chrono::milliseconds wait) {
    const auto leased = client_.lease({.queue = "q", .max = kMaxLeaseTasks}, wait);
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
    for (const auto& outcome : *outcomes) EXPECT_EQ(outcome.value(), LeaseOutcome::done);
    return leased->size();
  }
  /// Until nothing is ready.
  void drain() {
    while (take(500ms) > 0) {
      if (rounds_++ % 8 == 0) look();
    }
  }
  /// Tasks in memory stay within what the server may have.
  void look() {
    const auto stats = client_.stats();
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
  ApiClient& client_;
  std::vector<std::uint8_t> times_;
  std::size_t rounds_ = 0;
  std::size_t most_loaded_ = 0;
};

/// What a server may need at most: what one does that has next to no tasks and answers the same
/// calls, the memory that it was told to use, and what RocksDB works with.
std::size_t memory_budget() {
  const TestFolder folder;
  ChildServer server(serving(folder / "data"));
  EXPECT_TRUE(server.start());
  ApiClient client = ApiClient::create(server.url()).value();
  schedule(client, 0, kMaxLeaseTasks);
  Worker(client, kMaxLeaseTasks).drain();
  return server.peak_resident_bytes() + kMemory + 2 * kJobBytes;
}

void expect_within(std::size_t budget, std::size_t peak) {
  const bool is_sanitized = mallinfo2().uordblks == 0;  // and needs more
  if (!is_sanitized) {
    EXPECT_LE(in_mb(peak), in_mb(budget));
  }
}

/// Waits until all tasks are ready, looking at the memory meanwhile. Nobody takes any.
void await_all_ready(ApiClient& client, Worker& worker, std::size_t tasks) {
  while (!testing::Test::HasFailure()) {
    const auto stats = client.stats();
    ASSERT_TRUE(stats) << stats.error().message;
    if (stats->all.ready == tasks) return;
    worker.look();
    ASSERT_TRUE(client.lease({.queue = "another"}, 100ms));  // lets it work
  }
}

/// Waits until /readyz says so. False: it ended, or told on its output to be ready before.
bool becomes_ready(ChildServer& server, ApiClient& client) {
  while (!client.ready()) {
    const Result<bool> has_said = server.await_ready(1ms);
    if (!has_said) return false;
    if (*has_said) return client.ready().has_value();
  }
  return true;
}

/// A start that takes longer is too long: five times the target (docs/benchmarks.md), because a
/// soak shares the machine.
constexpr double kMostStartSeconds = 10;

TEST(Boot, HandsOutAllThatIsOverdueWithinItsMemory) {
  const Backlog backlog{
      .tasks = tasks_wanted(200'000), .overdue_every = 10, .accepted_late = 2'000};
  const FilledFolder folder(backlog);
  ChildServer server(serving(folder.path()));
  ASSERT_TRUE(server.start());
  ApiClient client = ApiClient::create(server.url()).value();
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
  const auto after = client.stats().value().queues.at(0);
  EXPECT_EQ(after.scheduled, backlog.tasks - backlog.overdue());
  EXPECT_EQ(after.ready + after.leased + after.dead, 0u);
  const std::size_t budget = memory_budget();
  const std::size_t peak = server.peak_resident_bytes();
  expect_within(budget, peak);
  std::printf(
      "%zu tasks: ready after %.3f s with %.0f MB; drained in %.1f s, at most %.0f MB of %.0f\n",
      backlog.tasks, boot, in_mb(rss_at_boot), drained, in_mb(peak), in_mb(budget));
}

// As when all workers are away for an hour.
TEST(ReadyBacklog, ThatNobodyTakesStaysInItsMemoryAndIsHandedOutInTheEnd) {
  const Backlog backlog{.tasks = tasks_wanted(60'000)};
  const FilledFolder folder(backlog);
  ChildServer server(serving(folder.path()));
  ASSERT_TRUE(server.start());
  ApiClient client = ApiClient::create(server.url()).value();
  Worker worker(client, backlog.tasks);
  const MonotonicTime begin = SystemClock().now();
  await_all_ready(client, worker, backlog.tasks);
  const double all_ready = seconds_since(begin);
  EXPECT_LE(client.stats().value().loaded, kMostReady) << "the others are on disk only";
  const MonotonicTime before_drain = SystemClock().now();
  worker.drain();
  const double drained = seconds_since(before_drain);
  worker.expect_each_overdue_once(backlog);
  const auto after = client.stats().value().all;
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

// The control: one that was told to use more.
TEST(ReadyBacklog, OfAServerThatUsesMoreThanItsMemoryIsFound) {
  const Backlog backlog{.tasks = 60'000};
  const FilledFolder folder(backlog);
  ChildServer server(serving(folder.path(), "256M"));
  ASSERT_TRUE(server.start());
  ApiClient client = ApiClient::create(server.url()).value();
  Worker worker(client, backlog.tasks);
  await_all_ready(client, worker, backlog.tasks);
  EXPECT_GT(client.stats().value().loaded, kMostReady);
}

}  // namespace
}  // namespace detent

// A start on a store with many tasks, a tenth of them overdue: memory stays bounded, the server is
// not ready before it can serve, and every task that is overdue is handed out, once.
//
// DETENT_BOOT_TASKS sets how many tasks (for a soak: 10000000). The figures are printed.
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

#include "client/api_client.h"
#include "detent/clock.h"
#include "store/rocksdb/rocksdb_store.h"
#include "store/rocksdb/test_folder.h"
#include "task/due_bin.h"
#include "tests/durability/child_server.h"

namespace detent {
namespace {

using namespace std::chrono_literals;  // NOLINT(google-build-using-namespace): literals only

constexpr std::size_t kBatch = 5'000;
/// Most memory of the process that was told to use 64 MB: its code and its threads come on top.
constexpr double kMostMb = 200;
/// Every so many tasks one is overdue.
constexpr std::size_t kOverdueEvery = 10;

std::size_t tasks_wanted() {
  const char* text = std::getenv("DETENT_BOOT_TASKS");
  return text != nullptr ? std::strtoull(text, nullptr, 0) : 200'000;
}

/// The `index`th task: overdue by up to a day, or due within a month, not before a day.
Task sample_task(std::size_t index, WallTime now) {
  Task task;
  task.id = TaskId{(index + 1) << TaskId::kShardBits};
  task.queue = "q";
  task.payload.data = std::to_string(index);
  task.created_at = now - 48h;
  // Neighbours in time are no neighbours in the order of ids.
  const auto spread = static_cast<std::int64_t>((index * 2'654'435'761U) % 86'400'000U);
  const std::chrono::milliseconds part{spread};
  task.due_at = index % kOverdueEvery == 0 ? now - part : now + 24h + part * 29;
  return task;
}

/// A data folder as a server leaves it that has accepted so many tasks.
class FilledFolder {
 public:
  explicit FilledFolder(std::size_t tasks) {
    auto store = RocksDbStore::open({.path = path()}).value();
    const auto now = std::chrono::floor<std::chrono::milliseconds>(SystemClock().wall_now());
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
      Task task = sample_task(i, now);
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

  TestFolder folder_;
  QueueRecord queue_{.queue = "q", .number = 1};
};

/// Leases and completes until nothing is ready. Returns how often each task was handed out.
std::vector<std::uint8_t> drain(const std::string& url, std::size_t tasks) {
  std::vector<std::uint8_t> times(tasks);
  ApiClient client = ApiClient::create(url).value();
  while (true) {
    const auto leased = client.lease({.queue = "q", .max = 1'000}, 500ms);
    EXPECT_TRUE(leased) << leased.error().message;
    if (!leased || leased->empty()) return times;
    std::vector<std::string> leases;
    for (const auto& task : *leased) {
      ++times.at(std::stoull(task.payload.data));
      leases.push_back(task.lease);
    }
    const auto outcomes = client.complete(leases);
    EXPECT_TRUE(outcomes) << outcomes.error().message;
    if (!outcomes) return times;
    for (const auto& outcome : *outcomes) EXPECT_EQ(outcome.value(), LeaseOutcome::done);
  }
}

double seconds_since(MonotonicTime start) {
  return std::chrono::duration<double>(SystemClock().now() - start).count();
}
double in_mb(std::size_t bytes) { return static_cast<double>(bytes) / (1 << 20); }

void expect_each_overdue_once(const std::vector<std::uint8_t>& times) {
  std::size_t wrong = 0;
  for (std::size_t i = 0; i < times.size(); ++i) {
    const int wanted = i % kOverdueEvery == 0 ? 1 : 0;
    if (times[i] != wanted) ++wrong;
  }
  EXPECT_EQ(wrong, 0u) << "tasks missed, or handed out twice or early";
}

TEST(Boot, HandsOutAllThatIsOverdueWithinItsMemory) {
  const std::size_t tasks = tasks_wanted();
  const MonotonicTime before_fill = SystemClock().now();
  const FilledFolder folder(tasks);
  const double fill = seconds_since(before_fill);

  ChildServer server(
      {.program = DETENT_BINARY, .data = folder.path(), .flags = {"--memory", "64M"}});
  const MonotonicTime exec = SystemClock().now();
  ASSERT_TRUE(server.start());
  ApiClient client = ApiClient::create(server.url()).value();
  ASSERT_TRUE(client.ready());
  const double boot = seconds_since(exec);
  const std::size_t rss_at_boot = server.resident_bytes();
  const auto first = client.stats().value().queues.at(0);
  EXPECT_EQ(first.scheduled + first.ready, tasks);
  EXPECT_GT(first.ready, 0u);

  const MonotonicTime before_drain = SystemClock().now();
  const auto times = drain(server.url(), tasks);
  const double drained = seconds_since(before_drain);
  expect_each_overdue_once(times);
  const auto after = client.stats().value().queues.at(0);
  EXPECT_EQ(after.scheduled, tasks - (tasks + kOverdueEvery - 1) / kOverdueEvery);
  EXPECT_EQ(after.ready + after.leased + after.dead, 0u);
  const std::size_t peak = server.peak_resident_bytes();
  const bool is_sanitized = mallinfo2().uordblks == 0;  // and needs more
  if (!is_sanitized) {
    EXPECT_LT(in_mb(peak), kMostMb);
  }
  std::printf(
      "%zu tasks: filled in %.1f s; ready after %.3f s with %.0f MB; drained in %.1f s, "
      "at most %.0f MB\n",
      tasks, fill, boot, in_mb(rss_at_boot), drained, in_mb(peak));
}

}  // namespace
}  // namespace detent

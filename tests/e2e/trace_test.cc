// Replays years of delays through the engine and a store on disk, with a clock that jumps from
// event to event. Each task must fire in its millisecond, and the load window must bound the
// memory.
//
// DETENT_TRACE names the file of the trace, in the format of examples/orders. Without it, the test
// generates a trace of the same shape: bursts of arrivals over years, and log-uniform delays from a
// second to months.
#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <set>

#include "base/rng.h"
#include "base/test_seed.h"
#include "base/testing/test_folder.h"
#include "engine/engine.h"
#include "examples/orders/order.h"
#include "store/rocksdb/rocksdb_store.h"

namespace detent {
namespace {

using namespace std::chrono_literals;  // NOLINT(google-build-using-namespace): literals only
using std::chrono::milliseconds;

std::vector<orders::Order> made_up_trace(std::uint64_t seed) {
  Rng rng(seed);
  std::vector<orders::Order> trace;
  milliseconds now{0};
  while (trace.size() < 20'000) {
    now += milliseconds{std::int64_t{1'000} * rng.below(60'000)};
    for (std::uint32_t burst = rng.below(12); burst > 0; --burst) {
      const auto delay_s = static_cast<std::int64_t>(std::pow(1e7, rng.unit()));
      trace.push_back({.id = "",
                       .queue = "queue-" + std::to_string(rng.below(30)),
                       .created = now,
                       .pay_by = now + milliseconds{1'000 * delay_s}});
    }
  }
  return trace;
}

std::vector<orders::Order> read_trace(std::uint64_t seed) {
  const char* file = std::getenv("DETENT_TRACE");
  if (file == nullptr) return made_up_trace(seed);
  return orders::read_trace(file, 1.0).value();
}

/// Replays a trace. Its workers complete each task immediately and count the tasks that fire on
/// time.
class Replay {
 public:
  Replay(Store& store, std::vector<orders::Order> trace)
      : trace_(std::move(trace)),
        engine_(Engine::open(store, clock_, {.sync_interval = 1h}).value()) {
    for (const orders::Order& order : trace_) queues_.insert(order.queue);
  }

  void run() {
    for (const std::string& queue : queues_) wait_for_task(queue);
    std::size_t next = 0;
    while (next < trace_.size() || fired_ < trace_.size()) {
      while (next < trace_.size() && start_ + trace_[next].created <= wall_now()) {
        const orders::Order& order = trace_[next++];
        const auto view = engine_->schedule(
            {.queue = order.queue, .payload = {}, .rules = {}, .due = start_ + order.pay_by});
        ASSERT_TRUE(view);
      }
      ASSERT_TRUE(engine_->turn());
      most_loaded_ = std::max(most_loaded_, engine_->stats().loaded);
      std::optional<MonotonicTime> wakeup = engine_->next_wakeup();
      if (next < trace_.size()) {
        const MonotonicTime created = clock_.now() + (start_ + trace_[next].created - wall_now());
        wakeup = std::min(wakeup.value_or(created), created);
      }
      ASSERT_TRUE(wakeup) << "tasks are left and nothing will wake the engine";
      if (*wakeup > clock_.now()) clock_.advance(*wakeup - clock_.now());
    }
    ASSERT_TRUE(engine_->turn());
  }

  std::size_t tasks() const { return trace_.size(); }
  std::size_t fired_at_their_time() const { return fired_ - not_at_their_time_; }
  std::uint64_t most_loaded() const { return most_loaded_; }
  EngineStats stats() const { return engine_->stats(); }

 private:
  WallTime wall_now() const { return std::chrono::floor<milliseconds>(clock_.wall_now()); }

  void wait_for_task(const std::string& queue) {
    engine_->lease_or_wait({.queue = queue, .max = kMaxLeaseTasks}, 24h * 365 * 50,
                           [this, queue](Result<std::vector<LeasedTask>> tasks) {
                             for (const LeasedTask& task : tasks.value()) {
                               ++fired_;
                               if (task.task.due_at != wall_now()) ++not_at_their_time_;
                               EXPECT_EQ(engine_->complete(task.lease).value(), LeaseOutcome::done);
                             }
                             wait_for_task(queue);
                           });
  }

  ManualClock clock_;
  const WallTime start_ = wall_now();
  const std::vector<orders::Order> trace_;
  std::set<std::string> queues_;
  std::unique_ptr<Engine> engine_;
  std::size_t fired_ = 0;
  std::size_t not_at_their_time_ = 0;
  std::uint64_t most_loaded_ = 0;
};

TEST(Trace, YearsOfRealDelaysFireInTheirMillisecondWithMemoryBoundedByTheWindow) {
  const std::uint64_t seed = test_seed();
  SCOPED_TRACE(replay_hint(seed));
  const TestFolder folder;
  const std::unique_ptr<Store> store = RocksDbStore::open({.path = folder / "data"}).value();
  Replay replay(*store, read_trace(seed));
  replay.run();
  EXPECT_EQ(replay.fired_at_their_time(), replay.tasks());
  EXPECT_EQ(replay.stats().counters.completed, replay.tasks());
  for (const QueueStats& queue : replay.stats().queues) {
    EXPECT_EQ(queue.scheduled + queue.ready + queue.leased + queue.dead, 0u) << queue.queue;
  }
  // The load window is ten minutes, which is a small part of the trace at any time.
  EXPECT_LT(replay.most_loaded(), replay.tasks() / 10);
  RecordProperty("tasks", static_cast<int>(replay.tasks()));
  RecordProperty("most_in_memory", static_cast<int>(replay.most_loaded()));
}

}  // namespace
}  // namespace detent

// The ids of timers: an id finds only its own timer, even if indices and memory are reused. The
// tests of the operations use the scheduler (scheduler_*_test.cc).
#include "runtime/scheduler/timer_shard.h"

#include <gtest/gtest.h>

#include <chrono>
#include <cstdint>
#include <map>
#include <set>
#include <utility>
#include <vector>

#include "base/test_seed.h"

namespace detent::internal {
namespace {

using std::chrono::milliseconds;

constexpr MonotonicTime kStart{};

MonotonicTime after(std::uint32_t ms) { return kStart + milliseconds{ms}; }

class TimerShardTest : public testing::Test {
 protected:
  TimerId add(std::uint32_t delay_ms) {
    NewTimer timer{.job = [] {}, .due = {after(delay_ms)}, .where = {}};
    return shard_.add(std::move(timer));
  }
  CancelResult cancel(TimerId id) {
    Job job;
    return shard_.cancel(id, job);
  }
  /// Collects the due timers, runs each of them to its end, and returns their ids.
  std::vector<TimerId> run_due(std::uint32_t now_ms) {
    std::vector<TimerId> ran;
    for (bool more = true; more;) {
      std::vector<TimerId> due;
      more = shard_.collect({.now = after(now_ms), .wall = {}}, after(now_ms), due);
      for (const TimerId id : due) {
        Job job;
        EXPECT_TRUE(shard_.begin_run(id, {.now = after(now_ms), .wall = {}}, job));
        job = Job();
        shard_.end_run(id);
        ran.push_back(id);
      }
    }
    return ran;
  }

  TimerShard shard_{TickScale(kStart, milliseconds{1}), DueOrder::deadline, 1};
};

TEST_F(TimerShardTest, AnIdNeedsBothIndexAndGeneration) {
  const TimerId id = add(1);
  EXPECT_TRUE(shard_.is_pending(id));
  EXPECT_FALSE(shard_.is_pending({.index = id.index, .generation = id.generation + 1}));
  EXPECT_FALSE(shard_.is_pending({.index = id.index + 1, .generation = id.generation}));
  EXPECT_FALSE(shard_.is_pending({.index = 1'000'000, .generation = id.generation}));
  EXPECT_FALSE(shard_.is_pending({}));
}

TEST_F(TimerShardTest, AnIndexUsedAgainHasAnotherGeneration) {
  std::set<std::uint64_t> generations;
  const TimerId first = add(1);
  ASSERT_EQ(cancel(first), CancelResult::cancelled);
  for (int i = 0; i < 1000; ++i) {
    const TimerId id = add(1);
    EXPECT_EQ(id.index, first.index);
    EXPECT_TRUE(generations.insert(id.generation).second);
    EXPECT_FALSE(shard_.is_pending(first));
    EXPECT_EQ(cancel(first), CancelResult::not_pending);
    EXPECT_EQ(cancel(id), CancelResult::cancelled);
  }
}

TEST_F(TimerShardTest, AnIdIsSafeAfterItsMemoryWasGivenBack) {
  std::vector<TimerId> ids;
  for (std::uint32_t i = 0; i < 10'000; ++i) ids.push_back(add(i));
  EXPECT_EQ(shard_.take_all(TakeAll::pending).size(), ids.size());
  for (const TimerId id : ids) EXPECT_EQ(cancel(id), CancelResult::not_pending);
  EXPECT_EQ(shard_.next_wakeup(), std::nullopt);
}

// Compares with a map from generation to due time. Each timer must be collected once, at its time,
// and never after it was cancelled. Reused indices must not mix up entries and timers of the wheel.
TEST_F(TimerShardTest, CollectsTheSameTimersAsAMap) {
  struct Pending {
    TimerId id;
    std::uint32_t due_at = 0;
  };
  const std::uint64_t seed = test_seed();
  SCOPED_TRACE(replay_hint(seed));
  Rng rng(seed);
  std::map<std::uint64_t, Pending> model;
  std::uint32_t now = 0;
  for (std::uint32_t step = 1; step <= 20'000; ++step) {
    const std::uint32_t due_at = now + 1 + rng.below(1'000);
    const auto victim = model.lower_bound(rng.below(step));
    const std::uint32_t verb = victim == model.end() ? 0 : rng.below(4);
    if (verb < 2) {
      const TimerId id = add(due_at);
      ASSERT_TRUE(model.try_emplace(id.generation, Pending{id, due_at}).second);
    } else if (verb == 2) {
      ASSERT_TRUE(shard_.move(victim->second.id, {after(due_at)}, std::nullopt));
      victim->second.due_at = due_at;
    } else {
      ASSERT_EQ(cancel(victim->second.id), CancelResult::cancelled);
      model.erase(victim);
    }
    now += rng.below(3);
    for (const TimerId id : run_due(now)) {
      ASSERT_TRUE(model.contains(id.generation));
      ASSERT_LE(model.at(id.generation).due_at, now);
      model.erase(id.generation);
    }
    for (const auto& [generation, pending] : model) ASSERT_GT(pending.due_at, now);
    ASSERT_EQ(shard_.stats().pending, model.size());
  }
  EXPECT_GT(shard_.stats().completed, 1'000u);
}

}  // namespace
}  // namespace detent::internal

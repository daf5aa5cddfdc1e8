// The look for orphans: it finds the orphans that the test makes, and no others.
#include "base/rng.h"
#include "base/test_seed.h"
#include "engine/testing/engine_fixture.h"

namespace detent {

/// Makes orphans: puts tasks in memory into states that no verb leads to.
struct PlantedOrphans {
  static void lose_timer(Engine& engine, TaskId id) {
    engine.parts_->tasks.timers_.cancel(*engine.parts_->tasks.find_loaded(id));
  }
  static void lose_order(Engine& engine, TaskId id) {
    LoadedTask* const task = engine.parts_->tasks.find_loaded(id);
    task->ready_tasks().in_memory.erase(task);
  }
  static void lose_lease(Engine& engine, TaskId id) {
    engine.parts_->tasks.leases_.erase(engine.parts_->tasks.find_loaded(id)->lease);
  }
};

namespace {

class EngineOrphans : public EngineFixture {
 protected:
  std::uint64_t orphans() { return engine_->stats().orphans; }
  /// Makes ten turns with 100 ms between them. The look runs in each of them.
  void let_it_look() {
    for (int i = 0; i < 10; ++i) {
      clock_.advance(100ms);
      ASSERT_TRUE(engine_->turn());
    }
  }
};

TEST_F(EngineOrphans, AScheduledTaskWithoutItsTimerIsCountedOnce) {
  const TaskId id = schedule("q", 1min);
  schedule("q", 1min);
  PlantedOrphans::lose_timer(*engine_, id);
  let_it_look();
  EXPECT_EQ(orphans(), 1u);
  let_it_look();
  EXPECT_EQ(orphans(), 1u);
}

TEST_F(EngineOrphans, ALeasedTaskWhoseLeaseWouldNeverRunOutIsCounted) {
  const TaskId id = schedule("q", 0ms);
  lease("q");
  let_it_look();
  EXPECT_EQ(orphans(), 0u);
  PlantedOrphans::lose_timer(*engine_, id);
  let_it_look();
  EXPECT_EQ(orphans(), 1u);
}

TEST_F(EngineOrphans, ALeasedTaskWhoseLeaseNobodyHasIsCounted) {
  const TaskId id = schedule("q", 0ms);
  lease("q");
  PlantedOrphans::lose_lease(*engine_, id);
  let_it_look();
  EXPECT_EQ(orphans(), 1u);
}

TEST_F(EngineOrphans, AReadyTaskInNoOrderIsCountedAndARestartHandsItOut) {
  const TaskId id = schedule("q", 0ms);
  PlantedOrphans::lose_order(*engine_, id);
  let_it_look();
  EXPECT_EQ(orphans(), 1u);
  EXPECT_TRUE(lease("q").empty());
  crash_and_open();
  EXPECT_EQ(lease_ids("q", 1), std::vector{id});
  let_it_look();
  EXPECT_EQ(orphans(), 0u);
}

// One look visits 1 000 slots, so the last of 3 500 slots is found by the fourth look.
TEST_F(EngineOrphans, TheLookVisitsAllTasksInParts) {
  TaskId last;
  for (int i = 0; i < 3'500; ++i) last = engine_->schedule(request("q", 1min)).value().task.id;
  settle();
  PlantedOrphans::lose_timer(*engine_, last);
  for (int looks = 0; orphans() == 0; ++looks) {
    ASSERT_LT(looks, 5);
    ASSERT_TRUE(engine_->turn());
    ASSERT_TRUE(engine_->turn());  // in the same tick: no second look
    EXPECT_TRUE(orphans() == 0 || looks > 1) << "looks are not bounded";
    clock_.advance(100ms);
  }
}

TEST_F(EngineOrphans, VerbsLeaveNoOrphans) {
  const std::uint64_t seed = test_seed();
  SCOPED_TRACE(replay_hint(seed));
  Rng rng(seed);
  options_ = {.window = 10s, .max_loaded = 60};
  open_on_a_new_disk();
  std::vector<LeaseToken> leases;
  for (int i = 0; i < 5'000; ++i) {
    const auto is = [kind = rng.below(8)](std::uint32_t other) { return kind == other; };
    if (is(0) || is(1)) {
      ASSERT_TRUE(engine_->schedule(
          request("q", std::chrono::milliseconds{rng.below(10) == 0 ? 0 : rng.below(20'000)})));
    } else if (is(2)) {
      const LeaseRequest some{.queue = "q", .max = 3, .visibility_timeout = 1s};
      const std::vector<LeasedTask> leased = engine_->lease(some).value();
      for (const LeasedTask& task : leased) leases.push_back(task.lease);
    } else if (!leases.empty()) {
      const LeaseToken token = leases.back();
      if (is(3)) {
        ASSERT_TRUE(engine_->complete(token));
      }
      if (is(4)) {
        ASSERT_TRUE(engine_->fail({.lease = token, .delay = 50ms, .error = "x"}));
      }
      if (is(5)) {
        ASSERT_TRUE(engine_->release(token));
      }
      if (is(6)) {
        ASSERT_TRUE(engine_->bury(token, "x"));
      }
      if (!is(7)) leases.pop_back();
    }
    clock_.advance(std::chrono::milliseconds{rng.below(120)});
    ASSERT_TRUE(engine_->turn());
  }
  EXPECT_EQ(orphans(), 0u);
}

}  // namespace
}  // namespace detent

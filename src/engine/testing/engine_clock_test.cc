// At random moments the wall clock is stepped by up to an hour in both directions, or the machine
// is suspended. A task with a delay must come exactly after this delay. A task with a date must
// come when the clock shows the date, and not before. A lease must last for its time. As a control,
// the test counts the delays that a wall clock would have moved: there must be some.
//
// DETENT_CLOCK_RUNS sets how many runs (for a soak: 10000).
#include <cstdlib>
#include <map>

#include "base/rng.h"
#include "base/test_seed.h"
#include "engine/testing/engine_fixture.h"

namespace detent {
namespace {

std::uint64_t runs_wanted() {
  const char* const text = std::getenv("DETENT_CLOCK_RUNS");
  return text != nullptr ? std::strtoull(text, nullptr, 10) : 40;
}

class EngineClock : public EngineFixture {
 protected:
  static constexpr std::uint32_t kTasks = 30;

  struct Asked {
    std::optional<MonotonicTime> after;  // a delay
    std::optional<WallTime> at;          // a date
    WallTime due_by_wall{};              // as the wall clock had it then
  };

  /// Tasks of one run, with delays within the load window and dates of up to two hours.
  void ask(Rng& rng) {
    for (std::uint32_t i = 0; i < kTasks; ++i) {
      const std::chrono::milliseconds time{1 + rng.below(300'000)};
      if (rng.below(2) == 0) {
        asked_[schedule("q", time)] = {.after = clock_.now() + time,
                                       .due_by_wall = wall_now() + time};
      } else {
        const WallTime at = wall_now() + time * 24;
        asked_[schedule("q", at)] = {.at = at, .due_by_wall = at};
      }
    }
  }

  /// Leases all ready tasks. Each of them must become ready exactly now.
  void take() {
    for (const LeasedTask& leased : lease("q", kTasks)) {
      const auto it = asked_.find(leased.task.id);
      ASSERT_NE(it, asked_.end()) << "handed out twice, or nobody asked for it";
      const Asked& asked = it->second;
      if (asked.after) {
        EXPECT_EQ(clock_.now(), *asked.after);
        if (wall_now() != asked.due_by_wall) ++moved_by_wall_;
      }
      if (asked.at) {
        EXPECT_GE(wall_now(), *asked.at);
      }
      asked_.erase(it);
      // The test does not end the lease. It must last 30 s, even if the clock is stepped.
      held_.emplace_back(leased.lease, clock_.now() + 30s);
    }
    while (!held_.empty() && clock_.now() + 1ms >= held_.front().second) {
      EXPECT_EQ(complete(held_.front().first), LeaseOutcome::done);
      held_.erase(held_.begin());
    }
  }

  void go_on(Rng& rng) {
    switch (rng.below(12)) {
      case 0:
        clock_.step_wall(std::chrono::minutes{static_cast<int>(rng.below(121)) - 60});
        break;
      case 1:
        clock_.step_wall(1h);  // as a suspend: steady time stood still
        break;
      default: {
        MonotonicTime next = clock_.now() + std::chrono::milliseconds{1 + rng.below(60'000)};
        if (!held_.empty()) next = std::min(next, held_.front().second - 1ms);
        if (const auto wakeup = engine_->next_wakeup()) next = std::min(next, *wakeup);
        clock_.advance(std::max<MonotonicTime::duration>(next - clock_.now(), 0ms));
      }
    }
    settle();
  }

  std::map<TaskId, Asked> asked_;
  std::vector<std::pair<LeaseToken, MonotonicTime>> held_;
  std::uint64_t moved_by_wall_ = 0;  // delays that ended at another wall time than expected
};

TEST_F(EngineClock, StepsLeaveDelaysUnchangedAndDatesAreNeverEarly) {
  const std::uint64_t first = test_seed();
  for (std::uint64_t seed = first; seed < first + runs_wanted() && !HasFailure(); ++seed) {
    SCOPED_TRACE(replay_hint(seed));
    Rng rng(seed);
    open_on_a_new_disk();
    ask(rng);
    for (int i = 0; i < 20'000 && (!asked_.empty() || !held_.empty()) && !HasFailure(); ++i) {
      take();
      go_on(rng);
    }
    EXPECT_TRUE(asked_.empty()) << asked_.size() << " never came";
    EXPECT_EQ(engine_->stats().counters.leases_expired, 0u);
    engine_->check_invariants();
  }
  EXPECT_GT(moved_by_wall_, runs_wanted()) << "the steps are too few to show anything";
}

}  // namespace
}  // namespace detent

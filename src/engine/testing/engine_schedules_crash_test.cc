// Recurring schedules with crashes at any write: each occurrence gets exactly one task.
#include <map>
#include <set>
#include <string>
#include <vector>

#include "base/rng.h"
#include "base/test_seed.h"
#include "engine/testing/engine_fixture.h"

namespace detent {
namespace {

class EngineSchedulesCrash : public EngineFixture {
 protected:
  bool one_in(std::uint32_t n) { return rng_.below(n) == 0; }

  /// Crashes. The next start finds all, a part or nothing of the last write.
  void crash_somehow() {
    store_->fail_write(1 + rng_.below(3),
                       one_in(2) ? WriteFault::not_applied : WriteFault::applied);
    while (!engine_->stopped_by()) step();
    crash();
    if (one_in(2)) clock_.advance(std::chrono::seconds{rng_.below(600)});
    open();
    ++crashes_;
  }
  void step() {
    clock_.advance(std::chrono::milliseconds{rng_.below(40'000)});
    static_cast<void>(engine_->turn());
    if (engine_->stopped_by()) return;
    const Result<std::vector<LeasedTask>> tasks = engine_->lease({.queue = "q", .max = 5});
    if (!tasks) return;
    for (const LeasedTask& task : *tasks) {
      ASSERT_LE(task.task.due_at, wall_now()) << "early";
      ids_[task.task.key].insert(task.task.id);
      if (!one_in(4)) static_cast<void>(engine_->complete(task.lease));
    }
    static_cast<void>(engine_->turn());
  }
  /// Leases all tasks that are left.
  void drain() {
    for (bool more = true; more;) {
      settle();
      more = false;
      for (const LeasedTask& task : lease("q", 100)) {
        ids_[task.task.key].insert(task.task.id);
        complete(task.lease);
        more = true;
      }
    }
  }
  RecurringSchedule schedule(const std::string& name, const std::string& cron) {
    return {.name = name,
            .rule = CronRule{cron},
            .time_zone = "America/New_York",
            .queue = "q",
            .misfire = Misfire::all,
            .misfire_limit = kMaxMisfires};
  }

  Rng rng_{0};
  int crashes_ = 0;
  std::map<std::string, std::set<TaskId>> ids_;  // of the tasks that were seen, by key
};

TEST_F(EngineSchedulesCrash, EachOccurrenceHasExactlyOneTaskAfter200Crashes) {
  const std::uint64_t seed = test_seed();
  SCOPED_TRACE(replay_hint(seed));
  rng_ = Rng(seed);
  const WallTime begin = wall_now();
  std::vector<RecurringSchedule> schedules{schedule("minutes", "* * * * *"),
                                           schedule("sevens", "*/7 * * * * *"),
                                           schedule("quarters", "*/15 * * * *")};
  schedules[1].jitter = 5s;
  for (const RecurringSchedule& each : schedules) ASSERT_TRUE(engine_->put_schedule(each));
  settle();
  while (crashes_ < test_rounds(200) && !HasFailure()) crash_somehow();
  advance(10s);
  drain();

  std::set<std::string> expected;
  for (const RecurringSchedule& each : schedules) {
    const Recurrence rule = Recurrence::make(each).value();
    const WallTime end = wall_now() - phase_of(each);
    for (auto at = rule.next_after(begin); *at <= end; at = rule.next_after(*at)) {
      expected.insert(occurrence_key(each, *at));
    }
  }
  std::set<std::string> seen;
  for (const auto& [key, ids] : ids_) {
    EXPECT_EQ(ids.size(), 1u) << key << " has several tasks";
    seen.insert(key);
  }
  EXPECT_EQ(seen, expected);
  EXPECT_GT(seen.size(), static_cast<std::size_t>(test_rounds(1'000)));
  engine_->check_invariants();
}

}  // namespace
}  // namespace detent

// Random calls of a LocalScheduler, compared with a sorted map. DETENT_SEED=… repeats a run.
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "base/rng.h"
#include "base/test_seed.h"
#include "detent/local_scheduler.h"

namespace detent {
namespace {

using namespace std::chrono_literals;
using std::chrono::milliseconds;

/// Timers by deadline and by the order of scheduling, as DueOrder::by_schedule runs them.
using Model = std::multimap<MonotonicTime, std::size_t>;

class LocalSchedulerModel : public testing::Test {
 protected:
  struct Timer {
    TimerHandle handle;
    std::optional<Model::iterator> place;  // empty: it has ended
  };

  MonotonicTime now() const { return clock_.now(); }

  void schedule(milliseconds delay) {
    const std::size_t number = timers_.size();
    timers_.emplace_back();
    timers_.back().handle = scheduler_.schedule_after(delay, [this, number] { run(number); });
    timers_.back().place = model_.emplace(now() + delay, number);
  }

  /// The job. Sometimes it does to other timers what a user does.
  void run(std::size_t number) {
    ASSERT_TRUE(timers_[number].place);
    const auto place = *timers_[number].place;
    ASSERT_LE(place->first, now()) << "early";
    ran_.push_back(number);
    EXPECT_FALSE(timers_[number].handle.is_pending());
    model_.erase(place);
    timers_[number].place.reset();
    if (rng_.below(4) == 0) change();
  }

  void change() {
    const std::uint32_t choice = rng_.below(10);
    if (choice < 5 || timers_.empty()) return schedule(milliseconds{rng_.below(50)});
    Timer& timer = timers_[rng_.below(static_cast<std::uint32_t>(timers_.size()))];
    const bool was_pending = timer.place.has_value();
    EXPECT_EQ(timer.handle.is_pending(), was_pending);
    if (choice < 8) {
      const CancelResult result = timer.handle.cancel();
      EXPECT_EQ(result == CancelResult::cancelled, was_pending);
      if (was_pending) model_.erase(*timer.place);
      timer.place.reset();
      return;
    }
    const milliseconds delay{rng_.below(500)};
    EXPECT_EQ(timer.handle.expires_after(delay), was_pending);
    if (!was_pending) return;
    const std::size_t number = (*timer.place)->second;
    model_.erase(*timer.place);
    timer.place = model_.emplace(now() + delay, number);
  }

  /// Compares what the loop sees.
  void check() {
    ASSERT_EQ(scheduler_.stats().pending, model_.size());
    const std::optional<MonotonicTime> next = scheduler_.next_wakeup();
    ASSERT_EQ(next.has_value(), !model_.empty());
    if (!next) return;
    ASSERT_LE(*next, std::max(now(), model_.begin()->first)) << "would sleep too long";
  }

  const std::uint64_t seed_ = test_seed();
  Rng rng_{seed_};
  ManualClock clock_;
  LocalScheduler scheduler_{{.resolution = 1ms, .clock = &clock_, .seed = seed_}};
  Model model_;
  std::vector<Timer> timers_;
  std::vector<std::size_t> ran_;
};

TEST_F(LocalSchedulerModel, RunsExactlyTheDueTimers) {
  SCOPED_TRACE(testing::Message() << "DETENT_SEED=" << seed_);
  for (int round = 0; round < 3'000; ++round) {
    for (std::uint32_t i = rng_.below(8); i > 0; --i) change();
    clock_.advance(milliseconds{rng_.below(30)});
    const bool is_limited = rng_.below(3) == 0;
    const std::size_t limit = is_limited ? rng_.below(5) : kNoLimit;
    const std::size_t before = ran_.size();
    const AdvanceResult result = scheduler_.run_ready({.count = limit});
    ASSERT_EQ(result.fired, ran_.size() - before);
    ASSERT_LE(result.fired, limit);
    ASSERT_NO_FATAL_FAILURE(check());
    if (result.more) continue;
    // Whatever is due now was scheduled or moved by a job of this call.
    while (scheduler_.time_to_next() == 0ns) scheduler_.run_ready();
    ASSERT_TRUE(model_.empty() || model_.begin()->first > now()) << "late";
  }
  EXPECT_GT(ran_.size(), 1'000u);
}

}  // namespace
}  // namespace detent

// The two drives of HierarchicalWheel: when each of them wakes, and that both fire the same timers.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "base/rng.h"
#include "base/test_seed.h"
#include "detent/queues/hierarchical_wheel.h"
#include "wheel/queues/test_wakeups.h"
#include "wheel/test_queues.h"

namespace detent {
namespace {

using Drive = HierarchicalWheel::Drive;
using Options = HierarchicalWheel::Options;
using Timer = HierarchicalWheel::Timer;

constexpr std::array kDrives{Drive::tickless, Drive::tick_by_tick};
constexpr Tick kOneMinute = 60;
constexpr Tick kOneHour = 60 * kOneMinute;
constexpr Tick kOneDay = 24 * kOneHour;

TEST(HierarchicalWheelDrive, TicklessNeverWakesWhenIdle) {
  auto wheel = HierarchicalWheel::make({.level_sizes = {60, 60, 24}});
  EXPECT_EQ(count_wakeups(*wheel, kOneHour), 0u) << "nothing is pending";
  Timer timer;
  wheel->schedule(timer, 3 * kOneHour);
  EXPECT_EQ(count_wakeups(*wheel, 3 * kOneHour - 1), 0u) << "no timer is due or must cascade";
  EXPECT_EQ(wheel->next_wakeup(), 3 * kOneHour);
  wheel->advance(3 * kOneHour, kIgnore);

  wheel->schedule(timer, 5 * kOneHour + 2 * kOneMinute + 5);
  wheel->cancel(timer);
  EXPECT_EQ(count_wakeups(*wheel, 6 * kOneHour), 0u) << "an emptied slot causes no wake-up";
}

TEST(HierarchicalWheelDrive, TicklessOffersASlotOnceHoweverManyTimersItHolds) {
  auto wheel = HierarchicalWheel::make({.level_sizes = {60, 60, 24}});
  std::vector<Timer> timers(1'000);
  for (Timer& timer : timers) wheel->schedule(timer, 3 * kOneHour + 2 * kOneMinute + 5);
  EXPECT_EQ(count_wakeups(*wheel, kOneDay), 3u) << "the hour, the minute and the second";
  EXPECT_TRUE(wheel->empty());
}

TEST(HierarchicalWheelDrive, TickByTickWakesAtEverySlotWidthWhileATimerIsPending) {
  auto wheel = HierarchicalWheel::make(
      {.slot_width = 5, .level_sizes = {60, 60, 24}, .drive = Drive::tick_by_tick});
  EXPECT_EQ(count_wakeups(*wheel, 1'000), 0u) << "nothing is pending";
  Timer timer;
  wheel->schedule(timer, 2'003);
  EXPECT_EQ(wheel->next_wakeup(), 1'005u);
  EXPECT_EQ(count_wakeups(*wheel, 2'000), 200u);
  EXPECT_EQ(count_wakeups(*wheel, 3'000), 1u);
  EXPECT_TRUE(wheel->empty());
}

// Two wheels with the same timers, one with each drive.
class DrivePair {
 public:
  DrivePair(const Options& options, std::size_t timer_count)
      : wheels_{make(options, kDrives[0]), make(options, kDrives[1])},
        timers_{std::vector<Timer>(timer_count), std::vector<Timer>(timer_count)} {}

  Tick now() const { return wheels_[0]->now(); }

  void schedule(std::size_t id, Tick deadline) {
    const bool accepted = wheels_[0]->schedule(timers_[0][id], deadline);
    ASSERT_EQ(wheels_[1]->schedule(timers_[1][id], deadline), accepted);
  }
  void cancel(std::size_t id) {
    const bool was_pending = wheels_[0]->cancel(timers_[0][id]);
    ASSERT_EQ(wheels_[1]->cancel(timers_[1][id]), was_pending);
  }

  // Advances both wheels from wake-up to wake-up until `end`.
  void run_to(Tick end) {
    std::array<std::vector<Fire>, 2> fires;
    for (std::size_t i = 0; i < wheels_.size(); ++i) {
      HierarchicalWheel& wheel = *wheels_[i];
      while (wheel.now() < end) {
        wheel.advance(std::min(wheel.next_wakeup().value_or(end), end), [&](Timer& timer) {
          fires[i].push_back({wheel.now(), static_cast<std::size_t>(&timer - timers_[i].data())});
        });
        ++wakeups_[i];
      }
      wheel.check_invariants();
      std::sort(fires[i].begin(), fires[i].end());  // equal deadlines fire in any order
    }
    ASSERT_EQ(fires[0], fires[1]);
    fired_ += fires[0].size();
  }

  std::size_t fired() const { return fired_; }
  std::size_t wakeups(Drive drive) const { return wakeups_[drive == kDrives[0] ? 0 : 1]; }

 private:
  using Fire = std::pair<Tick, std::size_t>;

  static std::optional<HierarchicalWheel> make(Options options, Drive drive) {
    options.drive = drive;
    return HierarchicalWheel::make(options);
  }

  std::array<std::optional<HierarchicalWheel>, 2> wheels_;
  std::array<std::vector<Timer>, 2> timers_;  // destroyed first: they cancel themselves
  std::array<std::size_t, 2> wakeups_{};
  std::size_t fired_ = 0;
};

TEST(HierarchicalWheelDrive, BothDrivesFireTheSameTimersAtTheSameTicks) {
  constexpr std::size_t kTimerCount = 40;
  const std::uint64_t seed = test_seed();
  SCOPED_TRACE(replay_hint(seed));
  Rng random(seed);
  const std::vector<Options> shapes{{.level_sizes = {60, 60, 24}},
                                    {.level_sizes = {2, 3, 5, 7}},
                                    {.slot_width = 7, .level_sizes = {8, 8, 8}},
                                    {.slots_per_level = 2},
                                    {.slot_width = 10, .slots_per_level = 20}};
  for (const Options& shape : shapes) {
    DrivePair pair(shape, kTimerCount);
    for (int step = 0; step < 2'000 && !HasFatalFailure(); ++step) {
      const std::size_t id = random.below(kTimerCount);
      const Tick delay = random.next() % 4'000 >> random.below(12);
      switch (random.below(5)) {
        case 0:
          pair.cancel(id);
          break;
        case 1:
          pair.run_to(pair.now() + delay / 4);
          break;
        default:
          pair.schedule(id, pair.now() + delay);
      }
    }
    EXPECT_GT(pair.fired(), 100u) << "too few timers fired for a useful test";
    EXPECT_LT(pair.wakeups(Drive::tickless), pair.wakeups(Drive::tick_by_tick));
  }
}

}  // namespace
}  // namespace detent

// Detent's side of a case: every queue must fire on the tick, with both drives. Tests only.
//
// The queues are those of wheel/test_queues.h. A queue that is added there takes part in the cases.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "detent/clock.h"
#include "detent/internal/tick_scale.h"
#include "detent/queues/hierarchical_wheel.h"
#include "detent/queues/timer_queue.h"
#include "detent/tick.h"
#include "wheel/test_queues.h"

namespace detent::classic {

/// HierarchicalWheel with the level sizes of a port, the finest level first.
template <HierarchicalWheel::Drive kDrive, unsigned... kLevelSizes>
struct LevelsCase {
  using Queue = HierarchicalWheel;
  static constexpr QueueNature kNature{.span = (Tick{1} * ... * kLevelSizes)};
  static constexpr const char* kName = "HierarchicalWheel";
  static std::optional<Queue> make(Tick now) {
    return Queue::make({.level_sizes = {kLevelSizes...}, .drive = kDrive, .now = now});
  }
};
template <unsigned... kLevelSizes>
using LevelsUnderBothDrives =
    testing::Types<LevelsCase<HierarchicalWheel::Drive::tickless, kLevelSizes...>,
                   LevelsCase<HierarchicalWheel::Drive::tick_by_tick, kLevelSizes...>>;

/// HierarchicalWheel with levels on demand, with the level size of a port.
template <HierarchicalWheel::Drive kDrive, unsigned kSlotsPerLevel>
struct LevelsOnDemandCase {
  using Queue = HierarchicalWheel;
  static constexpr QueueNature kNature{};
  static constexpr const char* kName = "HierarchicalWheel with levels on demand";
  static std::optional<Queue> make(Tick now) {
    return Queue::make({.slots_per_level = kSlotsPerLevel, .drive = kDrive, .now = now});
  }
};
template <unsigned kSlotsPerLevel>
using OnDemandUnderBothDrives =
    testing::Types<LevelsOnDemandCase<HierarchicalWheel::Drive::tickless, kSlotsPerLevel>,
                   LevelsOnDemandCase<HierarchicalWheel::Drive::tick_by_tick, kSlotsPerLevel>>;

/// How time moves: to every tick, like the classic wheels, or only to the next wake-up.
enum class Drive : std::uint8_t { tick_by_tick, wakeup_to_wakeup };

/// Schedules a timer for each of `deadlines`, and lets time pass until the last deadline. Returns
/// the tick when each timer fired; empty if it was refused or has not fired.
template <TimerQueue Queue>
std::vector<std::optional<Tick>> fire_ticks(Queue& queue, const std::vector<Tick>& deadlines,
                                            Drive drive) {
  std::vector<std::optional<Tick>> fired(deadlines.size());
  std::vector<typename Queue::Timer> timers(deadlines.size());
  Tick last = queue.now();
  for (std::size_t i = 0; i < timers.size(); ++i) {
    if (queue.schedule(timers[i], deadlines[i])) last = std::max(last, deadlines[i]);
  }
  const auto on_fire = [&](typename Queue::Timer& timer) noexcept {
    std::optional<Tick>& at = fired[static_cast<std::size_t>(&timer - timers.data())];
    EXPECT_EQ(at, std::nullopt) << "it fired twice";
    at = queue.now();
  };
  // The limit makes a queue that stands still fail the case instead of hanging it.
  for (int wakeups = 0; queue.now() < last && wakeups < 1'000'000; ++wakeups) {
    const Tick wakeup =
        drive == Drive::tick_by_tick ? queue.now() + 1 : queue.next_wakeup().value_or(last);
    queue.advance(wakeup, on_fire);
  }
  queue.check_invariants();
  return fired;
}

/// Calls `body(case)` for every queue of a list. `case` is its struct in wheel/test_queues.h.
template <class Queues = EveryQueue, class Body>
void for_each_queue(Body&& body) {
  [&body]<class... Cases>(testing::Types<Cases...>*) {
    const auto run = [&body]<class Case>(Case each) {
      SCOPED_TRACE(Case::kName);
      body(each);
    };
    (run(Cases{}), ...);
  }(static_cast<Queues*>(nullptr));
}

/// Checks that every queue fires a timer for each of `deadlines` on its deadline. All timers are
/// scheduled at `start`. A queue must refuse a deadline beyond its span.
template <class Queues = EveryQueue>
void expect_on_time(Tick start, const std::vector<Tick>& deadlines) {
  const Tick farthest = *std::max_element(deadlines.begin(), deadlines.end()) - start;
  for (const Drive drive : {Drive::tick_by_tick, Drive::wakeup_to_wakeup}) {
    if (drive == Drive::tick_by_tick && farthest > 100'000) continue;
    for_each_queue<Queues>([&]<class Case>(Case) {
      static_assert(Case::kNature.slot_width == 1, "it would be late by less than a slot");
      auto queue = Case::make(start);
      std::vector<std::optional<Tick>> right;
      for (const Tick deadline : deadlines) {
        const bool in_span = deadline - start <= Case::kNature.span;
        right.push_back(in_span ? std::optional(deadline) : std::nullopt);
      }
      EXPECT_EQ(fire_ticks(*queue, deadlines, drive), right);
    });
  }
}

/// A check in time instead of ticks: tick n is n × `resolution`. Returns the largest lateness of
/// all queues for a timer with deadline `deadline`, scheduled at `now`. Checks that no queue is
/// early.
inline std::chrono::nanoseconds worst_lateness(std::chrono::nanoseconds resolution,
                                               std::chrono::nanoseconds now,
                                               std::chrono::nanoseconds deadline) {
  const internal::TickScale scale(MonotonicTime{}, resolution);
  std::chrono::nanoseconds worst{0};
  for_each_queue([&]<class Case>(Case) {
    auto queue = Case::make(scale.tick_at_or_before(MonotonicTime{now}));
    const Tick due = scale.tick_at_or_after(MonotonicTime{deadline});
    const std::vector<std::optional<Tick>> fired =
        fire_ticks(*queue, {due}, Drive::wakeup_to_wakeup);
    ASSERT_TRUE(fired[0].has_value());
    const std::chrono::nanoseconds late = scale.time_of(*fired[0]).time_since_epoch() - deadline;
    EXPECT_GE(late.count(), 0) << "early";
    worst = std::max(worst, late);
  });
  return worst;
}

}  // namespace detent::classic

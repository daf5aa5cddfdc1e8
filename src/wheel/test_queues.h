// The list of all queues for tests that run over every queue: one small struct per queue.
//
//     template <class Case> class TimerQueueLimit : public testing::Test {};
//     TYPED_TEST_SUITE(TimerQueueLimit, EveryQueue, QueueNames);
//
//     TYPED_TEST(TimerQueueLimit, …) {
//       auto queue = TypeParam::make(0);   // an optional, because a queue can't be moved
//       TimerOf<TypeParam> timer;
//       queue->schedule(timer, 10);
//
// To add a queue, add a struct and an entry in EveryQueue. The queues in EveryQueue have slots of
// one tick. Tests over every queue use delays up to kSmallestSpan, or call can_hold().
#pragma once

#include <gtest/gtest.h>

#include <cstddef>
#include <limits>
#include <optional>
#include <string>
#include <utility>

#include "detent/dense_wheel.h"
#include "detent/fifo_timer_wheel.h"
#include "detent/queues/hashed_wheel.h"
#include "detent/queues/heap_queue.h"
#include "detent/queues/hierarchical_wheel.h"
#include "detent/queues/list_queue.h"
#include "detent/queues/simple_wheel.h"
#include "detent/queues/timer_queue.h"
#include "detent/queues/tree_queue.h"
#include "detent/tick.h"
#include "detent/timer_wheel.h"
#include "wheel/test_dense_timers.h"

namespace detent {

inline constexpr Tick kLastTick = std::numeric_limits<Tick>::max();

/// The properties that differ between queues.
struct QueueNature {
  bool keeps_schedule_order = false;  ///< equal deadlines fire in the order of scheduling
  Tick span = kLastTick;              ///< the longest accepted delay
  Tick slot_width = 1;                ///< timers fire at multiples of this
  Tick longest_step = kLastTick;      ///< largest step of random tests, if each tick costs
  Tick most_wakeups = 1;              ///< largest number of wake-ups to reach a deadline
  std::size_t most_timers = 100'000;  ///< number of timers in tests, if each costs O(n)
};

/// The smallest span of the bounded queues in EveryQueue.
inline constexpr Tick kSmallestSpan = 8'192;

/// A queue that is constructed from its first tick only.
template <class Q, QueueNature kItsNature>
struct PlainCase {
  using Queue = Q;
  static constexpr QueueNature kNature = kItsNature;
  static std::optional<Queue> make(Tick now) { return std::optional<Queue>(std::in_place, now); }
};

// Each level has 256 slots, so there are eight levels.
struct TimerWheelCase : PlainCase<TimerWheel, QueueNature{.most_wakeups = 8}> {
  static constexpr const char* kName = "TimerWheel";
};
struct FifoTimerWheelCase
    : PlainCase<FifoTimerWheel, QueueNature{.keeps_schedule_order = true, .most_wakeups = 11}> {
  static constexpr const char* kName = "FifoTimerWheel";
};
struct DenseWheelCase : PlainCase<DenseTimers<DenseWheel>, QueueNature{.most_wakeups = 8}> {
  static constexpr const char* kName = "DenseWheel";
};
struct HeapQueueCase : PlainCase<HeapQueue, QueueNature{}> {
  static constexpr const char* kName = "HeapQueue";
};
struct TreeQueueCase : PlainCase<TreeQueue, QueueNature{.keeps_schedule_order = true}> {
  static constexpr const char* kName = "TreeQueue";
};
struct ListQueueCase
    : PlainCase<ListQueue, QueueNature{.keeps_schedule_order = true, .most_timers = 3'000}> {
  static constexpr const char* kName = "ListQueue";
};

/// A wheel of one ring.
template <class Q, std::size_t kSlotCount, QueueNature kItsNature>
struct RingCase {
  using Queue = Q;
  static constexpr QueueNature kNature = kItsNature;
  static std::optional<Queue> make(Tick now) {
    return Queue::make({.slot_count = kSlotCount, .slot_width = kNature.slot_width, .now = now});
  }
};
struct SimpleWheelCase : RingCase<SimpleWheel, kSmallestSpan, QueueNature{.span = kSmallestSpan}> {
  static constexpr const char* kName = "SimpleWheel";
};
struct HashedWheelCase : RingCase<HashedWheel, 512, QueueNature{}> {
  static constexpr const char* kName = "HashedWheel";
};

/// A wheel with levels of the given sizes.
template <HierarchicalWheel::Drive kDrive, QueueNature kItsNature, std::size_t... kSizes>
struct LevelsCase {
  using Queue = HierarchicalWheel;
  static constexpr QueueNature kNature = kItsNature;
  static std::optional<Queue> make(Tick now) {
    return Queue::make({.slot_width = kNature.slot_width,
                        .level_sizes = {kSizes...},
                        .drive = kDrive,
                        .now = now});
  }
};
/// A wheel whose levels have `kSlotsPerLevel` slots and are made on demand.
template <std::size_t kSlotsPerLevel, QueueNature kItsNature>
struct LevelsOnDemandCase {
  using Queue = HierarchicalWheel;
  static constexpr QueueNature kNature = kItsNature;
  static std::optional<Queue> make(Tick now) {
    return Queue::make(
        {.slot_width = kNature.slot_width, .slots_per_level = kSlotsPerLevel, .now = now});
  }
};
inline constexpr auto kTickless = HierarchicalWheel::Drive::tickless;
inline constexpr auto kTickByTick = HierarchicalWheel::Drive::tick_by_tick;
inline constexpr Tick kDay = 60 * 60 * 24;

struct DayWheelCase
    : LevelsCase<kTickless, QueueNature{.span = kDay, .most_wakeups = 3}, 60, 60, 24> {
  static constexpr const char* kName = "DayWheel";
};
struct TickingDayWheelCase
    : LevelsCase<kTickByTick,
                 QueueNature{.span = kDay, .longest_step = 5'000, .most_wakeups = kDay}, 60, 60,
                 24> {
  static constexpr const char* kName = "TickingDayWheel";
};
struct CenturyWheelCase
    : LevelsCase<kTickless, QueueNature{.span = kDay * 30 * 12 * 100, .most_wakeups = 6}, 60, 60,
                 24, 30, 12, 100> {
  static constexpr const char* kName = "CenturyWheel";
};
struct LevelsOnDemandWheelCase : LevelsOnDemandCase<20, QueueNature{.most_wakeups = 15}> {
  static constexpr const char* kName = "LevelsOnDemandWheel";
};

using EveryQueue =
    testing::Types<TimerWheelCase, FifoTimerWheelCase, DenseWheelCase, SimpleWheelCase,
                   HashedWheelCase, DayWheelCase, TickingDayWheelCase, CenturyWheelCase,
                   LevelsOnDemandWheelCase, HeapQueueCase, TreeQueueCase, ListQueueCase>;

/// The queues that refuse deadlines beyond their span.
using BoundedQueues = testing::Types<SimpleWheelCase, DayWheelCase, TickingDayWheelCase>;

// The same queues with few slots per level, so that the hands complete many rounds.
struct SmallWheelCase
    : PlainCase<DenseTimers<internal::IndexWheel<2>>, QueueNature{.most_wakeups = 32}> {
  static constexpr const char* kName = "SmallWheel";
};
struct SmallSimpleWheelCase : RingCase<SimpleWheel, 80, QueueNature{.span = 80}> {
  static constexpr const char* kName = "SmallSimpleWheel";
};
struct SmallHashedWheelCase : RingCase<HashedWheel, 4, QueueNature{}> {
  static constexpr const char* kName = "SmallHashedWheel";
};
struct SmallLevelsCase : LevelsCase<kTickless, QueueNature{.span = 64}, 4, 4, 4> {
  static constexpr const char* kName = "SmallLevels";
};
struct SmallTickingLevelsCase
    : LevelsCase<kTickByTick, QueueNature{.span = 64, .longest_step = 5'000}, 4, 4, 4> {
  static constexpr const char* kName = "SmallTickingLevels";
};
struct SmallLevelsOnDemandCase : LevelsOnDemandCase<2, QueueNature{}> {
  static constexpr const char* kName = "SmallLevelsOnDemand";
};

using SmallQueues =
    testing::Types<SmallWheelCase, SmallSimpleWheelCase, SmallHashedWheelCase, SmallLevelsCase,
                   SmallTickingLevelsCase, SmallLevelsOnDemandCase>;

// The same queues with wide slots: timers are late by less than a slot.
struct WideSimpleWheelCase
    : RingCase<SimpleWheel, 100, QueueNature{.span = 1'000, .slot_width = 10}> {
  static constexpr const char* kName = "WideSimpleWheel";
};
struct WideHashedWheelCase : RingCase<HashedWheel, 8, QueueNature{.slot_width = 7}> {
  static constexpr const char* kName = "WideHashedWheel";
};
struct WideLevelsCase
    : LevelsCase<kTickless, QueueNature{.span = 9 * 5 * 6 * 7, .slot_width = 9}, 5, 6, 7> {
  static constexpr const char* kName = "WideLevels";
};
struct WideTickingLevelsCase
    : LevelsCase<kTickByTick,
                 QueueNature{.span = 9 * 5 * 6 * 7, .slot_width = 9, .longest_step = 5'000}, 5, 6,
                 7> {
  static constexpr const char* kName = "WideTickingLevels";
};

using WideQueues =
    testing::Types<WideSimpleWheelCase, WideHashedWheelCase, WideLevelsCase, WideTickingLevelsCase>;

template <class... Lists>
struct Joined;
template <class... Cases>
struct Joined<testing::Types<Cases...>> {
  using Types = testing::Types<Cases...>;
  static constexpr std::size_t kCount = sizeof...(Cases);
};
template <class... First, class... Second, class... Rest>
struct Joined<testing::Types<First...>, testing::Types<Second...>, Rest...>
    : Joined<testing::Types<First..., Second...>, Rest...> {};

/// Every queue in every size.
using EverySize = Joined<EveryQueue, SmallQueues, WideQueues>;

template <class Case>
using TimerOf = typename Case::Queue::Timer;

struct QueueNames {
  template <class Case>
  static std::string GetName(int) {  // NOLINT(readability-identifier-naming): gtest calls it so.
    static_assert(TimerQueue<typename Case::Queue>);
    return Case::kName;
  }
};

/// Returns true if a queue at `now` accepts the deadline.
template <class Case>
constexpr bool can_hold(Tick now, Tick deadline) {
  return deadline <= now || deadline - now <= Case::kNature.span;
}

/// A callback that ignores the timer.
inline constexpr auto kIgnore = [](const auto&) noexcept {};

template <TimerQueue Queue>
std::size_t count_fired(Queue& queue, Tick now) {
  const AdvanceResult result = queue.advance(now, kIgnore);
  EXPECT_FALSE(result.more) << "without a limit nothing is left";
  return result.fired;
}

}  // namespace detent

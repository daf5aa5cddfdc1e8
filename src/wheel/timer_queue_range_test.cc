// The whole range of ticks, for every queue as far as its span reaches: boundaries of levels and
// digits, every small case, and wake-ups.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <optional>
#include <vector>

#include "base/rng.h"
#include "wheel/test_queues.h"

namespace detent {
namespace {

// The first ticks of digits with six and eight bits, and the ticks before and after them. Also some
// ticks without any alignment.
std::vector<Tick> interesting_ticks() {
  std::vector<Tick> ticks{0, 1, 2, kLastTick - 1, kLastTick, 123'456'789, 0xDEAD'BEEF'1234'5678u};
  for (unsigned shift = 6; shift < 64; shift += 2) {
    if (shift % 6 != 0 && shift % 8 != 0) continue;
    for (const Tick multiple : {Tick{1}, Tick{3}}) {
      const Tick boundary = multiple << shift;
      ticks.insert(ticks.end(), {boundary - 1, boundary, boundary + 1});
    }
  }
  return ticks;
}

// The same ticks, and ticks soon after `start`, which a queue with a small span can hold.
std::vector<Tick> interesting_deadlines(Tick start) {
  std::vector<Tick> ticks = interesting_ticks();
  for (const Tick delay : std::initializer_list<Tick>{1, 59, 60, 61, 63, 64, 65, 255, 256, 257,
                                                      3'599, 3'600, 3'601, 4'096}) {
    ticks.push_back(start + std::min(delay, kLastTick - start));
  }
  return ticks;
}

template <class Case>
class TimerQueueRange : public testing::Test {};
TYPED_TEST_SUITE(TimerQueueRange, EveryQueue, QueueNames);

TYPED_TEST(TimerQueueRange, FiresExactlyAtEveryBoundaryFromEveryBoundary) {
  std::size_t cases = 0;
  for (const Tick start : interesting_ticks()) {
    for (const Tick deadline : interesting_deadlines(start)) {
      if (deadline <= start || !can_hold<TypeParam>(start, deadline)) continue;
      auto queue = TypeParam::make(start);
      TimerOf<TypeParam> timer;
      ASSERT_TRUE(queue->schedule(timer, deadline));
      ASSERT_EQ(count_fired(*queue, deadline - 1), 0u) << start << " → " << deadline;
      ASSERT_EQ(queue->next_wakeup(), deadline) << "the tick before, the wake-up is exact";
      ASSERT_EQ(count_fired(*queue, deadline), 1u) << start << " → " << deadline;
      ++cases;
    }
  }
  EXPECT_GT(cases, 500u);
}

TYPED_TEST(TimerQueueRange, FiresAtEveryBoundaryWhenJumpedOver) {
  for (const Tick start : interesting_ticks()) {
    auto queue = TypeParam::make(start);
    const std::vector<Tick> deadlines = interesting_deadlines(start);
    std::vector<TimerOf<TypeParam>> timers(deadlines.size());
    std::size_t pending = 0;
    Tick last = start;
    for (std::size_t i = 0; i < timers.size(); ++i) {
      if (!can_hold<TypeParam>(start, deadlines[i])) continue;
      ASSERT_TRUE(queue->schedule(timers[i], deadlines[i]));
      last = std::max(last, deadlines[i]);
      ++pending;
    }
    queue->check_invariants();
    Tick latest = 0;
    const AdvanceResult result = queue->advance(last, [&](auto& timer) {
      EXPECT_GE(timer.deadline(), latest);
      latest = timer.deadline();
    });
    ASSERT_EQ(result.fired, pending) << start;
    queue->check_invariants();
  }
}

TYPED_TEST(TimerQueueRange, LastTickFiresWhenAdvanceReachesIt) {
  auto queue = TypeParam::make(kLastTick - 1'000);
  TimerOf<TypeParam> timer;
  ASSERT_TRUE(queue->schedule(timer, kLastTick));
  EXPECT_EQ(count_fired(*queue, kLastTick - 1), 0u);
  EXPECT_EQ(count_fired(*queue, kLastTick), 1u);
  EXPECT_EQ(queue->now(), kLastTick);

  ASSERT_TRUE(queue->schedule(timer, kLastTick));
  queue->check_invariants();
  EXPECT_EQ(queue->next_wakeup(), kLastTick);
  EXPECT_EQ(count_fired(*queue, kLastTick), 1u) << "the end of time is a tick like any other";
}

TYPED_TEST(TimerQueueRange, EveryTickOfItsSpanFiresOnItsTick) {
  constexpr Tick kTicks =
      std::min<Tick>({70'000, TypeParam::kNature.span, TypeParam::kNature.most_timers});
  auto queue = TypeParam::make(12'345);
  std::vector<TimerOf<TypeParam>> timers(kTicks);
  // From the last to the first. This order is cheap in every queue.
  for (Tick i = kTicks; i-- > 0;) ASSERT_TRUE(queue->schedule(timers[i], 12'346 + i));
  for (Tick i = 0; i < kTicks; ++i) {
    ASSERT_EQ(count_fired(*queue, 12'346 + i), 1u);
    ASSERT_FALSE(timers[i].is_pending());
  }
}

TYPED_TEST(TimerQueueRange, JumpingFromWakeupToWakeupFiresOnTimeInAFewJumps) {
  Rng random(20'240'601);
  for (int round = 0; round < 3'000; ++round) {
    const Tick start = random.next() >> random.below(64);
    const Tick deadline = start + ((kLastTick - start) >> random.below(64));
    if (deadline == start || !can_hold<TypeParam>(start, deadline)) continue;
    auto queue = TypeParam::make(start);
    std::array<TimerOf<TypeParam>, 2> timers;  // a timer alone in its slot needs only one jump
    for (auto& timer : timers) queue->schedule(timer, deadline);
    Tick wakeups = 0;
    while (!queue->empty()) {
      const std::optional<Tick> next = queue->next_wakeup();
      ASSERT_TRUE(next.has_value());
      ASSERT_GT(*next, queue->now()) << "no busy waiting";
      ASSERT_LE(*next, deadline);
      count_fired(*queue, *next);
      ++wakeups;
    }
    ASSERT_EQ(queue->now(), deadline);
    ASSERT_LE(wakeups, TypeParam::kNature.most_wakeups);
  }
}

template <class Case>
class TimerQueueSpan : public testing::Test {};
TYPED_TEST_SUITE(TimerQueueSpan, BoundedQueues, QueueNames);

TYPED_TEST(TimerQueueSpan, ADeadlineBeyondItIsRefusedAndNeverAliased) {
  constexpr Tick kSpan = TypeParam::kNature.span;
  for (const Tick start : {Tick{0}, Tick{1}, kSpan - 1, kSpan, Tick{1} << 40}) {
    auto queue = TypeParam::make(start);
    TimerOf<TypeParam> timer;
    for (const Tick beyond : {Tick{1}, Tick{2}, kSpan, kLastTick - kSpan - start}) {
      EXPECT_FALSE(queue->schedule(timer, start + kSpan + beyond));
      EXPECT_FALSE(queue->postpone(timer, start + kSpan + beyond));
      EXPECT_FALSE(timer.is_pending());
    }
    EXPECT_TRUE(queue->empty());
    EXPECT_EQ(queue->next_wakeup(), std::nullopt);

    EXPECT_TRUE(queue->schedule(timer, start + kSpan));
    EXPECT_EQ(count_fired(*queue, start + kSpan - 1), 0u);
    EXPECT_EQ(count_fired(*queue, start + kSpan), 1u);
    queue->check_invariants();
  }
}

TYPED_TEST(TimerQueueSpan, ARefusedTimerIsUnchanged) {
  constexpr Tick kBeyond = TypeParam::kNature.span + 1;
  auto queue = TypeParam::make(0);
  TimerOf<TypeParam> timer;
  EXPECT_TRUE(queue->schedule(timer, 40));
  EXPECT_FALSE(queue->schedule(timer, kBeyond));
  EXPECT_FALSE(queue->postpone(timer, kBeyond));
  EXPECT_TRUE(timer.is_pending());
  EXPECT_EQ(timer.deadline(), 40u);
  EXPECT_EQ(count_fired(*queue, 39), 0u);
  EXPECT_EQ(count_fired(*queue, 40), 1u);
}

TYPED_TEST(TimerQueueSpan, MovesWithNow) {
  constexpr Tick kSpan = TypeParam::kNature.span;
  auto queue = TypeParam::make(0);
  TimerOf<TypeParam> timer;
  EXPECT_FALSE(queue->schedule(timer, kSpan + 1));
  count_fired(*queue, 1);
  EXPECT_TRUE(queue->schedule(timer, kSpan + 1));
  // Inside a callback, now() is the target tick of the pass.
  TimerOf<TypeParam> next;
  queue->advance(kSpan + 9, [&](const auto&) {
    EXPECT_FALSE(queue->schedule(next, 2 * kSpan + 10));
    EXPECT_TRUE(queue->schedule(next, 2 * kSpan + 9));
  });
  EXPECT_EQ(count_fired(*queue, 2 * kSpan + 8), 0u);
  EXPECT_EQ(count_fired(*queue, 2 * kSpan + 9), 1u);
}

}  // namespace
}  // namespace detent

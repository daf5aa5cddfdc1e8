// Every small case: every start, every delay, and every tick when a timer is left alone, cancelled
// or moved. The queues are so small that a few ticks pass through all their levels. A timer must
// fire at its tick or not at all, and never early or late.
//
// DETENT_SMALL_TICKS sets the number of starts and delays.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <iostream>
#include <optional>

#include "wheel/test_queues.h"

namespace detent {
namespace {

Tick tick_count() {
  const char* text = std::getenv("DETENT_SMALL_TICKS");
  return text != nullptr ? std::strtoull(text, nullptr, 0) : 68;  // 4 × 4 × 4, and four more
}

// One queue serves all cases. Each case starts this many ticks after the previous case. The number
// is a multiple of the rounds of all levels.
constexpr Tick kTurns = 64 * 80;
/// The smallest span of the small queues. Some of these queues refuse later deadlines.
constexpr Tick kSmallestSpan = 64;

enum class Action { none, cancel, postpone, advance_it };

/// The life of one timer: it is scheduled at `start`, and something is done with it at `stop`.
struct SmallCase {
  Tick start;
  Tick delay;
  Tick stop;  // after start
  Action action;
  bool alone;  // if false, a second timer is due one tick later

  // The tick at which it must fire; empty: never.
  std::optional<Tick> fires_at() const {
    switch (action) {
      case Action::none:
        return start + delay;
      case Action::cancel:
        return std::nullopt;
      case Action::postpone:
        return start + delay + stop;
      case Action::advance_it:
        return start + stop + (delay - stop) / 2;
    }
    return std::nullopt;
  }
};

std::ostream& operator<<(std::ostream& out, const SmallCase& small) {
  return out << "start " << small.start << ", delay " << small.delay << ", stop " << small.stop
             << ", action " << static_cast<int>(small.action)
             << (small.alone ? "" : ", a neighbour");
}

template <class Queue>
class SmallLife {
 public:
  /// `queue` must be empty, and its time before small.start.
  SmallLife(Queue& queue, const SmallCase& small) : queue_(queue), small_(small) {
    queue_.advance(small.start, kIgnore);
  }

  // Returns the error; null if there is none.
  const char* run() {
    queue_.schedule(timer_, small_.start + small_.delay);
    if (!small_.alone) queue_.schedule(neighbour_, neighbours_deadline());
    if (small_.action != Action::none) {
      if (fires(small_.start + small_.stop)) return "early, before the action";
      act();
    }
    if (const std::optional<Tick> expected = small_.fires_at()) {
      if (*expected > queue_.now() && fires(*expected - 1)) return "early";
      if (!fires(*expected)) return "late";
    }
    if (fires(small_.start + 4 * small_.delay + 2)) return "again";
    return queue_.empty() ? nullptr : "the neighbour is late";
  }

 private:
  Tick neighbours_deadline() const { return small_.start + small_.delay + 1; }

  void act() {
    if (small_.action == Action::cancel) {
      queue_.cancel(timer_);
    } else if (small_.action == Action::postpone) {
      queue_.postpone(timer_, *small_.fires_at());
    } else {
      queue_.schedule(timer_, *small_.fires_at());
    }
  }

  // Whether the timer fires on the way to `tick`.
  bool fires(Tick tick) {
    bool fired = false;
    queue_.advance(tick, [&](const auto& timer) { fired = fired || &timer == &timer_; });
    return fired;
  }

  Queue& queue_;
  SmallCase small_;
  typename Queue::Timer timer_;
  typename Queue::Timer neighbour_;
};

template <class Case>
class TimerQueueExhaustive : public testing::Test {};
TYPED_TEST_SUITE(TimerQueueExhaustive, SmallQueues, QueueNames);

TYPED_TEST(TimerQueueExhaustive, EveryStartDelayAndActionFiresOnItsTick) {
  std::uint64_t cases = 0;
  auto queue = TypeParam::make(0);
  const auto check = [&](SmallCase small) {
    ++cases;
    small.start += cases * kTurns;
    const char* const wrong = SmallLife(*queue, small).run();
    ASSERT_EQ(wrong, nullptr) << wrong << ": " << small;
  };
  for (Tick start = 0; start < tick_count(); ++start) {
    for (Tick delay = 0; delay < tick_count(); ++delay) {
      for (const bool alone : {true, false}) {
        if (!can_hold<TypeParam>(start, start + delay + 1)) continue;
        ASSERT_NO_FATAL_FAILURE(check({start, delay, 0, Action::none, alone}));
        for (Tick stop = 0; stop < delay; ++stop) {
          for (const Action action : {Action::cancel, Action::postpone, Action::advance_it}) {
            if (!can_hold<TypeParam>(start + stop, start + delay + stop)) continue;
            ASSERT_NO_FATAL_FAILURE(check({start, delay, stop, action, alone}));
          }
        }
      }
    }
  }
  std::cout << cases << " cases\n";
  // Every size of the run must contain many cases that the queue accepts.
  const Tick held = std::min(tick_count(), kSmallestSpan);
  EXPECT_GT(cases, tick_count() * held * held);
}

// Tick by tick instead of in jumps: the wheel turns as slowly as possible.
TYPED_TEST(TimerQueueExhaustive, EveryStartAndDelayFiresOnItsTickInSingleSteps) {
  for (Tick start = 0; start < tick_count(); ++start) {
    for (Tick delay = 1; delay < tick_count() && can_hold<TypeParam>(start, start + delay);
         ++delay) {
      auto queue = TypeParam::make(start);
      TimerOf<TypeParam> timer;
      ASSERT_TRUE(queue->schedule(timer, start + delay));
      for (Tick now = start; now < start + delay; ++now) {
        ASSERT_EQ(count_fired(*queue, now), 0u) << "start " << start << ", delay " << delay;
        ASSERT_LE(queue->next_wakeup(), start + delay);
      }
      ASSERT_EQ(count_fired(*queue, start + delay), 1u) << "start " << start << ", delay " << delay;
    }
  }
}

}  // namespace
}  // namespace detent

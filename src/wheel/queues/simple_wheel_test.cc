// The special properties of SimpleWheel: its span, and slots wider than a tick.
#include "detent/queues/simple_wheel.h"

#include <gtest/gtest.h>

#include <cstddef>
#include <limits>
#include <optional>
#include <string>

#include "detent/tick.h"
#include "wheel/test_queues.h"

namespace detent {
namespace {

constexpr Tick kEndOfTime = std::numeric_limits<Tick>::max();

std::string error_of(const SimpleWheel::Options& options) {
  std::string error;
  EXPECT_FALSE(SimpleWheel::make(options, &error).has_value());
  EXPECT_FALSE(SimpleWheel::make(options).has_value()) << "and without asking why";
  return error;
}

TEST(SimpleWheel, RefusesSizesThatAreZeroOrTooBigAndNamesThem) {
  EXPECT_EQ(error_of({.slot_count = 0}), "slot_count is 0: a wheel has at least one slot");
  EXPECT_EQ(error_of({.slot_count = 8, .slot_width = 0}),
            "slot_width is 0: a slot is at least one tick wide");
  EXPECT_EQ(error_of({.slot_count = std::size_t{1} << 40}),
            "slot_count is 1099511627776: a wheel has at most 268435456 slots");
  EXPECT_EQ(error_of({.slot_count = 4, .slot_width = Tick{1} << 62}),
            "slot_width × slot_count is 4611686018427387904 × 4 ticks: more than 64 bits hold");
  EXPECT_TRUE(SimpleWheel::make({.slot_count = 3, .slot_width = Tick{1} << 62}).has_value());
}

// Every small slot count, width, start and delay. The wheel must accept a delay exactly if its span
// holds it. The timer must then fire at the first slot that is not before its deadline, by steps
// and by one jump.
TEST(SimpleWheel, AcceptsTheWholeSpanFromAnyTickAndFiresAtTheNextSlot) {
  for (std::size_t slot_count = 1; slot_count <= 5; ++slot_count) {
    for (Tick width = 1; width <= 4; ++width) {
      const Tick span = slot_count * width;
      for (Tick start = 0; start <= 2 * span; ++start) {
        for (Tick delay = 0; delay <= 3 * span; ++delay) {
          const SimpleWheel::Options options{slot_count, width, start};
          auto steps = SimpleWheel::make(options);
          auto jump = SimpleWheel::make(options);
          ASSERT_EQ(steps->span(), span);
          SimpleWheel::Timer timer;
          SimpleWheel::Timer jumped;
          ASSERT_EQ(steps->schedule(timer, start + delay), delay <= span);
          ASSERT_EQ(timer.is_pending(), delay <= span);
          ASSERT_EQ(jump->postpone(jumped, start + delay), delay <= span);
          if (delay > span) continue;

          const Tick due = (start + delay + width - 1) / width * width;
          if (due > start) {
            ASSERT_EQ(steps->next_wakeup(), due);
          }
          for (Tick now = start + 1; now < due; ++now) {
            ASSERT_EQ(steps->advance(now, kIgnore).fired, 0u);
            steps->check_invariants();
          }
          ASSERT_EQ(steps->advance(due, kIgnore).fired, 1u);
          ASSERT_EQ(jump->advance(due + 3 * span, kIgnore).fired, 1u);
          jump->check_invariants();
        }
      }
    }
  }
}

// A common bug of wheels that take the deadline modulo the ring: a delay of 9 s fires after 1 s.
TEST(SimpleWheel, NeverAliasesADeadlineBeyondItsSpan) {
  auto wheel = SimpleWheel::make({.slot_count = 8});
  SimpleWheel::Timer timer;
  for (const Tick delay : {9u, 10u, 16u, 17u}) {
    EXPECT_FALSE(wheel->schedule(timer, delay));
    EXPECT_FALSE(timer.is_pending());
  }
  EXPECT_FALSE(wheel->schedule(timer, kEndOfTime));
  EXPECT_EQ(wheel->advance(100, kIgnore).fired, 0u);
}

TEST(SimpleWheel, LeavesATimerUnchangedIfItRefusesToMoveIt) {
  auto wheel = SimpleWheel::make({.slot_count = 8});
  SimpleWheel::Timer timer;
  wheel->schedule(timer, 5);
  EXPECT_FALSE(wheel->schedule(timer, 9));
  EXPECT_FALSE(wheel->postpone(timer, 9));
  EXPECT_TRUE(timer.is_pending());
  EXPECT_EQ(timer.deadline(), 5u);
  EXPECT_EQ(wheel->size(), 1u);
  EXPECT_EQ(wheel->advance(4, kIgnore).fired, 0u);
  EXPECT_EQ(wheel->advance(5, kIgnore).fired, 1u);
}

// Inside a callback, now() is the target tick of the pass, and the span counts from this tick, even
// though the pass has not emptied all slots before it.
TEST(SimpleWheel, SpanCountsFromNowInsideACallbackOfALongJump) {
  auto wheel = SimpleWheel::make({.slot_count = 8});
  SimpleWheel::Timer first;
  SimpleWheel::Timer second;
  SimpleWheel::Timer again;
  wheel->schedule(first, 3);
  wheel->schedule(second, 8);
  std::size_t fired = 0;
  wheel->advance(1'000, [&](SimpleWheel::Timer&) {
    ++fired;
    EXPECT_TRUE(wheel->schedule(again, 1'008));
    EXPECT_FALSE(wheel->schedule(again, 1'009));
  });
  EXPECT_EQ(fired, 2u);
  EXPECT_EQ(wheel->next_wakeup(), 1'008u);
  EXPECT_EQ(wheel->advance(1'007, kIgnore).fired, 0u);
  EXPECT_EQ(wheel->advance(1'008, kIgnore).fired, 1u);
}

TEST(SimpleWheel, FiresAtTheLastTickThatIsNoMultipleOfTheWidth) {
  constexpr Tick kWidth = 1'000;
  auto wheel = SimpleWheel::make({.slot_count = 4, .slot_width = kWidth, .now = kEndOfTime - 100});
  SimpleWheel::Timer timer;
  SimpleWheel::Timer last;
  ASSERT_NE(kEndOfTime % kWidth, 0u);
  EXPECT_TRUE(wheel->schedule(timer, kEndOfTime - 50));
  EXPECT_TRUE(wheel->schedule(last, kEndOfTime));
  EXPECT_EQ(wheel->next_wakeup(), kEndOfTime);
  EXPECT_EQ(wheel->advance(kEndOfTime - 1, kIgnore).fired, 0u);
  EXPECT_EQ(wheel->advance(kEndOfTime, kIgnore).fired, 2u);
  EXPECT_TRUE(wheel->schedule(timer, kEndOfTime)) << "for the next call";
  EXPECT_EQ(wheel->next_wakeup(), kEndOfTime);
  EXPECT_EQ(wheel->advance(kEndOfTime, kIgnore).fired, 1u);
}

}  // namespace
}  // namespace detent

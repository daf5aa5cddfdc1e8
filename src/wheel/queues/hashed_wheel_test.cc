// The special properties of HashedWheel: timers of several rounds in one slot, and their cost.
#include "detent/queues/hashed_wheel.h"

#include <gtest/gtest.h>

#include <cstddef>
#include <limits>
#include <optional>
#include <string>
#include <vector>

#include "detent/tick.h"
#include "wheel/test_queues.h"

namespace detent {
namespace {

constexpr Tick kEndOfTime = std::numeric_limits<Tick>::max();

TEST(HashedWheel, RefusesSizesThatAreZeroOrTooBigAndNamesThem) {
  std::string error;
  EXPECT_FALSE(HashedWheel::make({.slot_count = 0}, &error).has_value());
  EXPECT_EQ(error, "slot_count is 0: a wheel has at least one slot");
  EXPECT_FALSE(HashedWheel::make({.slot_count = 8, .slot_width = 0}, &error).has_value());
  EXPECT_EQ(error, "slot_width is 0: a slot is at least one tick wide");
  EXPECT_FALSE(HashedWheel::make({.slot_count = 4, .slot_width = Tick{1} << 62}).has_value());
}

// Common bugs of wheels that count rounds: a timer fires a slot early, a round early or a round
// late.
TEST(HashedWheel, IsExactAtAnyNumberOfTurns) {
  for (const std::size_t slot_count : {1u, 2u, 7u, 10u, 64u, 65u}) {
    for (Tick start = 0; start < slot_count + 2; ++start) {
      for (const Tick rounds : {1u, 2u, 3u, 10u}) {
        for (const Tick delay :
             {rounds * slot_count - 1, rounds * slot_count, rounds * slot_count + 1}) {
          auto wheel = HashedWheel::make({.slot_count = slot_count, .now = start});
          HashedWheel::Timer timer;
          wheel->schedule(timer, start + delay);
          for (Tick now = start + 1; now < start + delay; ++now) {
            ASSERT_EQ(wheel->advance(now, kIgnore).fired, 0u) << slot_count << ", " << delay;
          }
          ASSERT_EQ(wheel->next_wakeup(), start + delay);
          ASSERT_EQ(wheel->advance(start + delay, kIgnore).fired, 1u)
              << slot_count << ", " << delay;
        }
      }
    }
  }
}

// A limit of 0 forbids any work. So if such a call finishes, it did no work: the hand passed a slot
// whose timers belong to later rounds without touching them.
TEST(HashedWheel, DoesNotTouchTimersOfLaterTurns) {
  auto wheel = HashedWheel::make({.slot_count = 8});
  std::vector<HashedWheel::Timer> timers(100);
  for (std::size_t i = 0; i < timers.size(); ++i) wheel->schedule(timers[i], 10'000 + i);
  for (Tick now = 1; now < 10'000; ++now) {
    ASSERT_FALSE(wheel->advance(now, kIgnore, 0).more);
  }
  EXPECT_TRUE(wheel->advance(10'000, kIgnore, 0).more);
}

// All timers are in one slot, and each is due in another round. Each timer may cost one look, at
// most 16 moves and the firing, but not a look in every round.
TEST(HashedWheel, LooksAtATimerOnceInAJumpOverManyTurns) {
  constexpr std::size_t kCount = 1'000;
  auto wheel = HashedWheel::make({.slot_count = 8});
  std::vector<HashedWheel::Timer> timers(kCount);
  for (std::size_t i = 0; i < kCount; ++i) wheel->schedule(timers[i], (i + 1) << 50);
  Tick latest = 0;
  const auto in_order = [&latest](HashedWheel::Timer& timer) {
    EXPECT_GT(timer.deadline(), latest);
    latest = timer.deadline();
  };
  const AdvanceResult result = wheel->advance(kEndOfTime, in_order, 18 * kCount);
  EXPECT_EQ(result.fired, kCount);
  EXPECT_FALSE(result.more);
}

TEST(HashedWheel, WakesUpExactlyAndJumpsThereInOneStep) {
  auto wheel = HashedWheel::make({.slot_count = 64});
  std::vector<HashedWheel::Timer> timers(64);
  for (unsigned i = 0; i < timers.size(); ++i) wheel->schedule(timers[i], Tick{1} << i);
  for (unsigned i = 0; i < timers.size(); ++i) {
    ASSERT_EQ(wheel->next_wakeup(), Tick{1} << i);
    ASSERT_EQ(wheel->advance(Tick{1} << i, kIgnore).fired, 1u);
  }
  EXPECT_EQ(wheel->next_wakeup(), std::nullopt);
}

// A slot does not notice immediately that its earliest timer was cancelled.
TEST(HashedWheel, WakesUpTooEarlyAtMostOnceASlot) {
  constexpr std::size_t kSlots = 8;
  constexpr Tick kFar = 1'000'000;
  auto wheel = HashedWheel::make({.slot_count = kSlots});
  std::vector<HashedWheel::Timer> cancelled(100);
  std::vector<HashedWheel::Timer> far(kSlots);
  for (std::size_t i = 0; i < cancelled.size(); ++i) wheel->schedule(cancelled[i], 1 + i);
  for (std::size_t i = 0; i < far.size(); ++i) wheel->schedule(far[i], kFar + i);
  for (HashedWheel::Timer& timer : cancelled) wheel->cancel(timer);
  std::size_t wakeups = 0;
  std::size_t fired = 0;
  for (; fired == 0; ++wakeups) {
    const Tick next = *wheel->next_wakeup();
    ASSERT_GT(next, wheel->now()) << "it goes on";
    ASSERT_LE(next, kFar);
    fired = wheel->advance(next, kIgnore).fired;
  }
  EXPECT_LE(wakeups, kSlots + 1);
  EXPECT_EQ(wheel->now(), kFar);
}

// A callback may schedule a timer into a slot that the jump has not visited yet.
TEST(HashedWheel, FiresATimerThatACallbackSchedulesOnlyWhenItIsDue) {
  auto wheel = HashedWheel::make({.slot_count = 8});
  HashedWheel::Timer first;
  HashedWheel::Timer second;
  HashedWheel::Timer later;
  for (const Tick to : {7u, 700u}) {
    const Tick start = wheel->now();
    wheel->schedule(first, start + 2);
    wheel->schedule(second, start + 5);
    std::size_t fired = 0;
    wheel->advance(start + to, [&](HashedWheel::Timer& timer) {
      ++fired;
      if (&timer == &first) wheel->schedule(later, start + 5 + 8 * 1'000);
    });
    EXPECT_EQ(fired, 2u);
    EXPECT_EQ(wheel->advance(start + 5 + 8 * 1'000 - 1, kIgnore).fired, 0u);
    EXPECT_EQ(wheel->advance(start + 5 + 8 * 1'000, kIgnore).fired, 1u);
  }
}

TEST(HashedWheel, FiresAtTheLastTickThatIsNoMultipleOfTheWidth) {
  for (const Tick start : {Tick{0}, kEndOfTime - 1'500, kEndOfTime - 1}) {
    auto wheel = HashedWheel::make({.slot_count = 4, .slot_width = 1'000, .now = start});
    HashedWheel::Timer timer;
    EXPECT_TRUE(wheel->schedule(timer, kEndOfTime));
    EXPECT_EQ(wheel->next_wakeup(), kEndOfTime);
    EXPECT_EQ(wheel->advance(kEndOfTime - 1, kIgnore).fired, 0u);
    EXPECT_EQ(wheel->advance(kEndOfTime, kIgnore).fired, 1u);
    wheel->check_invariants();
  }
}

}  // namespace
}  // namespace detent

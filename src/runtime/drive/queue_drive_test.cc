#include "detent/queue_drive.h"

#include <gtest/gtest.h>

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <optional>
#include <set>
#include <vector>

#include "base/rng.h"
#include "base/test_seed.h"
#include "wheel/test_queues.h"

namespace detent {
namespace {

using namespace std::chrono_literals;
using std::chrono::hours;
using std::chrono::nanoseconds;

// A queue, a clock that the test moves, and the drive that connects them.
template <class Case>
struct Driven {
  using Timer = TimerOf<Case>;

  std::size_t run(const Budget& budget = {}) { return drive.run_ready(budget, kIgnore).fired; }

  ManualClock clock;
  decltype(Case::make(0)) queue = Case::make(0);
  QueueDrive<typename Case::Queue> drive{*queue, clock};
};

// A HeapQueue, which never moves timers. Records the limits of the calls of `advance`.
class WatchedQueue : public HeapQueue {
 public:
  using HeapQueue::HeapQueue;

  template <class OnFire>
  AdvanceResult advance(Tick now, OnFire&& on_fire, std::size_t limit = kNoLimit) noexcept {
    limits.push_back(limit);
    return HeapQueue::advance(now, on_fire, limit);
  }

  std::vector<std::size_t> limits;
};
struct WatchedCase : PlainCase<WatchedQueue, QueueNature{}> {};

// Timers that are all due at the same time.
template <class Case>
struct DueTogether : Driven<Case> {
  explicit DueTogether(std::size_t count) : timers(count) {
    for (auto& timer : timers) this->drive.schedule_after(timer, 1s);
    this->clock.advance(1s);
  }

  std::vector<TimerOf<Case>> timers;
};

template <class Case>
class QueueDriveOf : public testing::Test {};
TYPED_TEST_SUITE(QueueDriveOf, EveryQueue, QueueNames);

// ---- When it fires.

TYPED_TEST(QueueDriveOf, FiresWhenTheDelayHasPassedAndNotBefore) {
  Driven<TypeParam> driven;
  driven.clock.advance(300us);  // between two ticks
  TimerOf<TypeParam> timer;
  EXPECT_TRUE(driven.drive.schedule_after(timer, 5ms));
  driven.clock.advance(5ms - 1ns);
  EXPECT_EQ(driven.run(), 0u);
  driven.clock.advance(1ns);
  EXPECT_EQ(driven.run(), 0u) << "the deadline is rounded up to a tick";
  EXPECT_EQ(driven.drive.time_to_next(), 700us);
  driven.clock.advance(700us);
  EXPECT_EQ(driven.run(), 1u);
  EXPECT_EQ(driven.drive.time_to_next(), std::nullopt);
}

TYPED_TEST(QueueDriveOf, ADeadlineOnATickIsNotLate) {
  Driven<TypeParam> driven;
  TimerOf<TypeParam> timer;
  driven.drive.schedule_at(timer, driven.clock.now() + 5ms);
  driven.clock.advance(5ms);
  EXPECT_EQ(driven.run(), 1u);
}

TYPED_TEST(QueueDriveOf, APassedInstantIsDueImmediately) {
  Driven<TypeParam> driven;
  driven.clock.advance(1h);
  driven.run();
  std::array<TimerOf<TypeParam>, 4> timers;
  EXPECT_TRUE(driven.drive.schedule_after(timers[0], 0s));
  EXPECT_TRUE(driven.drive.schedule_after(timers[1], hours::min()));
  EXPECT_TRUE(driven.drive.schedule_at(timers[2], MonotonicTime::min()));
  EXPECT_TRUE(driven.drive.schedule_at(timers[3], driven.clock.now()));
  EXPECT_EQ(driven.drive.time_to_next(), 0s);
  EXPECT_EQ(driven.run(), 4u);
}

// The present is between two ticks. If the deadlines were rounded up, they would be due at the next
// tick.
TYPED_TEST(QueueDriveOf, ANonPositiveDelayIsDueImmediatelyBetweenTwoTicks) {
  Driven<TypeParam> driven;
  driven.clock.advance(1h + 300us);
  std::array<TimerOf<TypeParam>, 3> timers;
  EXPECT_TRUE(driven.drive.schedule_after(timers[0], -5ms));
  EXPECT_TRUE(driven.drive.schedule_after(timers[1], 0s));
  EXPECT_TRUE(driven.drive.postpone_after(timers[2], hours::min()));
  EXPECT_EQ(driven.drive.time_to_next(), 0s);
  EXPECT_EQ(driven.run(), 3u);
}

TYPED_TEST(QueueDriveOf, DelaysBeyondTimeAreRefusedOrNeverDue) {
  Driven<TypeParam> driven;
  driven.clock.advance(1h);
  std::array<TimerOf<TypeParam>, 4> timers;
  const bool holds_all = TypeParam::kNature.span > Tick{1} << 62;
  EXPECT_EQ(driven.drive.schedule_after(timers[0], nanoseconds::max()), holds_all);
  EXPECT_EQ(driven.drive.schedule_after(timers[1], hours::max()), holds_all);
  EXPECT_EQ(driven.drive.schedule_after(
                timers[2], std::chrono::duration<double>(std::numeric_limits<double>::infinity())),
            holds_all);
  EXPECT_EQ(driven.drive.schedule_at(timers[3], MonotonicTime::max()), holds_all);
  EXPECT_EQ(driven.queue->size(), holds_all ? 4u : 0u);
  driven.clock.advance(1h);
  EXPECT_EQ(driven.run(), 0u);
}

TYPED_TEST(QueueDriveOf, CancelledDoesNotFire) {
  Driven<TypeParam> driven;
  TimerOf<TypeParam> timer;
  driven.drive.schedule_after(timer, 5ms);
  EXPECT_TRUE(driven.drive.cancel(timer));
  EXPECT_FALSE(driven.drive.cancel(timer));
  EXPECT_EQ(driven.drive.time_to_next(), std::nullopt);
  driven.clock.advance(5ms);
  EXPECT_EQ(driven.run(), 0u);
}

TYPED_TEST(QueueDriveOf, PostponedFiresAtTheLastDeadlineOnly) {
  Driven<TypeParam> driven;
  TimerOf<TypeParam> timer;
  driven.drive.schedule_after(timer, 2s);
  for (int i = 0; i < 10; ++i) {
    driven.clock.advance(1s);
    EXPECT_EQ(driven.run(), 0u);
    EXPECT_TRUE(driven.drive.postpone_after(timer, 2s));
  }
  driven.clock.advance(2s - 1ns);
  EXPECT_EQ(driven.run(), 0u);
  driven.clock.advance(1ns);
  EXPECT_EQ(driven.run(), 1u);
}

TYPED_TEST(QueueDriveOf, FiresAfterAJumpOfAYear) {
  Driven<TypeParam> driven;
  const Tick most = std::min(TypeParam::kNature.span, TypeParam::kNature.longest_step);
  const nanoseconds far = most > 365 * 24 * 3'600'000ull ? nanoseconds(365 * 24h) : most * 1ms;
  std::array<TimerOf<TypeParam>, 3> timers;
  EXPECT_TRUE(driven.drive.schedule_after(timers[0], far));
  EXPECT_TRUE(driven.drive.schedule_after(timers[1], far / 2));
  EXPECT_TRUE(driven.drive.schedule_after(timers[2], 1ms));
  driven.clock.advance(far - 1ns);
  EXPECT_EQ(driven.run(), 2u);
  driven.clock.advance(1ns);
  EXPECT_EQ(driven.run(), 1u);
}

// ---- Bounded spans, which are measured in ticks of 1 ms here.

template <class Case>
class QueueDriveOfBounded : public testing::Test {};
TYPED_TEST_SUITE(QueueDriveOfBounded, BoundedQueues, QueueNames);

TYPED_TEST(QueueDriveOfBounded, TheSpanIsMeasuredFromThePresentAndNotFromTheLastRun) {
  Driven<TypeParam> driven;
  const nanoseconds span = TypeParam::kNature.span * 1ms;
  driven.clock.advance(5s);  // the event loop slept
  TimerOf<TypeParam> timer;
  EXPECT_TRUE(driven.drive.schedule_after(timer, span));
  EXPECT_FALSE(driven.drive.schedule_after(timer, span + 1ms));
  EXPECT_EQ(timer.deadline(), TypeParam::kNature.span + 5'000) << "the deadline is unchanged";
  EXPECT_FALSE(driven.drive.postpone_after(timer, span + 1ms));
  driven.clock.advance(4s);
  EXPECT_TRUE(driven.drive.postpone_after(timer, span));
}

TYPED_TEST(QueueDriveOfBounded, TimersThatBecomeDueStillFireInRunReady) {
  Driven<TypeParam> driven;
  TimerOf<TypeParam> due;
  TimerOf<TypeParam> far;
  driven.drive.schedule_after(due, 1s);
  driven.clock.advance(2s);
  driven.drive.schedule_after(far, TypeParam::kNature.span * 1ms);  // whether it is refused or not
  EXPECT_TRUE(due.is_pending());
  EXPECT_EQ(driven.drive.time_to_next(), 0s);
  EXPECT_EQ(driven.run(), 1u);
}

TYPED_TEST(QueueDriveOfBounded, ACallbackMayBeRefused) {
  Driven<TypeParam> driven;
  TimerOf<TypeParam> timer;
  driven.drive.schedule_after(timer, 1s);
  driven.clock.advance(1s);
  driven.drive.run_ready({}, [&](auto& fired) noexcept {
    EXPECT_FALSE(driven.drive.schedule_after(fired, TypeParam::kNature.span * 1ms + 1ms));
    EXPECT_TRUE(driven.drive.schedule_after(fired, TypeParam::kNature.span * 1ms));
  });
  EXPECT_TRUE(timer.is_pending());
}

// ---- Budgets.

TYPED_TEST(QueueDriveOf, ACountLimitsEachCallAndAllTimersFireInTheEnd) {
  DueTogether<TypeParam> many(1'000);
  std::size_t fired = 0;
  std::size_t calls = 0;
  for (bool more = true; more; ++calls) {
    EXPECT_EQ(many.drive.time_to_next(), 0s);
    const AdvanceResult result = many.drive.run_ready({.count = 10}, kIgnore);
    fired += result.fired;
    more = result.more;
    EXPECT_LE(result.fired, 10u);
    EXPECT_EQ(many.queue->size(), 1'000 - fired);
  }
  EXPECT_EQ(fired, 1'000u);
  EXPECT_LE(calls, 1'000u * 12 / 10 + 1) << "each is moved at most ten times, and fired";
}

TEST(QueueDrive, NeverAsksForMoreThanItsCount) {
  for (const Budget budget : {Budget{.count = 100}, Budget{.count = 100, .time = 1h}}) {
    DueTogether<WatchedCase> many(1'000);
    const AdvanceResult result = many.drive.run_ready(budget, kIgnore);
    EXPECT_EQ(result.fired, 100u);
    EXPECT_TRUE(result.more);
    std::size_t asked = 0;
    for (const std::size_t limit : many.queue->limits) asked += limit;
    EXPECT_EQ(asked, 100u);
  }
}

TYPED_TEST(QueueDriveOf, ACountOfZeroDoesNothingAndReportsWhetherTimersAreDue) {
  DueTogether<TypeParam> one(1);
  EXPECT_TRUE(one.drive.run_ready({.count = 0}, kIgnore).more);
  EXPECT_TRUE(one.drive.run_ready({.count = 0, .time = 1s}, kIgnore).more);
  EXPECT_EQ(one.queue->size(), 1u);
  EXPECT_EQ(one.run(), 1u);
  EXPECT_FALSE(one.drive.run_ready({.count = 0}, kIgnore).more);
}

TYPED_TEST(QueueDriveOf, ATimeIsExactToTheCallback) {
  for (const nanoseconds each : {10us, 30us, 300us}) {
    DueTogether<TypeParam> many(1'000);
    std::size_t calls = 0;
    for (bool more = true; more; ++calls) {
      const MonotonicTime begin = many.clock.now();
      const AdvanceResult result =
          many.drive.run_ready({.time = 1ms}, [&](auto&) noexcept { many.clock.advance(each); });
      more = result.more;
      if (!more) break;
      EXPECT_GE(many.clock.now() - begin, 1ms) << "it stopped before its time was over";
      EXPECT_LT(many.clock.now() - begin, 1ms + each);
      EXPECT_EQ(many.drive.time_to_next(), 0s);
    }
    EXPECT_TRUE(many.queue->empty());
    EXPECT_GE(calls, 9u);
  }
}

TEST(QueueDrive, OverrunsByABatchAtMostWhenCallbacksBecomeSlow) {
  DueTogether<WatchedCase> many(1'000);
  std::size_t fired = 0;
  const auto turn_slow = [&](auto&) noexcept {
    if (++fired > 200) many.clock.advance(10ms);
  };
  many.drive.run_ready({.time = 2ms}, turn_slow);
  EXPECT_GT(fired, 200u);
  EXPECT_LE(fired, 200u + many.drive.kLongestBatch);
  const std::size_t before = fired;
  many.drive.run_ready({.time = 2ms}, turn_slow);
  EXPECT_EQ(fired, before + 1) << "it remembers the duration of callbacks";
}

TEST(QueueDrive, LooksAtTheClockRarelyWhenCallbacksAreQuick) {
  DueTogether<WatchedCase> many(6'401);
  EXPECT_EQ(many.run({.time = 1s}), 6'401u);
  EXPECT_EQ(many.queue->limits.size(), 101u) << "one to learn from, then batches of 64";
}

TEST(QueueDrive, WithoutATimeItIsOneCallOfTheQueue) {
  DueTogether<WatchedCase> many(1'000);
  many.run();
  EXPECT_EQ(many.queue->limits, std::vector<std::size_t>{kNoLimit});
}

TYPED_TEST(QueueDriveOf, ATimeOfZeroStillMakesProgress) {
  for (const nanoseconds none : {nanoseconds{0}, nanoseconds::min()}) {
    DueTogether<TypeParam> ten(10);
    std::size_t calls = 1;
    while (ten.drive.run_ready({.time = none}, kIgnore).more) ASSERT_LT(++calls, 200u);
    EXPECT_TRUE(ten.queue->empty());
  }
}

// ---- Changes while it runs.

TYPED_TEST(QueueDriveOf, TimersThatBecomeDueDuringACallWaitForTheNextCall) {
  for (const nanoseconds time : {nanoseconds::max(), nanoseconds{1h}}) {
    Driven<TypeParam> driven;
    std::array<TimerOf<TypeParam>, 5> timers;
    for (std::size_t i = 0; i < timers.size(); ++i) {
      driven.drive.schedule_after(timers[i], i < 2 ? 1s : 2s);
    }
    driven.clock.advance(1s);
    const auto slow = [&](auto&) noexcept { driven.clock.advance(1s); };
    for (const std::size_t due : {2u, 3u}) {
      EXPECT_EQ(driven.drive.time_to_next(), 0s);
      const AdvanceResult result = driven.drive.run_ready({.time = time}, slow);
      EXPECT_EQ(result.fired, due);
      EXPECT_FALSE(result.more) << "no budget cut it short";
    }
  }
}

TYPED_TEST(QueueDriveOf, CallbacksThatScheduleDueTimersDoNotKeepItRunning) {
  for (const Budget budget : {Budget{}, Budget{.time = 1h}, Budget{.count = 350, .time = 1h}}) {
    DueTogether<TypeParam> many(200);
    for (auto& timer : many.timers) many.drive.schedule_after(timer, 0s);
    for (int call = 0; call < 10; ++call) {
      std::vector<int> fired(200, 0);
      many.drive.run_ready(budget, [&](auto& timer) noexcept {
        // A limited number, so that the test ends even if the code is wrong.
        int& times = fired[static_cast<std::size_t>(&timer - many.timers.data())];
        many.drive.schedule_after(timer, ++times < 5 ? 0s : 1s);
      });
      EXPECT_LE(*std::max_element(fired.begin(), fired.end()), 1);
      EXPECT_EQ(many.queue->size(), 200u);
      EXPECT_LE(many.drive.time_to_next(), 1ms);
      many.clock.advance(1ms);
    }
  }
}

TYPED_TEST(QueueDriveOf, CallbacksMayScheduleCancelAndDestroy) {
  Driven<TypeParam> driven;
  std::array<std::unique_ptr<TimerOf<TypeParam>>, 6> timers;
  for (auto& timer : timers) {
    timer = std::make_unique<TimerOf<TypeParam>>();
    driven.drive.schedule_after(*timer, 1s);
  }
  driven.clock.advance(1s);
  std::size_t fired = 0;
  driven.drive.run_ready({.time = 1h}, [&](auto& timer) noexcept {
    ++fired;
    for (auto& other : timers) {
      if (other.get() == &timer) {
        other.reset();
      } else if (other != nullptr && fired == 1) {
        if (&other == &timers[0] || &other == &timers[5]) driven.drive.cancel(*other);
        if (&other == &timers[1] || &other == &timers[4]) driven.drive.schedule_after(*other, 1s);
      }
    }
    driven.queue->check_invariants();
  });
  const std::size_t moved = driven.queue->size();
  EXPECT_GE(fired, 2u);
  EXPECT_LE(fired, 3u);
  EXPECT_GE(moved, 1u);
  driven.clock.advance(1s);
  EXPECT_EQ(driven.run(), moved);
}

TYPED_TEST(QueueDriveOf, TimeToNextIsZeroInACallback) {
  DueTogether<TypeParam> two(2);
  two.drive.run_ready(
      {}, [&](auto&) noexcept { EXPECT_EQ(two.drive.time_to_next().value_or(0s), 0s); });
}

// ---- Timers that are numbers.

static_assert(NumberQueue<DenseWheel> && !TimerQueue<DenseWheel>);
static_assert(TimerQueue<TimerWheel> && !NumberQueue<TimerWheel>);

TEST(QueueDrive, TimersOfADenseWheelAreNumbers) {
  ManualClock clock;
  DenseWheel wheel({.max_count = 100});
  QueueDrive drive(wheel, clock);
  EXPECT_TRUE(drive.schedule_after(7, 5ms));
  EXPECT_TRUE(drive.schedule_at(8, clock.now() + 6ms));
  EXPECT_TRUE(drive.schedule_after(9, 7ms));
  EXPECT_FALSE(drive.schedule_after(100, 1ms)) << "beyond the wheel's maximum";
  EXPECT_TRUE(drive.cancel(8));
  EXPECT_TRUE(drive.postpone_after(7, 10ms));
  std::vector<std::uint32_t> fired;
  const auto repeat = [&](std::uint32_t number) noexcept {
    fired.push_back(number);
    if (fired.size() < 4) drive.schedule_after(number, 20ms);
  };
  while (const std::optional<nanoseconds> sleep = drive.time_to_next()) {
    clock.advance(*sleep);
    drive.run_ready({.count = 1, .time = 1ms}, repeat);
  }
  EXPECT_EQ(fired, (std::vector<std::uint32_t>{9, 7, 9, 7, 9}));
  EXPECT_EQ(clock.now(), MonotonicTime{47ms});
}

// ---- An event loop that sleeps.

// An event loop sleeps exactly as long as time_to_next() says, until no timer is left.
struct Sleeps {
  std::size_t wakeups = 0;
  std::size_t in_vain = 0;  // wake-ups in which no timer fired
};

template <class Case>
Sleeps sleep_through(Driven<Case>& driven) {
  Sleeps sleeps;
  while (const std::optional<nanoseconds> sleep = driven.drive.time_to_next()) {
    if (*sleep <= 0s) {
      ADD_FAILURE() << "it would spin";
      break;
    }
    driven.clock.advance(*sleep);
    ++sleeps.wakeups;
    const MonotonicTime now = driven.clock.now();
    const auto is_on_time = [&](auto& timer) noexcept {
      EXPECT_EQ(MonotonicTime{timer.deadline() * 1ms}, now);
    };
    if (driven.drive.run_ready({}, is_on_time).fired == 0) ++sleeps.in_vain;
  }
  return sleeps;
}

TYPED_TEST(QueueDriveOf, WakesOnceADeadlineAndALittleForCascades) {
  const std::uint64_t seed = test_seed();
  SCOPED_TRACE(replay_hint(seed));
  Rng rng(seed);
  Driven<TypeParam> driven;
  std::vector<TimerOf<TypeParam>> timers(1'000);
  std::set<Tick> deadlines;
  for (auto& timer : timers) {
    const Tick delay =
        1 +
        rng.below(static_cast<std::uint32_t>(std::min<Tick>(TypeParam::kNature.span, 3'600'000)));
    driven.drive.schedule_after(timer, delay * 1ms);
    deadlines.insert(delay);
  }
  const Sleeps sleeps = sleep_through(driven);
  EXPECT_EQ(sleeps.wakeups, deadlines.size() + sleeps.in_vain);
  const Tick most_wakeups = TypeParam::kNature.most_wakeups;
  EXPECT_LE(sleeps.in_vain, deadlines.size() * (most_wakeups - 1));
  if (most_wakeups == 8) {
    EXPECT_LE(sleeps.in_vain, 200u) << "with 256 slots a level few deadlines share a coarse one";
  }
}

}  // namespace
}  // namespace detent

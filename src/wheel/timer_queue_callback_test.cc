// What a callback can see and do: everything except advancing or destroying its own queue. For
// every queue.
#include <gtest/gtest.h>

#include <array>
#include <memory>
#include <optional>
#include <vector>

#include "wheel/test_queues.h"

namespace detent {
namespace {

template <class Case>
class TimerQueueCallback : public testing::Test {};
TYPED_TEST_SUITE(TimerQueueCallback, EveryQueue, QueueNames);

TYPED_TEST(TimerQueueCallback, SeesItsTimerNotPendingAndNotCounted) {
  auto queue = TypeParam::make(0);
  std::array<TimerOf<TypeParam>, 2> timers;
  for (auto& timer : timers) queue->schedule(timer, 5);
  std::vector<std::size_t> sizes;
  queue->advance(5, [&](auto& timer) {
    EXPECT_FALSE(timer.is_pending());
    EXPECT_EQ(timer.deadline(), 5u);
    sizes.push_back(queue->size());
  });
  EXPECT_EQ(sizes, (std::vector<std::size_t>{1, 0}));
}

TYPED_TEST(TimerQueueCallback, SeesTheTargetTickOfThePass) {
  auto queue = TypeParam::make(0);
  std::array<TimerOf<TypeParam>, 2> timers;
  queue->schedule(timers[0], 5);
  queue->schedule(timers[1], 5'000);
  queue->advance(7'000, [&](auto&) { EXPECT_EQ(queue->now(), 7'000u); });
}

TYPED_TEST(TimerQueueCallback, ReschedulingItselfAtOrBeforeNowWaitsForTheNextAdvance) {
  for (const Tick again : {Tick{0}, Tick{99}, Tick{100}}) {
    auto queue = TypeParam::make(0);
    TimerOf<TypeParam> timer;
    queue->schedule(timer, 50);
    const auto on_fire = [&](auto& fired) { queue->schedule(fired, again); };

    const AdvanceResult first = queue->advance(100, on_fire);
    EXPECT_EQ(first.fired, 1u);
    EXPECT_FALSE(first.more) << "waiting for the next advance is not unfinished work";
    EXPECT_EQ(queue->now(), 100u);
    EXPECT_EQ(queue->next_wakeup(), 100u);
    queue->check_invariants();
    EXPECT_EQ(queue->advance(100, on_fire).fired, 1u);
  }
}

TYPED_TEST(TimerQueueCallback, ReschedulingItselfLater) {
  auto queue = TypeParam::make(0);
  TimerOf<TypeParam> timer;
  queue->schedule(timer, 10);
  std::vector<Tick> fired_at;
  const auto every_ten = [&](auto& fired) {
    fired_at.push_back(queue->now());
    queue->schedule(fired, fired.deadline() + 10);
  };
  for (Tick now = 1; now <= 45; ++now) queue->advance(now, every_ten);
  EXPECT_EQ(fired_at, (std::vector<Tick>{10, 20, 30, 40}));
}

TYPED_TEST(TimerQueueCallback, CancellingItselfDoesNothing) {
  auto queue = TypeParam::make(0);
  TimerOf<TypeParam> timer;
  queue->schedule(timer, 10);
  queue->advance(10, [&](auto& fired) { EXPECT_FALSE(queue->cancel(fired)); });
  EXPECT_TRUE(queue->empty());
}

TYPED_TEST(TimerQueueCallback, CancelsAnotherOfTheSameTickAndOfALaterOne) {
  for (const Tick other_deadline : {Tick{10}, Tick{11}, Tick{80}, Tick{5'000}}) {
    auto queue = TypeParam::make(0);
    std::array<TimerOf<TypeParam>, 3> timers;
    queue->schedule(timers[0], 10);
    queue->schedule(timers[1], other_deadline);
    queue->schedule(timers[2], other_deadline);
    std::size_t cancelled = 0;
    const AdvanceResult result = queue->advance(6'000, [&](auto& fired) {
      for (auto& timer : timers) {
        if (&timer != &fired && queue->cancel(timer)) ++cancelled;
      }
      queue->check_invariants();
    });
    EXPECT_EQ(result.fired, 1u);
    EXPECT_EQ(cancelled, 2u);
    EXPECT_FALSE(result.more);
    EXPECT_TRUE(queue->empty());
    queue->check_invariants();
  }
}

TYPED_TEST(TimerQueueCallback, MayDestroyItsOwnTimer) {
  auto queue = TypeParam::make(0);
  auto timer = std::make_unique<TimerOf<TypeParam>>();
  queue->schedule(*timer, 10);
  EXPECT_EQ(queue->advance(10, [&](auto&) { timer.reset(); }).fired, 1u);
  queue->check_invariants();
}

TYPED_TEST(TimerQueueCallback, MayRescheduleThenDestroyItsOwnTimer) {
  auto queue = TypeParam::make(0);
  auto timer = std::make_unique<TimerOf<TypeParam>>();
  queue->schedule(*timer, 10);
  queue->advance(10, [&](auto& fired) {
    queue->schedule(fired, 0);
    timer.reset();
  });
  EXPECT_TRUE(queue->empty());
  EXPECT_EQ(queue->advance(20, kIgnore).fired, 0u);
}

TYPED_TEST(TimerQueueCallback, MayDestroyOtherDueTimers) {
  for (const Tick other_deadline : {Tick{10}, Tick{12}, Tick{700}}) {
    auto queue = TypeParam::make(0);
    TimerOf<TypeParam> first;
    auto others = std::make_unique<std::array<TimerOf<TypeParam>, 5>>();
    queue->schedule(first, 10);
    for (auto& timer : *others) queue->schedule(timer, other_deadline);
    EXPECT_EQ(queue->advance(1'000, [&](auto&) { others.reset(); }).fired, 1u);
    EXPECT_TRUE(queue->empty());
    queue->check_invariants();
  }
}

TYPED_TEST(TimerQueueCallback, PostponesAnotherOutOfThisAdvance) {
  auto queue = TypeParam::make(0);
  std::array<TimerOf<TypeParam>, 2> timers;
  for (auto& timer : timers) queue->schedule(timer, 10);
  const auto postpone_the_other = [&](auto& fired) {
    queue->postpone(&fired == &timers[0] ? timers[1] : timers[0], 200);
  };
  EXPECT_EQ(queue->advance(100, postpone_the_other).fired, 1u);
  EXPECT_EQ(queue->size(), 1u);
  EXPECT_EQ(queue->advance(199, kIgnore).fired, 0u);
  EXPECT_EQ(queue->advance(200, kIgnore).fired, 1u);
}

TYPED_TEST(TimerQueueCallback, PostponesAnotherWithinThisAdvanceSoThatItWaits) {
  auto queue = TypeParam::make(0);
  std::array<TimerOf<TypeParam>, 2> timers;
  queue->schedule(timers[0], 10);
  queue->schedule(timers[1], 20);
  const AdvanceResult result = queue->advance(100, [&](auto&) { queue->postpone(timers[1], 50); });
  EXPECT_EQ(result.fired, 1u);
  EXPECT_EQ(queue->advance(100, kIgnore).fired, 1u);
}

TYPED_TEST(TimerQueueCallback, PostponesItself) {
  auto queue = TypeParam::make(0);
  TimerOf<TypeParam> timer;
  queue->schedule(timer, 10);
  queue->advance(10, [&](auto& fired) { queue->postpone(fired, 30); });
  EXPECT_EQ(queue->advance(29, kIgnore).fired, 0u);
  EXPECT_EQ(queue->advance(30, kIgnore).fired, 1u);
}

TYPED_TEST(TimerQueueCallback, MovesADueTimerToLater) {
  auto queue = TypeParam::make(0);
  std::array<TimerOf<TypeParam>, 2> timers;
  queue->schedule(timers[0], 10);
  queue->schedule(timers[1], 10);
  EXPECT_EQ(queue->advance(10, [&](auto&) { queue->schedule(timers[1], 11); }).fired, 1u);
  EXPECT_EQ(queue->advance(11, kIgnore).fired, 1u);
}

TYPED_TEST(TimerQueueCallback, SchedulesAFreshTimerThatIsDueLaterOnTheSameQueue) {
  auto queue = TypeParam::make(0);
  TimerOf<TypeParam> first;
  TimerOf<TypeParam> second;
  queue->schedule(first, 10);
  queue->advance(20, [&](auto&) {
    queue->schedule(second, 21);
    EXPECT_EQ(queue->next_wakeup(), 20u);
    queue->check_invariants();
  });
  EXPECT_EQ(queue->next_wakeup(), 21u);
  EXPECT_EQ(queue->advance(21, kIgnore).fired, 1u);
}

TYPED_TEST(TimerQueueCallback, MayBeAnyCallable) {
  struct Counter {
    int count = 0;
    void operator()(TimerOf<TypeParam>&) { ++count; }
  };
  auto queue = TypeParam::make(0);
  TimerOf<TypeParam> timer;
  Counter counter;
  queue->schedule(timer, 1);
  queue->advance(1, counter);
  EXPECT_EQ(counter.count, 1) << "it is called, not copied";
}

TYPED_TEST(TimerQueueCallback, MustNotAdvanceItsOwnQueue) {
  auto queue = TypeParam::make(0);
  TimerOf<TypeParam> timer;
  queue->schedule(timer, 1);
  EXPECT_DEATH(queue->advance(1, [&](auto&) { queue->advance(2, kIgnore); }), "check failed");
}

TYPED_TEST(TimerQueueCallback, MustNotDestroyItsOwnQueue) {
  auto queue = TypeParam::make(0);
  TimerOf<TypeParam> timer;
  queue->schedule(timer, 1);
  EXPECT_DEATH(queue->advance(1, [&](auto&) { queue.reset(); }), "check failed");
}

TYPED_TEST(TimerQueueCallback, MustNotThrow) {
  auto queue = TypeParam::make(0);
  TimerOf<TypeParam> timer;
  queue->schedule(timer, 1);
  static_assert(noexcept(queue->advance(1, kIgnore)));
  EXPECT_DEATH(queue->advance(1, [](auto&) { throw 1; }), "terminate");
}

}  // namespace
}  // namespace detent

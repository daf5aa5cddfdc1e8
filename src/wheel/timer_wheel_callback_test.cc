// What a callback sees and what it may do: anything but advance or destroy its own wheel.
#include <gtest/gtest.h>

#include <array>
#include <memory>
#include <optional>
#include <vector>

#include "detent/timer_wheel.h"

namespace detent {
namespace {

TEST(TimerWheelCallback, SeesItsTimerNotPendingAndNotCounted) {
  TimerWheel wheel;
  std::array<Timer, 2> timers;
  for (Timer& timer : timers) wheel.schedule(timer, 5);
  std::vector<std::size_t> sizes;
  wheel.advance(5, [&](Timer& timer) {
    EXPECT_FALSE(timer.is_pending());
    EXPECT_EQ(timer.deadline(), 5u);
    sizes.push_back(wheel.size());
  });
  EXPECT_EQ(sizes, (std::vector<std::size_t>{1, 0}));
}

TEST(TimerWheelCallback, SeesTheTickThatThePassGoesTo) {
  TimerWheel wheel;
  std::array<Timer, 2> timers;
  wheel.schedule(timers[0], 5);
  wheel.schedule(timers[1], 5'000);
  wheel.advance(7'000, [&](Timer&) { EXPECT_EQ(wheel.now(), 7'000u); });
}

TEST(TimerWheelCallback, ReschedulingItselfAtOrBeforeNowWaitsForTheNextAdvance) {
  for (const Tick again : {Tick{0}, Tick{99}, Tick{100}}) {
    TimerWheel wheel;
    Timer timer;
    wheel.schedule(timer, 50);
    const auto on_fire = [&](Timer& fired) { wheel.schedule(fired, again); };

    const AdvanceResult first = wheel.advance(100, on_fire);
    EXPECT_EQ(first.fired, 1u);
    EXPECT_FALSE(first.more) << "waiting for the next advance is not unfinished work";
    EXPECT_EQ(wheel.now(), 100u);
    EXPECT_EQ(wheel.next_wakeup(), 100u);
    wheel.check_invariants();
    EXPECT_EQ(wheel.advance(100, on_fire).fired, 1u);
  }
}

TEST(TimerWheelCallback, ReschedulingItselfLater) {
  TimerWheel wheel;
  Timer timer;
  wheel.schedule(timer, 10);
  std::vector<Tick> fired_at;
  const auto every_ten = [&](Timer& fired) {
    fired_at.push_back(wheel.now());
    wheel.schedule(fired, fired.deadline() + 10);
  };
  for (Tick now = 1; now <= 45; ++now) wheel.advance(now, every_ten);
  EXPECT_EQ(fired_at, (std::vector<Tick>{10, 20, 30, 40}));
}

TEST(TimerWheelCallback, CancellingItselfDoesNothing) {
  TimerWheel wheel;
  Timer timer;
  wheel.schedule(timer, 10);
  wheel.advance(10, [&](Timer& fired) { EXPECT_FALSE(wheel.cancel(fired)); });
  EXPECT_TRUE(wheel.empty());
}

TEST(TimerWheelCallback, CancelsAnotherOfTheSameTickAndOfALaterOne) {
  for (const Tick other_deadline : {Tick{10}, Tick{11}, Tick{80}, Tick{5'000}}) {
    TimerWheel wheel;
    std::array<Timer, 3> timers;
    wheel.schedule(timers[0], 10);
    wheel.schedule(timers[1], other_deadline);
    wheel.schedule(timers[2], other_deadline);
    std::size_t cancelled = 0;
    const AdvanceResult result = wheel.advance(6'000, [&](Timer& fired) {
      for (Timer& timer : timers) {
        if (&timer != &fired && wheel.cancel(timer)) ++cancelled;
      }
      wheel.check_invariants();
    });
    EXPECT_EQ(result.fired, 1u);
    EXPECT_EQ(cancelled, 2u);
    EXPECT_FALSE(result.more);
    EXPECT_TRUE(wheel.empty());
    wheel.check_invariants();
  }
}

TEST(TimerWheelCallback, MayDestroyItsOwnTimer) {
  TimerWheel wheel;
  auto timer = std::make_unique<Timer>();
  wheel.schedule(*timer, 10);
  EXPECT_EQ(wheel.advance(10, [&](Timer&) { timer.reset(); }).fired, 1u);
  wheel.check_invariants();
}

TEST(TimerWheelCallback, MayRescheduleThenDestroyItsOwnTimer) {
  TimerWheel wheel;
  auto timer = std::make_unique<Timer>();
  wheel.schedule(*timer, 10);
  wheel.advance(10, [&](Timer& fired) {
    wheel.schedule(fired, 0);
    timer.reset();
  });
  EXPECT_TRUE(wheel.empty());
  EXPECT_EQ(wheel.advance(20, [](Timer&) {}).fired, 0u);
}

TEST(TimerWheelCallback, MayDestroyOthersThatAreDue) {
  for (const Tick other_deadline : {Tick{10}, Tick{12}, Tick{700}}) {
    TimerWheel wheel;
    Timer first;
    auto others = std::make_unique<std::array<Timer, 5>>();
    wheel.schedule(first, 10);
    for (Timer& timer : *others) wheel.schedule(timer, other_deadline);
    EXPECT_EQ(wheel.advance(1'000, [&](Timer&) { others.reset(); }).fired, 1u);
    EXPECT_TRUE(wheel.empty());
    wheel.check_invariants();
  }
}

TEST(TimerWheelCallback, PostponesAnotherOutOfThisAdvance) {
  TimerWheel wheel;
  std::array<Timer, 2> timers;
  for (Timer& timer : timers) wheel.schedule(timer, 10);
  const auto postpone_the_other = [&](Timer& fired) {
    wheel.postpone(&fired == &timers[0] ? timers[1] : timers[0], 200);
  };
  EXPECT_EQ(wheel.advance(100, postpone_the_other).fired, 1u);
  EXPECT_EQ(wheel.size(), 1u);
  EXPECT_EQ(wheel.advance(199, [](Timer&) {}).fired, 0u);
  EXPECT_EQ(wheel.advance(200, [](Timer&) {}).fired, 1u);
}

TEST(TimerWheelCallback, PostponesAnotherWithinThisAdvanceSoThatItWaits) {
  TimerWheel wheel;
  std::array<Timer, 2> timers;
  wheel.schedule(timers[0], 10);
  wheel.schedule(timers[1], 20);
  const AdvanceResult result = wheel.advance(100, [&](Timer&) { wheel.postpone(timers[1], 50); });
  EXPECT_EQ(result.fired, 1u);
  EXPECT_EQ(wheel.advance(100, [](Timer&) {}).fired, 1u);
}

TEST(TimerWheelCallback, PostponesItself) {
  TimerWheel wheel;
  Timer timer;
  wheel.schedule(timer, 10);
  wheel.advance(10, [&](Timer& fired) { wheel.postpone(fired, 30); });
  EXPECT_EQ(wheel.advance(29, [](Timer&) {}).fired, 0u);
  EXPECT_EQ(wheel.advance(30, [](Timer&) {}).fired, 1u);
}

TEST(TimerWheelCallback, MovesADueTimerToLater) {
  TimerWheel wheel;
  std::array<Timer, 2> timers;
  wheel.schedule(timers[0], 10);
  wheel.schedule(timers[1], 10);
  EXPECT_EQ(wheel.advance(10, [&](Timer&) { wheel.schedule(timers[1], 11); }).fired, 1u);
  EXPECT_EQ(wheel.advance(11, [](Timer&) {}).fired, 1u);
}

TEST(TimerWheelCallback, SchedulesAFreshTimerThatIsDueLaterOnTheSameWheel) {
  TimerWheel wheel;
  Timer first;
  Timer second;
  wheel.schedule(first, 10);
  wheel.advance(20, [&](Timer&) {
    wheel.schedule(second, 21);
    EXPECT_EQ(wheel.next_wakeup(), 20u);
    wheel.check_invariants();
  });
  EXPECT_EQ(wheel.next_wakeup(), 21u);
  EXPECT_EQ(wheel.advance(21, [](Timer&) {}).fired, 1u);
}

TEST(TimerWheelCallback, MayBeAnyCallable) {
  struct Counter {
    int count = 0;
    void operator()(Timer&) { ++count; }
  };
  TimerWheel wheel;
  Timer timer;
  Counter counter;
  wheel.schedule(timer, 1);
  wheel.advance(1, counter);
  EXPECT_EQ(counter.count, 1) << "it is called, not copied";
  static_assert(!TimerCallback<int>);
  static_assert(!TimerCallback<void (*)(int)>);
}

TEST(TimerWheelCallback, MustNotAdvanceItsOwnWheel) {
  TimerWheel wheel;
  Timer timer;
  wheel.schedule(timer, 1);
  EXPECT_DEATH(wheel.advance(1, [&](Timer&) { wheel.advance(2, [](Timer&) {}); }), "check failed");
}

TEST(TimerWheelCallback, MustNotDestroyItsOwnWheel) {
  auto wheel = std::make_unique<TimerWheel>();
  Timer timer;
  wheel->schedule(timer, 1);
  EXPECT_DEATH(wheel->advance(1, [&](Timer&) { wheel.reset(); }), "check failed");
}

TEST(TimerWheelCallback, MustNotThrow) {
  TimerWheel wheel;
  Timer timer;
  wheel.schedule(timer, 1);
  static_assert(noexcept(wheel.advance(1, [](Timer&) {})));
  EXPECT_DEATH(wheel.advance(1, [](Timer&) { throw 1; }), "terminate");
}

}  // namespace
}  // namespace detent

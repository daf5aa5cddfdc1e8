// Virtual time around values that are known to break clocks and counters: 2^31, 2^32 and 2^36 ms,
// and twelve days. Also the years 2038 and 2262 in milliseconds and in nanoseconds. Every queue
// takes its timers across each of these ticks, from before, at and after the tick.
//
// DETENT_VIRTUAL_TICKS sets the number of ticks on each side.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdlib>
#include <ostream>
#include <string>

#include "wheel/test_queues.h"

namespace detent {
namespace {

struct Landmark {
  const char* name;
  Tick tick;
};

constexpr Tick kYear2038 = Tick{1} << 31;  // seconds since 1970
constexpr Tick kYear2262 = Tick{1} << 63;  // nanoseconds since 1970
constexpr std::array<Landmark, 8> kLandmarks{{
    {"12 days in ms", 12 * 24 * 3'600 * Tick{1'000}},
    {"2^31 ms", Tick{1} << 31},
    {"2^32 ms", Tick{1} << 32},
    {"2^36 ms", Tick{1} << 36},
    {"2038 in ms", kYear2038 * 1'000},
    {"2038 in ns", kYear2038 * 1'000'000'000},
    {"2262 in ms", kYear2262 / 1'000'000},
    {"2262 in ns", kYear2262},
}};

Tick ticks_on_either_side() {
  const char* text = std::getenv("DETENT_VIRTUAL_TICKS");
  return text != nullptr ? std::strtoull(text, nullptr, 0) : 2'000'000;
}

// Timers that schedule themselves again and again, each with its own period.
template <class Case>
class Rhythms {
 public:
  explicit Rhythms(Tick start) : start_(start), queue_(Case::make(start)) {
    for (std::size_t i = 0; i < timers_.size(); ++i) {
      timers_[i].period = kPeriods[i];
      EXPECT_TRUE(queue_->schedule(timers_[i], start + kPeriods[i]));
    }
  }

  // Advances from wake-up to wake-up until `end`. Checks that every timer fires at its tick.
  void run(Tick end) {
    while (!testing::Test::HasFailure() && *queue_->next_wakeup() < end) {
      go(*queue_->next_wakeup());
    }
    go(end);
    EXPECT_EQ(queue_->size(), timers_.size());
    for (const Rhythm& timer : timers_) {
      EXPECT_EQ(timer.fired, (end - start_) / timer.period) << "of period " << timer.period;
    }
    queue_->check_invariants();
  }

 private:
  static constexpr std::array<Tick, 5> kPeriods{53, 997, 3'600, 4'096, 7'919};

  struct Rhythm : TimerOf<Case> {
    Tick period = 0;
    std::size_t fired = 0;
  };

  void go(Tick now) {
    ASSERT_GT(now, queue_->now()) << "no busy waiting";
    queue_->advance(now, [&](TimerOf<Case>& timer) {
      auto& rhythm = static_cast<Rhythm&>(timer);
      EXPECT_EQ(timer.deadline(), now);
      ++rhythm.fired;
      EXPECT_TRUE(queue_->schedule(timer, now + rhythm.period));
    });
  }

  Tick start_;
  decltype(Case::make(0)) queue_;
  std::array<Rhythm, kPeriods.size()> timers_;
};

template <class Case>
class TimerQueueLandmark : public testing::Test {};
TYPED_TEST_SUITE(TimerQueueLandmark, EveryQueue, QueueNames);

TYPED_TEST(TimerQueueLandmark, TimersBeforeAtAndAfterFireOnTheirTick) {
  for (const Landmark& landmark : kLandmarks) {
    for (const Tick before : {Tick{8'000}, Tick{1'000}, Tick{3}}) {
      SCOPED_TRACE(std::string(landmark.name) +
                   ", scheduled ticks before: " + std::to_string(before));
      auto queue = TypeParam::make(landmark.tick - before);
      std::array<TimerOf<TypeParam>, 6> timers;
      for (Tick i = 0; i < 5; ++i) {
        ASSERT_TRUE(queue->schedule(timers[i], landmark.tick - 2 + i));
      }
      ASSERT_TRUE(queue->schedule(timers[5], landmark.tick - 2));
      ASSERT_TRUE(queue->postpone(timers[5], landmark.tick + 3));
      EXPECT_EQ(count_fired(*queue, landmark.tick - 3), 0u);
      for (Tick i = 0; i <= 5; ++i) {
        EXPECT_EQ(count_fired(*queue, landmark.tick - 2 + i), 1u);
        EXPECT_FALSE(timers[i].is_pending());
      }
    }
  }
}

TYPED_TEST(TimerQueueLandmark, TimersScheduledFromAfarFireOnTheirTick) {
  for (const Landmark& landmark : kLandmarks) {
    SCOPED_TRACE(landmark.name);
    const Tick start =
        can_hold<TypeParam>(0, landmark.tick + 1) ? 0 : landmark.tick + 1 - TypeParam::kNature.span;
    auto queue = TypeParam::make(start);
    std::array<TimerOf<TypeParam>, 3> timers;
    for (Tick i = 0; i < 3; ++i) ASSERT_TRUE(queue->schedule(timers[i], landmark.tick - 1 + i));
    EXPECT_EQ(count_fired(*queue, landmark.tick - 2), 0u);
    for (Tick i = 0; i < 3; ++i) EXPECT_EQ(count_fired(*queue, landmark.tick - 1 + i), 1u);
  }
}

TYPED_TEST(TimerQueueLandmark, PeriodicTimersKeepTheirTimeAcross) {
  for (const Landmark& landmark : kLandmarks) {
    SCOPED_TRACE(landmark.name);
    const Tick start = landmark.tick - std::min(landmark.tick, ticks_on_either_side());
    Rhythms<TypeParam> rhythms(start);
    rhythms.run(landmark.tick + ticks_on_either_side());
  }
}

}  // namespace
}  // namespace detent

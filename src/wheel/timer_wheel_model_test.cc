// Millions of random operations against the model, and wheels broken on purpose to show that the
// model would notice.
//
// DETENT_MODEL_OPS sets how many operations are done in all.
#include "timer_wheel_model.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <cstdlib>
#include <iostream>
#include <optional>
#include <string>

#include "base/rng.h"
#include "base/test_seed.h"

namespace detent {
namespace {

constexpr std::size_t kOperationsPerEpisode = 4'000;

std::size_t operation_count() {
  const char* text = std::getenv("DETENT_MODEL_OPS");
  return text != nullptr ? std::strtoull(text, nullptr, 0) : 5'000'000;
}

TEST(TimerWheelModel, AgreesWithASortedMap) {
  const std::uint64_t seed = test_seed();
  SCOPED_TRACE(replay_hint(seed));
  Rng seeds(seed);
  std::size_t done = 0;
  std::size_t fired = 0;
  std::size_t resumed = 0;
  for (; done < operation_count(); done += kOperationsPerEpisode) {
    WheelModel<TimerWheel> episode(seeds.next());
    const std::optional<std::string> mismatch = episode.run(kOperationsPerEpisode);
    ASSERT_EQ(mismatch, std::nullopt) << "in episode " << done / kOperationsPerEpisode;
    fired += episode.fired();
    resumed += episode.resumed();
  }
  std::cout << done << " operations, " << fired << " fired, " << resumed
            << " calls that resumed; seed " << seed << '\n';
  EXPECT_GT(fired, done / 100) << "the test must reach what it is for";
  EXPECT_GT(resumed, done / 1'000);
}

// One operation in kOneIn goes wrong. The faults that a wheel is most likely to have.
constexpr std::uint32_t kOneIn = 500;

class BrokenWheel : public TimerWheel {
 public:
  using TimerWheel::TimerWheel;

 protected:
  bool strikes() { return random_.below(kOneIn) == 0; }

 private:
  Rng random_{1};
};

struct FiresOneTickEarly : BrokenWheel {
  using BrokenWheel::BrokenWheel;
  bool schedule(Timer& timer, Tick deadline) {
    return BrokenWheel::schedule(timer,
                                 deadline > now() + 1 && strikes() ? deadline - 1 : deadline);
  }
};

struct FiresOneTickLate : BrokenWheel {
  using BrokenWheel::BrokenWheel;
  template <class OnFire>
  AdvanceResult advance(Tick to, OnFire&& on_fire, std::size_t limit) {
    return BrokenWheel::advance(to > now() && strikes() ? to - 1 : to, on_fire, limit);
  }
};

struct LosesATimer : BrokenWheel {
  using BrokenWheel::BrokenWheel;
  bool schedule(Timer& timer, Tick deadline) {
    BrokenWheel::schedule(timer, deadline);
    if (strikes()) BrokenWheel::cancel(timer);
    return true;
  }
};

struct ForgetsToCancel : BrokenWheel {
  using BrokenWheel::BrokenWheel;
  bool cancel(Timer& timer) { return strikes() ? timer.is_pending() : BrokenWheel::cancel(timer); }
};

struct ForgetsToPostpone : BrokenWheel {
  using BrokenWheel::BrokenWheel;
  void postpone(Timer& timer, Tick deadline) {
    if (!timer.is_pending() || !strikes()) BrokenWheel::postpone(timer, deadline);
  }
};

struct FiresInTheSameCallWhatACallbackSchedules : BrokenWheel {
  using BrokenWheel::BrokenWheel;
  template <class OnFire>
  AdvanceResult advance(Tick to, OnFire&& on_fire, std::size_t limit) {
    AdvanceResult result = BrokenWheel::advance(to, on_fire, limit);
    if (!result.more && limit == npos && strikes()) {
      result.fired += BrokenWheel::advance(to, on_fire, limit).fired;
    }
    return result;
  }
};

struct WakesTooLate : BrokenWheel {
  using BrokenWheel::BrokenWheel;
  std::optional<Tick> next_wakeup() {
    const std::optional<Tick> next = BrokenWheel::next_wakeup();
    return next && *next > now() && strikes() ? *next + 1 : next;
  }
};

template <class Wheel>
class TimerWheelModelControl : public testing::Test {};

using BrokenWheels =
    testing::Types<FiresOneTickEarly, FiresOneTickLate, LosesATimer, ForgetsToCancel,
                   ForgetsToPostpone, FiresInTheSameCallWhatACallbackSchedules, WakesTooLate>;
TYPED_TEST_SUITE(TimerWheelModelControl, BrokenWheels);

TYPED_TEST(TimerWheelModelControl, BrokenWheelIsNoticed) {
  Rng seeds(42);
  std::optional<std::string> mismatch;
  for (int episode = 0; episode < 50 && !mismatch; ++episode) {
    mismatch = WheelModel<TypeParam>(seeds.next()).run(kOperationsPerEpisode);
  }
  ASSERT_TRUE(mismatch.has_value());
  std::cout << "noticed: " << *mismatch << '\n';
}

}  // namespace
}  // namespace detent

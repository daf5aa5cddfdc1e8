// Queues with planted faults. The model must notice every fault in every queue. This is the control
// of timer_queue_model_test.cc: it shows that the model does not accept every behaviour.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <iostream>
#include <optional>
#include <string>
#include <vector>

#include "base/rng.h"
#include "wheel/test_queues.h"
#include "wheel/timer_queue_rig.h"

namespace detent {
namespace {

// The faults that a queue is most likely to have.
enum class Fault {
  fires_one_tick_early,
  fires_one_tick_late,
  loses_a_timer,
  fires_twice,
  fires_a_timer_of_a_callback_too_soon,
  forgets_to_cancel,
  forgets_to_postpone,
  forgets_the_deadline,
  exceeds_the_limit,
  hides_that_it_stopped,
  reports_a_stop_that_did_not_happen,
  wakes_too_late,
  counts_wrongly,
  is_ahead_of_time,
  keeps_the_place_of_a_rescheduled_timer,  // a fault only if the queue promises the order
};
constexpr auto kFaultCount =
    static_cast<std::size_t>(Fault::keeps_the_place_of_a_rescheduled_timer) + 1;

constexpr std::array<const char*, kFaultCount> kFaultNames{
    "fires one tick early",
    "fires one tick late",
    "loses a timer",
    "fires twice",
    "fires a timer of a callback too soon",
    "forgets to cancel",
    "forgets to postpone",
    "forgets the deadline",
    "exceeds the limit",
    "hides that it stopped",
    "reports a stop that did not happen",
    "wakes too late",
    "counts wrongly",
    "is ahead of time",
    "keeps the place of a rescheduled timer",
};

// Forwards all calls to the queue inside it, but makes the fault in one of 100 calls.
template <class Case>
class FaultyQueue {
 public:
  // Reports the deadline that it was given, whatever the fault did with it.
  class Timer : public TimerOf<Case> {
   public:
    Tick deadline() const noexcept { return given_; }

   private:
    friend class FaultyQueue;
    Tick given_ = 0;
  };

  FaultyQueue(Tick now, Fault fault, std::uint64_t seed)
      : queue_(Case::make(now)), fault_(fault), target_(now), random_(seed) {}

  bool schedule(Timer& timer, Tick deadline) noexcept {
    const Tick given = deadline;
    const bool between = deadline > now() && deadline - now() > 1 && deadline - now() < 1'000;
    if (between && strikes(Fault::fires_one_tick_early)) --deadline;
    if (between && strikes(Fault::fires_one_tick_late)) ++deadline;
    const bool is_there = timer.is_pending() && timer.given_ == deadline && deadline > target_;
    if (is_there && strikes(Fault::keeps_the_place_of_a_rescheduled_timer)) return true;
    if (!queue_->schedule(timer, deadline)) return false;
    timer.given_ = given - (strikes(Fault::forgets_the_deadline) ? 1 : 0);
    return true;
  }

  bool postpone(Timer& timer, Tick deadline) noexcept {
    const bool forgets = timer.is_pending() && strikes(Fault::forgets_to_postpone);
    if (!forgets && !queue_->postpone(timer, deadline)) return false;
    timer.given_ = deadline;
    return true;
  }

  bool cancel(Timer& timer) noexcept {
    return strikes(Fault::forgets_to_cancel) ? timer.is_pending() : queue_->cancel(timer);
  }

  template <class OnFire>
  AdvanceResult advance(Tick to, OnFire&& on_fire, std::size_t limit = kNoLimit) noexcept {
    target_ = std::max(target_, to);
    if (limit != kNoLimit && strikes(Fault::exceeds_the_limit)) ++limit;
    std::size_t fired = 0;
    const auto fire = [&](TimerOf<Case>& timer) {
      for (int times = times_to_fire(); times > 0; --times, ++fired) {
        on_fire(static_cast<Timer&>(timer));
      }
    };
    AdvanceResult result = queue_->advance(to, fire, limit);
    if (!result.more && strikes(Fault::fires_a_timer_of_a_callback_too_soon)) {
      result = queue_->advance(to, fire);
    }
    if (result.more && strikes(Fault::hides_that_it_stopped)) result.more = false;
    if (limit != kNoLimit && strikes(Fault::reports_a_stop_that_did_not_happen)) result.more = true;
    return {.fired = fired, .more = result.more};
  }

  std::optional<Tick> next_wakeup() const noexcept {
    const std::optional<Tick> next = queue_->next_wakeup();
    const bool is_later = next && *next > queue_->now() && *next < kLastTick;
    return is_later && strikes(Fault::wakes_too_late) ? *next + 1 : next;
  }
  Tick now() const noexcept { return queue_->now() + (strikes(Fault::is_ahead_of_time) ? 1 : 0); }
  std::size_t size() const noexcept {
    return queue_->size() + (strikes(Fault::counts_wrongly) ? 1 : 0);
  }
  bool empty() const noexcept { return queue_->empty(); }
  void check_invariants() const noexcept { queue_->check_invariants(); }

 private:
  static constexpr std::uint32_t kOneIn = 100;

  bool strikes(Fault fault) const noexcept { return fault_ == fault && random_.below(kOneIn) == 0; }

  int times_to_fire() const noexcept {
    if (strikes(Fault::loses_a_timer)) return 0;
    return strikes(Fault::fires_twice) ? 2 : 1;
  }

  decltype(Case::make(0)) queue_;
  Fault fault_;
  Tick target_;  // no pass goes beyond this
  mutable Rng random_;
};

// The first mismatch in 20 episodes.
template <class Case>
std::optional<std::string> find_fault(Fault fault) {
  Rng random(42);
  for (int episode = 0; episode < 20; ++episode) {
    const std::vector<std::uint8_t> bytes = random_bytes(random, 16'384);
    OperationReader input(bytes);
    const EpisodeStart start = input.start();
    FaultyQueue<Case> queue(start.tick, fault, random.next());
    TimerQueueRig rig(queue, Case::kNature, start);
    Episode outcome = rig.run(input);
    if (outcome.mismatch) return outcome.mismatch;
  }
  return std::nullopt;
}

template <class Case>
class TimerQueueFault : public testing::Test {};
TYPED_TEST_SUITE(TimerQueueFault, EveryQueue, QueueNames);

TYPED_TEST(TimerQueueFault, TheModelNoticesEveryFault) {
  for (std::size_t i = 0; i < kFaultCount; ++i) {
    const auto fault = static_cast<Fault>(i);
    const bool is_fault = fault != Fault::keeps_the_place_of_a_rescheduled_timer ||
                          TypeParam::kNature.keeps_schedule_order;
    const std::optional<std::string> mismatch = find_fault<TypeParam>(fault);
    EXPECT_EQ(mismatch.has_value(), is_fault) << kFaultNames[i];
    std::cout << kFaultNames[i] << ": " << mismatch.value_or("correctly not noticed") << '\n';
  }
}

}  // namespace
}  // namespace detent

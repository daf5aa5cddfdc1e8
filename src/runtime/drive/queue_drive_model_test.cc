// Random operations and budgets on a driven queue, compared with a sorted map of the pending
// timers.
//
// The model has no passes and no wheels. It computes the due time and the due tick of each timer
// itself. So it detects a timer that fires early, late, never or twice, and an event loop that
// would spin or sleep too long. Callbacks take (virtual) time, and schedule, cancel and destroy
// timers.
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <map>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "base/rng.h"
#include "base/test_seed.h"
#include "detent/queue_drive.h"
#include "wheel/test_queues.h"

namespace detent {
namespace {

using namespace std::chrono_literals;
using std::chrono::nanoseconds;

constexpr nanoseconds kResolution = 1us;
constexpr std::size_t kTimerCount = 60;
constexpr int kOperationCount = 50'000;

template <class Case>
class DriveRig {
 public:
  // The queue refuses some of the delays below, which are up to 2^62 ns.
  static constexpr bool kIsBounded = Case::kNature.span < Tick{1} << 43;

  explicit DriveRig(std::uint64_t seed) : rng_(seed), timers_(kTimerCount) {
    clock_.advance(12'345ns);
    drive_.emplace(*queue_, clock_, kResolution);
    start_ = clock_.now();
  }

  void run_operations() {
    for (int i = 0; i < kOperationCount && !testing::Test::HasFailure(); ++i) {
      const std::uint32_t dice = rng_.below(10);
      if (dice < 3) {
        change_one();
      } else if (dice < 7) {
        pass_time();
      } else {
        run_ready();
      }
      compare();
      if (i % 64 == 0) queue_->check_invariants();
    }
  }

  std::size_t fired = 0;
  std::size_t cut_short = 0;
  std::size_t refused = 0;

 private:
  struct Numbered : TimerOf<Case> {
    std::size_t id = 0;
  };
  struct Due {
    Tick tick = 0;  // the earliest tick at which it may fire
    MonotonicTime deadline;
  };

  // ---- Operations.

  // Schedules, postpones, cancels or destroys a random timer.
  void change_one() {
    const std::size_t id = rng_.below(kTimerCount);
    auto& timer = timers_[id];
    if (timer == nullptr) {
      timer = std::make_unique<Numbered>();
      timer->id = id;
    }
    switch (rng_.below(8)) {
      case 0:
        EXPECT_EQ(drive_->cancel(*timer), pending_.erase(id) == 1);
        break;
      case 1:
        timer.reset();
        pending_.erase(id);
        break;
      case 2:
        schedule_at(*timer, any_time());
        break;
      case 3:
      case 4:
        schedule_after<true>(*timer, any_delay());
        break;
      default:
        schedule_after<false>(*timer, any_delay());
        break;
    }
  }

  void schedule_at(Numbered& timer, MonotonicTime deadline) {
    note(timer.id, deadline, drive_->schedule_at(timer, deadline));
  }

  template <bool kPostpone>
  void schedule_after(Numbered& timer, nanoseconds delay) {
    const nanoseconds most = MonotonicTime::max() - clock_.now();
    const nanoseconds into_tick = (clock_.now() - start_) % kResolution;
    const MonotonicTime deadline =
        clock_.now() + (delay > 0ns ? std::min(delay, most) : -into_tick);
    const bool accepted =
        kPostpone ? drive_->postpone_after(timer, delay) : drive_->schedule_after(timer, delay);
    note(timer.id, deadline, accepted);
  }

  void note(std::size_t id, MonotonicTime deadline, bool accepted) {
    Tick tick = 0;
    if (deadline > start_) {
      const nanoseconds since = deadline - start_;
      tick = static_cast<Tick>(since / kResolution) + (since % kResolution > 0ns ? 1 : 0);
    }
    if (running_) tick = std::max(tick, *running_ + 1);
    ASSERT_EQ(accepted, can_hold<Case>(queue_->now(), tick));
    if (kIsBounded && !running_) {
      // The queue may have been advanced to the present: an old pass ended, or a new pass began.
      const bool goes_on = drive_->time_to_next() == 0ns;
      cut_ = cut_ && goes_on;
      in_pass_ = in_pass_ || goes_on;
    }
    if (accepted) {
      constexpr Tick kWidth = Case::kNature.slot_width;
      pending_[id] = {(tick + kWidth - 1) / kWidth * kWidth, deadline};
    } else {
      ++refused;
      if (running_) return;
      EXPECT_TRUE(queue_->now() == present() || drive_->time_to_next() == 0ns)
          << "refused, but measured from long ago";
    }
  }

  void run_ready() {
    const Budget budget = any_budget();
    const MonotonicTime begin = clock_.now();
    const bool resumes = std::exchange(in_pass_, false);
    running_ = present();
    last_due_ = 0;
    std::size_t count = 0;
    const AdvanceResult result = drive_->run_ready(budget, [&](auto& timer) noexcept {
      ++count;
      on_fire(static_cast<Numbered&>(timer).id, resumes);
    });
    fired += count;
    in_pass_ = cut_ = result.more;
    cut_short += cut_ ? 1u : 0u;
    EXPECT_EQ(result.fired, count);
    EXPECT_LE(count, budget.count);
    if (cut_) {
      EXPECT_TRUE(budget.count != kNoLimit || clock_.now() - begin >= budget.time)
          << "it stopped within its budget";
    } else {
      for (const auto& [id, due] : pending_) EXPECT_GT(due.tick, *running_) << "left behind";
      EXPECT_TRUE(clock_.now() > begin || drive_->time_to_next() != 0ns) << "the loop would spin";
    }
    running_.reset();
  }

  void on_fire(std::size_t id, bool resumes) {
    const auto found = pending_.find(id);
    ASSERT_NE(found, pending_.end()) << "it was not pending";
    const Due due = found->second;
    EXPECT_LE(due.tick, *running_) << "it was not due when the call began";
    EXPECT_GE(clock_.now(), due.deadline) << "early";
    EXPECT_TRUE(resumes || due.tick >= last_due_) << "out of order";
    last_due_ = due.tick;
    pending_.erase(found);
    if (rng_.below(3) == 0) clock_.advance(nanoseconds{rng_.below(20'000)});
    for (std::uint32_t left = rng_.below(3); left > 0; --left) change_one();
  }

  void pass_time() {
    const nanoseconds sleep = drive_->time_to_next().value_or(1ms);
    const nanoseconds most = std::min<Tick>(Case::kNature.longest_step, 1u << 30) * kResolution;
    switch (rng_.below(4)) {
      case 0:
        return clock_.advance(std::min(sleep, most));
      case 1:
        return clock_.advance(std::clamp<nanoseconds>(sleep - 1ns, 0ns, most));
      default:
        return clock_.advance(std::min(any_length(), most));
    }
  }

  // ---- Checks.

  void compare() {
    ASSERT_EQ(queue_->size(), pending_.size());
    const std::optional<nanoseconds> sleep = drive_->time_to_next();
    const std::optional<MonotonicTime> wakeup = drive_->next_wakeup();
    ASSERT_EQ(sleep.has_value(), !pending_.empty());
    ASSERT_EQ(wakeup.has_value(), !pending_.empty());
    if (!sleep) return;
    ASSERT_EQ(*sleep, std::max<nanoseconds>(*wakeup - clock_.now(), 0ns));
    ASSERT_TRUE(!cut_ || *sleep == 0ns) << "it was cut short";
    for (const auto& [id, due] : pending_) {
      if (due.tick <= present()) {
        ASSERT_EQ(*sleep, 0ns);
      } else if (due.tick < Tick{1} << 50) {
        ASSERT_LE(clock_.now() + *sleep, start_ + due.tick * kResolution) << "it would oversleep";
      }
    }
  }

  Tick present() const { return static_cast<Tick>((clock_.now() - start_) / kResolution); }

  // ---- Random arguments.

  // All magnitudes from a nanosecond to a second are equally likely.
  nanoseconds any_length() { return nanoseconds{rng_.next() >> (34 + rng_.below(30))}; }

  nanoseconds any_delay() {
    switch (rng_.below(16)) {
      case 0:
        return -any_length();
      case 1:
        return nanoseconds::max();
      case 2:
        return nanoseconds{rng_.next() >> 2};
      default:
        return any_length();
    }
  }

  MonotonicTime any_time() {
    switch (rng_.below(8)) {
      case 0:
        return MonotonicTime::min();
      case 1:
        return MonotonicTime::max();
      case 2:
        return start_ + any_length();
      default:
        return clock_.now() + any_length();
    }
  }

  Budget any_budget() {
    Budget budget;
    if (rng_.below(2) == 0) budget.count = rng_.below(20);
    if (rng_.below(2) == 0) budget.time = nanoseconds{rng_.below(60'000)} - 5us;
    return budget;
  }

  Rng rng_;
  ManualClock clock_;
  decltype(Case::make(0)) queue_ = Case::make(0);
  std::optional<QueueDrive<typename Case::Queue>> drive_;
  MonotonicTime start_;
  std::vector<std::unique_ptr<Numbered>> timers_;
  std::map<std::size_t, Due> pending_;
  bool cut_ = false;             // the last run_ready was cut short
  bool in_pass_ = false;         // the next call may have to finish an older pass first
  std::optional<Tick> running_;  // during run_ready: the tick when it began
  Tick last_due_ = 0;
};

template <class Case>
class QueueDriveModel : public testing::Test {};
TYPED_TEST_SUITE(QueueDriveModel, EverySize::Types, QueueNames);

TYPED_TEST(QueueDriveModel, AgreesWithAMap) {
  const std::uint64_t seed = test_seed();
  SCOPED_TRACE(replay_hint(seed));
  DriveRig<TypeParam> rig(seed);
  rig.run_operations();
  EXPECT_GT(rig.fired, kOperationCount / 50u) << "too few timers fired for a useful test";
  EXPECT_GT(rig.cut_short, kOperationCount / 500u);
  EXPECT_EQ(rig.refused > 0, rig.kIsBounded);
}

}  // namespace
}  // namespace detent

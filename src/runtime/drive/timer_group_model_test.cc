// Compares a timer group in a simulation with a brute-force model in whole numbers. The model
// computes when each timer runs. The test schedules, cancels, pauses and changes the rate at
// random.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <limits>
#include <optional>
#include <utility>
#include <vector>

#include "base/test_seed.h"
#include "detent/simulation.h"
#include "detent/timer_group.h"

namespace detent {
namespace {

using std::chrono::nanoseconds;

// Rates are n / 4096, so group time is a whole number of these parts of a nanosecond.
constexpr std::int64_t kParts = 4096;

/// One timer of the model. It is pending until it has fired or was cancelled.
struct ModelTimer {
  std::int64_t deadline_ns = 0;                            // in group time
  std::optional<std::int64_t> fires_at_ns = std::nullopt;  // in the parent's time
  bool cancelled = false;
};

/// A model of the group: a list that is searched nanosecond by nanosecond.
class Model {
 public:
  std::int64_t now_ns() const { return group_parts_ / kParts; }
  bool is_paused() const { return paused_; }
  void pause() { paused_ = true; }
  void resume() { paused_ = false; }
  void set_rate(std::int64_t parts) { rate_parts_ = parts; }

  std::size_t schedule(std::int64_t deadline_ns) {
    timers_.push_back({.deadline_ns = deadline_ns});
    return timers_.size() - 1;
  }
  bool cancel(std::size_t index) {
    ModelTimer& timer = timers_.at(index);
    if (timer.fires_at_ns || timer.cancelled) return false;
    return timer.cancelled = true;
  }
  bool move(std::size_t index, std::int64_t deadline_ns) {
    ModelTimer& timer = timers_.at(index);
    if (timer.fires_at_ns || timer.cancelled) return false;
    timer.deadline_ns = deadline_ns;
    return true;
  }
  std::size_t cancel_all() {
    std::size_t count = 0;
    for (std::size_t i = 0; i < timers_.size(); ++i) {
      if (cancel(i)) ++count;
    }
    return count;
  }
  std::size_t pending() const {
    return static_cast<std::size_t>(
        std::count_if(timers_.begin(), timers_.end(),
                      [](const ModelTimer& t) { return !t.fires_at_ns && !t.cancelled; }));
  }

  void run_for(std::int64_t duration_ns) {
    fire();
    for (std::int64_t i = 0; i < duration_ns; ++i) {
      ++parent_ns_;
      if (!paused_) group_parts_ += rate_parts_;
      if (now_ns() >= next_ns_) fire();
    }
  }
  const std::vector<ModelTimer>& timers() const { return timers_; }

 private:
  void fire() {
    next_ns_ = std::numeric_limits<std::int64_t>::max();
    for (ModelTimer& timer : timers_) {
      if (timer.fires_at_ns || timer.cancelled) continue;
      if (timer.deadline_ns <= now_ns()) {
        timer.fires_at_ns = parent_ns_;
      } else {
        next_ns_ = std::min(next_ns_, timer.deadline_ns);
      }
    }
  }

  std::int64_t parent_ns_ = 0;
  std::int64_t group_parts_ = 0;
  std::int64_t rate_parts_ = kParts;
  bool paused_ = false;
  std::int64_t next_ns_ = 0;  // no timer is due before this time
  std::vector<ModelTimer> timers_;
};

std::int64_t ns(MonotonicTime time) { return time.time_since_epoch().count(); }

/// Makes the same calls on a group and on its model.
class Pair {
 public:
  Pair(std::uint64_t seed, nanoseconds resolution, nanoseconds job_delay)
      : rng_(seed),
        resolution_(resolution),
        job_delay_(job_delay),
        simulation_(seed, {.job_delay = job_delay, .scheduler = {.resolution = resolution}}),
        group_(simulation_.scheduler()) {
    run_for(nanoseconds{1});  // no timer is due before the first tick
  }

  /// With a resolution of 1 ns and without delays, all runs are exact. Otherwise they may only be
  /// late.
  bool is_exact() const { return resolution_ == nanoseconds{1} && job_delay_ == nanoseconds{0}; }

  void schedule() {
    const MonotonicTime deadline = random_deadline();
    const std::size_t index = model_.schedule(ns(deadline));
    ran_at_.emplace_back();
    handles_.push_back(group_.schedule_at(deadline, [this, index] {
      ASSERT_FALSE(ran_at_[index]) << "ran twice";
      ran_at_[index] = ns(simulation_.clock().now());
      ASSERT_GE(ns(group_.now()), model_.timers()[index].deadline_ns) << "early in group time";
    }));
  }

  void step() {
    switch (rng_.below(9)) {
      case 0:
        group_.pause();
        model_.pause();
        break;
      case 1:
      case 2:
        group_.resume();
        model_.resume();
        break;
      case 3: {
        const std::int64_t parts = random_rate();
        group_.set_rate(static_cast<double>(parts) / kParts);
        model_.set_rate(parts);
        break;
      }
      case 4:
        if (rng_.below(20) != 0) break;
        compare(group_.cancel_all(), model_.cancel_all());
        break;
      case 5:
        if (handles_.empty() || !is_exact()) break;
        change(rng_.below(static_cast<std::uint32_t>(handles_.size())));
        break;
      default:
        schedule();
    }
    run_for(nanoseconds{rng_.below(rng_.below(8) == 0 ? 2'000 : 100)});
  }

  void check() const {
    ASSERT_EQ(ns(group_.now()), model_.now_ns());
    ASSERT_EQ(group_.is_paused(), model_.is_paused());
    if (!is_exact()) return;
    ASSERT_EQ(group_.stats().pending, model_.pending());
    for (std::size_t i = 0; i < ran_at_.size(); ++i) {
      ASSERT_EQ(ran_at_[i], model_.timers()[i].fires_at_ns) << "timer " << i;
    }
  }

  /// Runs all remaining timers. No timer may stay pending.
  void finish() {
    group_.resume();
    group_.set_rate(1024);
    simulation_.run_for(std::chrono::milliseconds{1});
    EXPECT_EQ(group_.stats().pending, 0u);
  }

 private:
  void run_for(nanoseconds duration) {
    simulation_.run_for(duration);
    model_.run_for(duration.count());
  }
  MonotonicTime random_deadline() {
    const std::int64_t delay = static_cast<std::int64_t>(rng_.below(2'000)) - 20;
    return group_.now() + nanoseconds{delay};
  }
  std::int64_t random_rate() {
    switch (rng_.below(4)) {
      case 0:
        return 4;  // the lowest possible rate
      case 1:
        return kParts;
      case 2:
        return 1 + 4 + rng_.below(kParts);
      default:
        return rng_.below(64) * kParts + rng_.below(kParts) + 4;
    }
  }
  void compare(std::size_t group, std::size_t model) const {
    if (!is_exact()) return;
    EXPECT_EQ(group, model);
  }
  void change(std::size_t index) {
    if (rng_.below(2) == 0) {
      EXPECT_EQ(handles_[index].cancel() == CancelResult::cancelled, model_.cancel(index));
    } else {
      const MonotonicTime deadline = random_deadline();
      EXPECT_EQ(handles_[index].expires_at(deadline), model_.move(index, ns(deadline)));
    }
  }

  Rng rng_;
  const nanoseconds resolution_;
  const nanoseconds job_delay_;
  Simulation simulation_;
  TimerGroup group_;
  Model model_;
  std::vector<TimerHandle> handles_;
  std::vector<std::optional<std::int64_t>> ran_at_;
};

void compare(nanoseconds resolution, nanoseconds job_delay) {
  const std::uint64_t seed = test_seed();
  SCOPED_TRACE(replay_hint(seed));
  for (std::uint64_t round = 0; round < 60; ++round) {
    Pair pair(seed + round, resolution, job_delay);
    for (int step = 0; step < 300; ++step) {
      pair.step();
      pair.check();
      if (::testing::Test::HasFailure()) {
        FAIL() << "in round " << round << ", step " << step;
      }
    }
    pair.finish();
  }
}

TEST(TimerGroupModel, TimersRunAtTheExactNanosecondOfGroupTime) {
  compare(nanoseconds{1}, nanoseconds{0});
}

TEST(TimerGroupModel, TimersAreNeverEarlyAndAllRunWhateverTheResolutionAndTheDelays) {
  compare(nanoseconds{64}, nanoseconds{0});
  compare(nanoseconds{1}, nanoseconds{200});
  compare(nanoseconds{10'000}, nanoseconds{50});
}

}  // namespace
}  // namespace detent

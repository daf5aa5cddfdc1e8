// Both sides in memory, with random tasks, requests, faults and crashes. After every step, each
// task must count in exactly one place. At the end, each task was delivered once, or it was
// cancelled and never delivered.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <iterator>
#include <map>
#include <optional>
#include <string>

#include "base/rng.h"
#include "base/test_seed.h"
#include "base/wall_time.h"
#include "external/far_tasks.h"
#include "external/far_tasks_rig.h"

namespace detent {
namespace {

using namespace std::chrono_literals;  // NOLINT(google-build-using-namespace): literals only
using std::chrono::milliseconds;

using test::Crash;
using test::Fault;

class World {
 public:
  explicit World(std::uint64_t seed) : rng_(seed) {}

  void run(int steps) {
    local_.next_fault = [this] { return local_fault(); };
    external_.next_fault = [this] { return external_fault(); };
    external_.meanwhile = [this] { act_here(); };
    start();
    for (int i = 0; i < steps && !testing::Test::HasFailure(); ++i) {
      SCOPED_TRACE("step " + std::to_string(i));
      random_step();
      check();
    }
    end();
  }

 private:
  struct Fate {
    int delivered = 0;
    bool cancelled = false;
  };

  /// From time to time, the external scheduler is down for a while.
  Fault external_fault() {
    if (is_ending_) return Fault::none;
    if (rng_.below(20) == 0) is_down_ = !is_down_;
    if (is_down_) return rng_.below(4) == 0 ? Fault::crash_before : Fault::before;
    if (rng_.below(8) != 0) return Fault::none;
    return static_cast<Fault>(1 + rng_.below(5));
  }
  Fault local_fault() {
    if (is_ending_ || rng_.below(12) != 0) return Fault::none;
    constexpr std::array kFaults{Fault::before, Fault::after, Fault::crash_before,
                                 Fault::crash_after};
    return kFaults[rng_.below(kFaults.size())];
  }

  void start() { far_.emplace(local_, external_, clock_, options_, rng_.next()); }
  WallTime now() const { return ceil_to_ms(clock_.wall_now()); }
  milliseconds delay() { return milliseconds{rng_.below(400'000)}; }

  template <class Do>
  void until_crash(Do what) {
    try {
      what();
    } catch (const Crash&) {
      start();
    }
  }

  void random_step() {
    switch (rng_.below(9)) {
      case 0:
      case 1:
      case 8:
        return schedule();
      case 2:
        return act_here();
      case 3:
        return until_crash([this] { act_there(); });
      case 4:
        clock_.advance(milliseconds{rng_.below(30'000)});
        return deliver();
      default:
        return until_crash([this] { far_->step(); });
    }
  }

  void schedule() {
    const Task task = test::example_task(++last_id_, now() + delay());
    local_.tasks.emplace(task.id, task);
    fates_.emplace(task.id, Fate{});
  }
  /// A request or the passing of time changes tasks here, also in the middle of a step.
  void act_here() {
    if (local_.tasks.empty() || is_ending_) return;
    const auto chosen = std::next(local_.tasks.begin(), pick(local_.tasks.size()));
    switch (rng_.below(4)) {
      case 0:
        chosen->second.due_at = now() + delay();
        return;
      case 1:
        fates_.at(chosen->first).cancelled = true;
        local_.tasks.erase(chosen);
        return;
      case 2:
        clock_.advance(milliseconds{rng_.below(5'000)});
        return deliver();
      default:
        return;
    }
  }
  /// A client cancels or moves a task that may be there.
  void act_there() {
    if (fates_.empty()) return;
    const TaskId id = std::next(fates_.begin(), pick(fates_.size()))->first;
    if (local_.tasks.contains(id)) return;
    const auto fetched = far_->fetch(id);
    if (!fetched || !*fetched) return;
    const auto here = local_.tasks.find(id);
    ASSERT_NE(here, local_.tasks.end()) << to_string(id);
    if (rng_.below(2) == 0) {
      here->second.due_at = now() + delay();
      return;
    }
    Fate& fate = fates_.at(id);
    EXPECT_EQ(fate.delivered, 0) << to_string(id) << " was done already";
    EXPECT_FALSE(std::exchange(fate.cancelled, true)) << to_string(id) << " twice";
    local_.tasks.erase(here);
  }
  void deliver() {
    std::erase_if(local_.tasks, [this](const auto& entry) {
      if (entry.second.due_at > now()) return false;
      ++fates_.at(entry.first).delivered;
      return true;
    });
  }
  std::uint32_t pick(std::size_t count) { return rng_.below(static_cast<std::uint32_t>(count)); }

  /// Checks invariants 1 and 2 of far_tasks.h for every task.
  void check() {
    ASSERT_FALSE(far_->stats().lost) << far_->stats().lost->message;
    most_there_ = std::max(most_there_, external_.entries.size());
    for (const auto& [id, fate] : fates_) {
      const bool is_here = local_.tasks.contains(id);
      const bool is_there = external_.entries.contains(id);
      const bool counts_there = is_there && !local_.marks.contains(id);
      const bool has_ended = fate.delivered > 0 || fate.cancelled;
      if (has_ended) {
        ASSERT_FALSE(is_here || counts_there) << to_string(id) << " came back";
      } else {
        ASSERT_TRUE(is_here || counts_there) << to_string(id) << " is lost";
      }
      ASSERT_FALSE(is_here && counts_there) << to_string(id) << " counts twice";
    }
  }
  /// Ends all faults, and waits until all tasks are due.
  void end() {
    is_ending_ = true;
    is_down_ = false;
    for (int i = 0; i < 40 && !testing::Test::HasFailure(); ++i) {
      clock_.advance(20s);
      for (int steps = 0; steps < 10; ++steps) far_->step();
      deliver();
      check();
    }
    EXPECT_GT(most_there_, 8U) << "the test must move more tasks to be useful";
    EXPECT_TRUE(local_.tasks.empty());
    EXPECT_TRUE(local_.marks.empty());
    EXPECT_TRUE(external_.entries.empty());
    for (const auto& [id, fate] : fates_) {
      EXPECT_LE(fate.delivered, 1) << to_string(id);
      EXPECT_FALSE(fate.cancelled && fate.delivered > 0) << to_string(id);
      EXPECT_TRUE(fate.cancelled || fate.delivered == 1) << to_string(id);
    }
  }

  ManualClock clock_;
  test::FakeLocal local_;
  test::FakeExternal external_;
  FarTasksOptions options_{.near = 60s,
                           .far = 120s,
                           .interval = 10s,
                           .claim = 20s,
                           .batch = 4,
                           .backoff = {.initial = 1s, .max = 4s}};
  std::optional<FarTasks> far_;
  Rng rng_;
  std::map<TaskId, Fate> fates_;
  std::uint64_t last_id_ = 0;
  std::size_t most_there_ = 0;
  bool is_down_ = false;
  bool is_ending_ = false;
};

TEST(FarTasksModel, NoTaskIsLostOrDoneTwiceWhateverFailsOrCrashes) {
  const std::uint64_t seed = test_seed();
  SCOPED_TRACE(replay_hint(seed));
  for (int round = 0; round < test_rounds(20) && !HasFailure(); ++round) {
    SCOPED_TRACE("round " + std::to_string(round));
    World(seed + static_cast<std::uint64_t>(round)).run(3'000);
  }
}

}  // namespace
}  // namespace detent

// Which wheel has the timer of a task. A timer fires in time in every wheel.
#include "engine/window/task_timers.h"

#include <gtest/gtest.h>

#include <deque>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "base/rng.h"
#include "base/test_seed.h"
#include "engine/queues/queue.h"

namespace detent {
namespace {

using Wheel = TaskTimers::Wheel;

constexpr std::size_t kCrowd = 10;

class TaskTimersTest : public ::testing::Test {
 protected:
  /// Adds a task to the queue.
  LoadedTask& task_of(Queue& queue) {
    LoadedTask& task = tasks_.emplace_back();
    task.index = static_cast<std::uint32_t>(tasks_.size() - 1);
    task.queue = &queue;
    ++queue.loaded;
    return task;
  }
  LoadedTask& set(Queue& queue, Tick tick) {
    LoadedTask& task = task_of(queue);
    timers_.set(task, tick);
    return task;
  }
  void make_crowd(Queue& queue) {
    for (std::size_t i = 0; i < kCrowd; ++i) set(queue, 1'000'000);
  }
  /// The indices of the timers that fire in this wheel.
  std::vector<std::uint32_t> fire(Wheel wheel, Tick now) {
    std::vector<std::uint32_t> fired;
    timers_.fire(wheel, now, 1'000, [&](std::uint32_t index) { fired.push_back(index); });
    return fired;
  }

  std::deque<LoadedTask> tasks_;
  TaskTimers timers_{100, kCrowd};
  Queue calm_{"calm"};
  Queue storm_{"storm"};
};

TEST_F(TaskTimersTest, AQueueIsACrowdFromSoManyTasksOn) {
  for (std::size_t i = 1; i < kCrowd; ++i) EXPECT_EQ(set(storm_, 200).wheel, 0);
  EXPECT_NE(set(storm_, 200).wheel, 0);
  EXPECT_EQ(set(calm_, 200).wheel, 0);
  EXPECT_EQ(timers_.size(), kCrowd + 1);
  timers_.check_invariants();
}

TEST_F(TaskTimersTest, AQueueIsACrowdUntilItHasOneTask) {
  make_crowd(storm_);
  LoadedTask& task = set(storm_, 300);
  ASSERT_NE(task.wheel, 0);
  storm_.loaded = 2;
  timers_.set(task, 300);
  EXPECT_NE(task.wheel, 0);
  storm_.loaded = 1;
  timers_.set(task, 300);
  EXPECT_EQ(task.wheel, 0);
  EXPECT_EQ(timers_.size(), kCrowd + 1) << "it has one timer";
  EXPECT_EQ(timers_.tick_of(task), 300u);
}

TEST_F(TaskTimersTest, CrowdsHaveWheelsOfTheirOwnWhileThereAreSome) {
  std::deque<Queue> crowds;
  std::set<Wheel> wheels;
  for (int i = 1; i < TaskTimers::kWheels; ++i) {
    Queue& crowd = crowds.emplace_back(std::to_string(i));
    make_crowd(crowd);
    EXPECT_NE(crowd.wheel, 0);
    EXPECT_TRUE(wheels.insert(crowd.wheel).second);
  }
  for (Queue& crowd : crowds) {
    if (&crowd != &crowds[2]) set(crowd, 500);
  }
  make_crowd(storm_);
  EXPECT_EQ(storm_.wheel, crowds[2].wheel) << "the one with fewest timers";
}

TEST_F(TaskTimersTest, ATimerIsCancelledInWhicheverWheelItIs) {
  LoadedTask& early = set(storm_, 200);
  make_crowd(storm_);
  LoadedTask& late = set(storm_, 200);
  ASSERT_NE(early.wheel, late.wheel);
  for (LoadedTask* task : {&early, &late}) {
    EXPECT_TRUE(timers_.is_pending(*task));
    timers_.cancel(*task);
    EXPECT_FALSE(timers_.is_pending(*task));
  }
  EXPECT_EQ(timers_.size(), kCrowd);
}

TEST_F(TaskTimersTest, TheCommonWheelIsFirstThenFewestTimersAndOneWithNothingToDoIsNotNamed) {
  make_crowd(storm_);
  LoadedTask& storm = set(storm_, 200);
  set(storm_, 1'000'000);
  Queue second{"second"};
  make_crowd(second);
  const LoadedTask& early = set(second, 200);
  for (int i = 0; i < 3; ++i) set(calm_, 150);
  EXPECT_LE(timers_.next_wakeup(), 150u);
  EXPECT_TRUE(timers_.go_to(149).empty());
  EXPECT_EQ(timers_.go_to(150), std::vector<Wheel>{0});
  EXPECT_EQ(timers_.go_to(200), (std::vector<Wheel>{0, early.wheel, storm.wheel}));
  EXPECT_EQ(fire(0, 200).size(), 3u);
  EXPECT_EQ(fire(storm.wheel, 200), std::vector{storm.index});
  EXPECT_EQ(fire(early.wheel, 200), std::vector{early.index});
  EXPECT_TRUE(timers_.go_to(200).empty());
}

TEST_F(TaskTimersTest, ASlotOfSeveralWheelsIsShownAsOne) {
  make_crowd(storm_);
  set(storm_, 200);
  set(calm_, 200);
  set(calm_, 50'000);
  const std::vector<WheelSlot> slots = timers_.slots();
  ASSERT_EQ(slots.size(), 3u);
  EXPECT_EQ(slots[0].count, 2u);
  EXPECT_LE(slots[0].first, 200u);
  EXPECT_GE(slots[0].last, 200u);
  EXPECT_EQ(slots[1].count, 1u);
  EXPECT_EQ(slots[2].count, kCrowd);
  EXPECT_LT(slots[1].last, slots[2].first);
}

// Random timers are compared with a map of ticks. The queues grow and shrink, so all wheels have
// timers.
TEST_F(TaskTimersTest, EachTimerFiresOnceAndInTimeInEveryWheel) {
  const std::uint64_t seed = test_seed();
  SCOPED_TRACE(replay_hint(seed));
  Rng rng(seed);
  std::deque<Queue> queues;
  for (int i = 0; i < 6; ++i) queues.emplace_back(std::to_string(i));
  for (int i = 0; i < 200; ++i) task_of(queues[rng.below(6)]);
  std::map<std::uint32_t, Tick> expected;
  Tick now = 100;
  for (int step = 0; step < 20'000; ++step) {
    LoadedTask& task = tasks_[rng.below(200)];
    task.queue->loaded = rng.below(3U * kCrowd);
    if (rng.below(4) == 0) {
      timers_.cancel(task);
      expected.erase(task.index);
    } else {
      const Tick tick = now + rng.below(3'000);
      timers_.set(task, tick);
      expected[task.index] = tick;
    }
    ASSERT_EQ(timers_.size(), expected.size());
    if (rng.below(10) != 0) continue;
    now += rng.below(500);
    // A timer that was already due when it was set fires only in the next pass.
    for (int pass = 0; pass < 2; ++pass) {
      for (const Wheel wheel : timers_.go_to(now)) {
        for (const std::uint32_t index : fire(wheel, now)) {
          ASSERT_LE(expected.at(index), now);
          expected.erase(index);
        }
      }
    }
    for (const auto& [index, tick] : expected) {
      ASSERT_GT(tick, now);
      ASSERT_EQ(timers_.tick_of(tasks_[index]), tick);
    }
  }
  timers_.check_invariants();
}

}  // namespace
}  // namespace detent

// Bugs of the Kafka-style wheel in races and at its end, and the correct results of Detent.
// cases.md lists all cases.
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <cstddef>
#include <memory>
#include <optional>
#include <stdexcept>
#include <thread>
#include <utility>
#include <vector>

#include "detent/delay_queue.h"
#include "detent/executor.h"
#include "detent/scheduler.h"
#include "runtime/testing/scheduler_test_rig.h"
#include "tests/regress/classic/kafka_port.h"
#include "tests/regress/classic/our_queues.h"

namespace detent::classic {
namespace {

using namespace std::chrono_literals;

/// The result of one timer under threads.
struct Outcome {
  std::atomic<int> runs = 0;
  CancelResult cancel = CancelResult::not_pending;
};

/// A thread that moves `clock` by `step` until this object is destroyed.
class RunningTime {
 public:
  RunningTime(ManualClock& clock, std::chrono::nanoseconds step)
      : thread_([this, &clock, step] {
          while (!done_) {
            clock.advance(step);
            std::this_thread::yield();
          }
        }) {}
  ~RunningTime() {
    done_ = true;
    thread_.join();
  }
  RunningTime(const RunningTime&) = delete;
  RunningTime& operator=(const RunningTime&) = delete;

 private:
  std::atomic<bool> done_ = false;  // written by the destructor, read by the thread
  std::thread thread_;
};

TEST(KafkaPort, KW_FLUSH_ADD_LOST) {
  World world;
  KafkaPort port(world, 1, 20);
  KafkaTimer first;
  KafkaTimer second;
  int first_fired = 0;
  int second_fired = 0;
  port.start_after(first, 5, [&] { ++first_fired; });
  // The adding thread chooses the bucket of tick 5, and is then held up.
  second.task = [&] { ++second_fired; };
  second.deadline = 5;
  const KafkaPort::Place place = port.choose(second);
  // The poller flushes that bucket, until it has released the lock.
  world.real = 5;
  KafkaBucket* bucket = port.take_due_bucket();
  ASSERT_EQ(bucket, place.bucket);
  bucket->empty_into([&](KafkaTimer& timer) { port.add(timer); });
  // The adding thread continues. The deadline of the bucket is not new, so the bucket is not
  // offered. Then the poller resets the deadline.
  port.insert(second, place);
  bucket->reset_deadline();
  port.run_until(1'000'000);
  EXPECT_EQ(first_fired, 1);
  EXPECT_EQ(second_fired, 0) << "bug of the port: the timer is lost";
}

// Several threads add timers for the present moment. All timers must fire.
TEST(SchedulerUnderThreads, KW_FLUSH_ADD_LOST) {
  constexpr int kThreads = 3;
  constexpr int kTimers = 2'000;
  ManualClock clock;
  Scheduler scheduler({.clock = &clock});
  std::atomic<int> fired = 0;
  {
    const RunningTime time(clock, 10us);
    std::vector<std::thread> adders;
    for (int i = 0; i < kThreads; ++i) {
      adders.emplace_back([&] {
        for (int n = 0; n < kTimers; ++n) {
          scheduler.schedule_at(clock.now() + (n % 3) * 10us, [&] { ++fired; }).release();
        }
      });
    }
    for (std::thread& adder : adders) adder.join();
  }
  clock.advance(30us);
  clock.await_waiters(1);
  EXPECT_EQ(fired, kThreads * kTimers);
}

TEST(KafkaPort, KW_STOP_FALSE_FIRES) {
  World world;
  KafkaPort port(world, 1, 20);
  KafkaTimer timer;
  Millis fired = kNever;
  port.start_after(timer, 25, [&] { fired = world.real; });
  // At 20, the poller moves the timer to the lower level. In the middle of the move, the timer is
  // in no bucket.
  world.real = 20;
  KafkaBucket* bucket = port.take_due_bucket();
  ASSERT_NE(bucket, nullptr);
  bool stopped = true;
  bucket->empty_into([&](KafkaTimer& moving) {
    stopped = KafkaPort::stop(moving);
    port.add(moving);
  });
  bucket->reset_deadline();
  port.run_until(1'000);
  EXPECT_FALSE(stopped);
  EXPECT_EQ(fired, 25) << "bug of the port: it still fires";

  // A timer of Detent that is cancelled at any tick on its way down was pending, and does not fire.
  using OurQueues = Joined<EveryQueue, OnDemandUnderBothDrives<20>>::Types;
  for_each_queue<OurQueues>([]<class Case>(Case) {
    for (Tick cancel_at = 0; cancel_at < 450; ++cancel_at) {
      auto queue = Case::make(0);
      TimerOf<Case> ours;
      ASSERT_TRUE(queue->schedule(ours, 450));
      for (Tick now = 1; now <= cancel_at; ++now) count_fired(*queue, now);
      ASSERT_TRUE(queue->cancel(ours));
      ASSERT_EQ(count_fired(*queue, 1'000), 0u);
    }
  });
}

// The result of `cancel` must be true, while timers cascade and fire on another thread.
TEST(SchedulerUnderThreads, KW_STOP_FALSE_FIRES) {
  constexpr int kTimers = 3'000;
  ManualClock clock;
  std::vector<Outcome> outcomes(kTimers);
  int cancelled = 0;
  {
    Scheduler scheduler({.resolution = 1us, .clock = &clock});
    std::vector<TimerHandle> timers;
    for (Outcome& outcome : outcomes) {
      timers.push_back(scheduler.schedule_after(std::chrono::microseconds{timers.size()},
                                                [&outcome] { ++outcome.runs; }));
    }
    const RunningTime time(clock, 1us);
    while (outcomes[kTimers / 8].runs == 0) std::this_thread::yield();
    for (std::size_t i = kTimers; i-- > 0;) outcomes[i].cancel = timers[i].cancel();
  }
  for (const Outcome& outcome : outcomes) {
    const bool was_cancelled = outcome.cancel == CancelResult::cancelled;
    ASSERT_EQ(outcome.runs, was_cancelled ? 0 : 1);
    cancelled += was_cancelled ? 1 : 0;
  }
  EXPECT_LE(cancelled, kTimers - kTimers / 8) << "the first ones ran before any was cancelled";
}

TEST(KafkaPort, KW_GOROUTINES) {
  constexpr std::size_t kTimers = 200'000;
  World world;
  KafkaPort port(world, 1, 20);
  std::vector<KafkaTimer> port_timers(kTimers);
  for (KafkaTimer& timer : port_timers) port.start_after(timer, 5, [] {});
  port.run_until(5);
  EXPECT_EQ(port.most_tasks_at_once(), kTimers);

  ManualClock clock;
  std::atomic<std::size_t> running = 0;
  std::atomic<std::size_t> most = 0;
  std::atomic<std::size_t> runs = 0;
  {
    ThreadPool pool({.threads = 2, .capacity = 64});
    Scheduler scheduler({.clock = &clock, .executor = &pool});
    for (std::size_t i = 0; i < kTimers; ++i) {
      scheduler
          .schedule_after(
              5ms,
              [&] {
                const std::size_t now_running = ++running;
                std::size_t seen = most;
                while (seen < now_running && !most.compare_exchange_weak(seen, now_running)) {
                }
                ++runs;
                --running;
              })
          .release();
    }
    clock.advance(5ms);
    scheduler.stop(Drain::run_due);
  }
  EXPECT_EQ(runs, kTimers);
  EXPECT_LE(most, 3u) << "two threads of the pool, and the driver when the pool's queue is full";
}

TEST(KafkaPort, KW_DOUBLE_STOP) {
  World world;
  KafkaPort port(world, 1, 20);
  port.stop_wheel();
  EXPECT_THROW(port.stop_wheel(), std::logic_error);

  SchedulerRig rig;
  rig.scheduler().schedule_after(1h, [] {}).release();
  EXPECT_EQ(rig.scheduler().stop(Drain::hand_back).size(), 1u);
  EXPECT_TRUE(rig.scheduler().stop(Drain::hand_back).empty());
}

TEST(KafkaPort, KW_STOP_SILENT) {
  World world;
  KafkaPort port(world, 1, 20);
  int port_fired = 0;
  KafkaTimer pending;
  KafkaTimer late;
  port.start_after(pending, 5, [&] { ++port_fired; });
  port.stop_wheel();
  port.start_after(late, 5, [&] { ++port_fired; });
  port.run_until(1'000'000);
  EXPECT_EQ(port_fired, 0);
  EXPECT_NE(pending.bucket, nullptr) << "the timer still reports that it is pending";
  EXPECT_NE(late.bucket, nullptr) << "it was accepted";

  SchedulerRig rig;
  int fired = 0;
  rig.scheduler().schedule_after(5ms, [&] { ++fired; }).release();
  std::vector<PendingJob> left = rig.scheduler().stop(Drain::hand_back);
  ASSERT_EQ(left.size(), 1u);
  EXPECT_EQ(left[0].deadline, MonotonicTime{5ms});
  left[0].job();
  EXPECT_EQ(fired, 1);
  EXPECT_FALSE(rig.scheduler().schedule_after(5ms, [] {})) << "refused, with an empty handle";
  EXPECT_EQ(rig.scheduler().stats().dropped, 2u);
}

TEST(KafkaPort, KW_OFFER_AFTER_EXIT) {
  KafkaPollerPort poller;
  poller.sleep();
  poller.stop_receiving();
  EXPECT_FALSE(poller.offer_earliest()) << "bug of the port: the call never returns";
  poller.reset_state();
}

// Each thread schedules earlier and earlier timers, which wake the driver, while the scheduler
// stops. All calls must return.
TEST(SchedulerUnderThreads, KW_OFFER_AFTER_EXIT) {
  for (int round = 0; round < 100; ++round) {
    ManualClock clock;
    Scheduler scheduler({.clock = &clock});
    std::atomic<int> refused = 0;
    std::vector<std::thread> adders;
    for (int i = 0; i < 2; ++i) {
      adders.emplace_back([&] {
        for (int n = 0; refused < 2; ++n) {
          const TimerHandle timer = scheduler.schedule_at(MonotonicTime{1h} - n * 10us, [] {});
          if (!timer) ++refused;
        }
      });
    }
    std::this_thread::yield();
    scheduler.stop();
    for (std::thread& adder : adders) adder.join();
    EXPECT_EQ(scheduler.stats().pending, 0u);
  }
}

TEST(KafkaPort, KW_PQ_CAP0) {
  KafkaHeapPort<int> heap(0);
  EXPECT_THROW(heap.push(1, 1), std::out_of_range);
  EXPECT_THROW(heap.push(1, 1), std::out_of_range) << "bug of the port: every push fails";

  // DelayQueue begins without memory, allocates it and frees it. With a capacity of 1, it holds one
  // element.
  DelayQueue<int> ours;
  EXPECT_EQ(ours.allocated(), 0u);
  for (int i = 0; i < 100; ++i) EXPECT_EQ(ours.push(i, 0s), PushResult::pushed);
  for (int i = 0; i < 100; ++i) EXPECT_EQ(ours.try_pop(), i);
  EXPECT_LT(ours.allocated(), 100u);
  DelayQueue<int> least({.capacity = 1});
  EXPECT_EQ(least.try_push(1, 0s), PushResult::pushed);
  EXPECT_EQ(least.try_push(2, 0s), PushResult::full);
  EXPECT_EQ(least.try_pop(), 1);
}

TEST(KafkaPort, KW_POP_RETAINS) {
  KafkaHeapPort<std::shared_ptr<int>> heap(4);
  auto element = std::make_shared<int>(1);
  const std::weak_ptr<int> watch = element;
  heap.push(1, std::move(element));
  EXPECT_EQ(*heap.pop(), 1);
  EXPECT_FALSE(watch.expired()) << "bug of the port: the array keeps the element";

  // DelayQueue gives away its only reference, and a job is destroyed after its run.
  DelayQueue<std::shared_ptr<int>> queue;
  queue.push(std::make_shared<int>(2), 0s);
  queue.push(std::make_shared<int>(3), 0s);
  std::optional<std::shared_ptr<int>> popped = queue.try_pop();
  ASSERT_TRUE(popped.has_value());
  EXPECT_EQ(popped->use_count(), 1);
  SchedulerRig rig;
  auto held = std::make_shared<int>(4);
  const std::weak_ptr<int> ours = held;
  rig.scheduler().schedule_after(1ms, [held = std::move(held)] {}).release();
  rig.advance(1ms);
  EXPECT_TRUE(ours.expired());
}

}  // namespace
}  // namespace detent::classic

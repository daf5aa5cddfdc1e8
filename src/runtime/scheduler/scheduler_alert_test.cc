// Alerts: when a crossed threshold causes an alert, and that on_alert may use the scheduler.
#include <gtest/gtest.h>

#include <atomic>
#include <functional>
#include <optional>
#include <stdexcept>
#include <thread>
#include <utility>
#include <vector>

#include "base/mutex.h"
#include "detent/scheduler.h"
#include "detent/simulation.h"
#include "runtime/testing/scheduler_test_rig.h"

namespace detent {
namespace {

using namespace std::chrono_literals;

void ignore(const std::exception_ptr&) {}

/// Records alerts, and can do something else in on_alert. Thread-safe.
class Listener {
 public:
  void on_alert(const Alert& alert) {
    {
      MutexLock lock(mu_);
      alerts_.push_back(alert);
    }
    if (then_) then_();
  }
  /// Sets an extra action of `on_alert`. Requires: no timer is scheduled yet.
  void then(std::function<void()> what) { then_ = std::move(what); }

  std::vector<std::uint64_t> values(Alert::Kind kind) const {
    MutexLock lock(mu_);
    std::vector<std::uint64_t> values;
    for (const Alert& alert : alerts_) {
      if (alert.kind == kind) values.push_back(alert.value);
    }
    return values;
  }
  std::size_t count() const {
    MutexLock lock(mu_);
    return alerts_.size();
  }

 private:
  std::function<void()> then_;
  mutable Mutex mu_;
  std::vector<Alert> alerts_ DETENT_GUARDED_BY(mu_);
};

/// Options with `alerts`, sent to `listener`. One shard, so that all threads use the same shard.
SchedulerOptions told_to(Listener& listener, AlertOptions alerts) {
  alerts.on_alert = [&listener](const Alert& alert) { listener.on_alert(alert); };
  return {.error_handler = ignore, .shards = 1, .alerts = std::move(alerts)};
}

using Values = std::vector<std::uint64_t>;

// ---- pending ------------------------------------------------------------------------------------

TEST(SchedulerAlert, PendingAlertsEachTimeTheNumberRisesToItsThreshold) {
  Listener listener;
  SchedulerRig rig(told_to(listener, {.pending = 3}));
  std::vector<TimerHandle> timers;
  const auto add = [&] { timers.push_back(rig.scheduler().schedule_after(1h, [] {})); };
  add();
  add();
  EXPECT_EQ(listener.count(), 0u);
  add();
  EXPECT_EQ(listener.values(Alert::Kind::pending), (Values{3}));
  add();
  add();
  EXPECT_EQ(listener.count(), 1u) << "once per crossing";
  timers.pop_back();
  timers.pop_back();
  EXPECT_EQ(listener.count(), 1u) << "falling to the threshold is no alert";
  timers.pop_back();
  add();
  EXPECT_EQ(listener.values(Alert::Kind::pending), (Values{3, 3}));
}

TEST(SchedulerAlert, PendingCountsDownWhenTimersEnd) {
  Listener listener;
  SchedulerRig rig(told_to(listener, {.pending = 2}));
  for (int round = 0; round < 3; ++round) {
    rig.scheduler().schedule_after(1ms, [] {}).release();
    rig.scheduler().schedule_every({.period = 1ms, .count = 2}, [] {}).release();
    rig.advance(1ms);
    rig.advance(1ms);
  }
  EXPECT_EQ(listener.values(Alert::Kind::pending), (Values{2, 2, 2}));
}

TEST(SchedulerAlert, PendingAlertsOnceWhenManyThreadsCrossTheThreshold) {
  Listener listener;
  SchedulerOptions options = told_to(listener, {.pending = 1000});
  options.shards = 4;
  SchedulerRig rig(std::move(options));
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([&] {
      for (int n = 0; n < 500; ++n) rig.scheduler().schedule_after(1h, [] {}).release();
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(listener.values(Alert::Kind::pending), (Values{1000}));
}

// ---- errors -------------------------------------------------------------------------------------

TEST(SchedulerAlert, ErrorsAlertAtEveryMultipleOfTheThreshold) {
  Listener listener;
  SchedulerRig rig(told_to(listener, {.errors = 2}));
  std::vector<std::size_t> told_after;
  for (int i = 0; i < 5; ++i) {
    rig.scheduler().schedule_after(0s, [] { throw std::runtime_error("broken"); }).release();
    rig.scheduler().schedule_after(0s, [] {}).release();
    rig.advance(1ms);
    told_after.push_back(listener.count());
  }
  EXPECT_EQ(told_after, (std::vector<std::size_t>{0, 1, 1, 2, 2}));
  EXPECT_EQ(listener.values(Alert::Kind::errors), (Values{2, 4}));
  EXPECT_EQ(rig.scheduler().stats().errors, 5u);
}

TEST(SchedulerAlert, ErrorsOfAllShardsAreCountedTogether) {
  Listener listener;
  SchedulerOptions options = told_to(listener, {.errors = 100});
  options.shards = 4;
  SchedulerRig rig(std::move(options));
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([&] {
      for (int n = 0; n < 50; ++n) {
        rig.scheduler().schedule_after(1ms, [] { throw std::runtime_error("broken"); }).release();
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  rig.advance(1ms);
  EXPECT_EQ(listener.values(Alert::Kind::errors), (Values{100, 200}));
}

TEST(SchedulerAlertDeathTest, AThresholdOfZeroErrorsIsABug) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  Listener listener;
  EXPECT_DEATH(SchedulerRig rig(told_to(listener, {.errors = 0})), "check failed");
}

// ---- lateness -----------------------------------------------------------------------------------

/// Makes a timer run `late` after its deadline.
void run_late(SchedulerRig& rig, std::chrono::nanoseconds late) {
  rig.scheduler().schedule_after(1ms, [] {}).release();
  rig.settle();
  rig.advance(1ms + late);
}

TEST(SchedulerAlert, LatenessAlertsWhenARunCrossesTheThresholdAndThePreviousDidNot) {
  Listener listener;
  SchedulerRig rig(told_to(listener, {.lateness = 10ms}));
  run_late(rig, 10ms);
  EXPECT_EQ(listener.count(), 0u) << "as late as the threshold is not later";
  run_late(rig, 11ms);
  EXPECT_EQ(listener.values(Alert::Kind::lateness), (Values{11'000'000}));
  run_late(rig, 12ms);
  run_late(rig, 13ms);
  EXPECT_EQ(listener.count(), 1u) << "once per crossing";
  run_late(rig, 0ms);
  EXPECT_EQ(listener.count(), 1u);
  run_late(rig, 14ms);
  EXPECT_EQ(listener.values(Alert::Kind::lateness), (Values{11'000'000, 14'000'000}));
}

TEST(SchedulerAlert, LatenessCountsFromTheDeadlineNotFromTheTick) {
  Listener listener;
  SchedulerOptions options = told_to(listener, {.lateness = 10ms});
  options.resolution = 20ms;
  SchedulerRig rig(std::move(options));
  rig.scheduler().schedule_after(1ms, [] {}).release();
  rig.settle();
  rig.advance(20ms);
  EXPECT_EQ(listener.values(Alert::Kind::lateness), (Values{19'000'000}));
}

TEST(SchedulerAlert, ADelayOfZeroIsNotLateByTheStartOfItsTick) {
  Listener listener;
  SchedulerOptions options = told_to(listener, {.lateness = 100ms});
  options.resolution = 1s;
  Simulation simulation(1, {.scheduler = std::move(options)});
  Scheduler& scheduler = simulation.scheduler();
  simulation.run_for(10'900ms);
  scheduler.schedule_keyed("key", 0ms, [] {});
  scheduler.schedule_after(-1h, [] {}).release();
  const std::optional<TimerInfo> info = scheduler.find_key("key");
  ASSERT_TRUE(info);
  EXPECT_EQ(info->deadline, simulation.clock().now());
  simulation.run_for(0ms);
  EXPECT_EQ(listener.count(), 0u);
  const LatenessReport report = scheduler.lateness();
  EXPECT_EQ(report.total.count, 2u);
  EXPECT_EQ(report.total.sum_ns, 0u);
  EXPECT_EQ(report.rounding.sum_ns, 0u);
}

// ---- on_alert -----------------------------------------------------------------------------------

TEST(SchedulerAlert, WithoutThresholdsThereAreNoAlerts) {
  Listener listener;
  SchedulerRig rig(told_to(listener, {}));
  rig.scheduler().schedule_after(0s, [] { throw std::runtime_error("broken"); }).release();
  rig.advance(1ms);
  run_late(rig, 1h);
  EXPECT_EQ(listener.count(), 0u);
}

TEST(SchedulerAlert, ThresholdsWithoutAListenerHaveNoEffect) {
  SchedulerRig rig(
      {.error_handler = ignore, .alerts = {.pending = 1, .errors = 1, .lateness = 1ns}});
  rig.scheduler().schedule_after(0s, [] { throw std::runtime_error("broken"); }).release();
  run_late(rig, 1h);
  EXPECT_EQ(rig.scheduler().stats().completed, 2u);
}

/// All three thresholds. The first timer crosses them if it throws and is late.
SchedulerOptions all_told_to(Listener& listener) {
  return told_to(listener, {.pending = 1, .errors = 1, .lateness = 1ns});
}

// This test would hang if the scheduler held a lock during on_alert.
TEST(SchedulerAlert, AListenerMayUseTheScheduler) {
  Listener listener;
  SchedulerRig rig(all_told_to(listener));
  TimerHandle timer;
  std::vector<std::uint64_t> pending_seen;
  listener.then([&] {
    Scheduler& scheduler = rig.scheduler();
    // Some timers are already pending, so another timer does not cross the threshold.
    TimerHandle other = scheduler.schedule_after(1h, [] {});
    EXPECT_TRUE(other.expires_after(2h));
    scheduler.schedule_keyed(
        "key", 1h, [] {}, SameKey::replace);
    scheduler.cancel_key("key");
    scheduler.lateness();
    scheduler.forecast(1s, 10);
    timer.expires_after(1ms);
    pending_seen.push_back(scheduler.pending_timers().size());
    EXPECT_EQ(other.cancel(), CancelResult::cancelled);
    EXPECT_EQ(scheduler.stats().pending, scheduler.stats().scheduled - scheduler.stats().cancelled -
                                             scheduler.stats().running);
  });
  timer = rig.scheduler().schedule_after(1ms, [] { throw std::runtime_error("broken"); });
  rig.settle();
  rig.advance(1s);
  EXPECT_EQ(listener.values(Alert::Kind::pending), (Values{1}));
  EXPECT_EQ(listener.values(Alert::Kind::errors), (Values{1}));
  EXPECT_EQ(listener.values(Alert::Kind::lateness).size(), 1u);
  EXPECT_EQ(pending_seen, (Values{1, 2, 2})) << "its own, and from its first run on the timer";
}

TEST(SchedulerAlert, AListenerMayCancelTheTimerThatCausedTheAlert) {
  Listener listener;
  SchedulerRig rig(told_to(listener, {.lateness = 1ns}));
  TimerHandle timer;
  listener.then([&] { EXPECT_EQ(timer.cancel_and_wait(), CancelResult::running); });
  int runs = 0;
  timer = rig.scheduler().schedule_every({.period = 1ms}, [&] { ++runs; });
  rig.settle();
  rig.advance(1s);
  rig.advance(1s);
  EXPECT_EQ(runs, 1) << "the run that was late goes on, and is the last";
}

TEST(SchedulerAlert, AListenerMayStopTheSchedulerAndTheTimerIsRefused) {
  Listener listener;
  SchedulerRig rig(told_to(listener, {.pending = 2}));
  listener.then([&] { EXPECT_EQ(rig.scheduler().stop(Drain::hand_back).size(), 1u); });
  int alive = 0;
  const TimerHandle first = rig.scheduler().schedule_after(1h, [token = LifeToken(alive)] {});
  EXPECT_FALSE(rig.scheduler().schedule_after(1h, [token = LifeToken(alive)] {}));
  EXPECT_EQ(alive, 0);
  EXPECT_EQ(rig.scheduler().stats().dropped, 2u);
}

TEST(SchedulerAlert, AListenerMayStopTheSchedulerFromTheDriversThread) {
  for (const AlertOptions& alerts : {AlertOptions{.errors = 1}, AlertOptions{.lateness = 1ns}}) {
    Listener listener;
    SchedulerRig rig(told_to(listener, alerts));
    Gate stopped;
    listener.then([&] {
      rig.scheduler().stop();
      stopped.open();
    });
    int runs = 0;
    const auto job = [&] {
      ++runs;
      throw std::runtime_error("broken");
    };
    const TimerHandle late = rig.scheduler().schedule_every({.period = 1ms}, job);
    rig.settle();
    rig.clock().advance(1s);
    stopped.wait();
    rig.scheduler().stop();
    EXPECT_EQ(runs, 1);
    EXPECT_EQ(rig.scheduler().stats().dropped, 1u);
  }
}

}  // namespace
}  // namespace detent

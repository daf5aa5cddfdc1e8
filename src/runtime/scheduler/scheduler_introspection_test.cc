// The figures of a scheduler, compared with models: counts, the list of timers, and the future
// load.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <map>
#include <optional>
#include <set>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "base/test_seed.h"
#include "detent/scheduler.h"
#include "detent/simulation.h"
#include "runtime/testing/scheduler_test_rig.h"

namespace detent {
namespace {

using namespace std::chrono_literals;
using std::chrono::nanoseconds;

// ---- stats --------------------------------------------------------------------------------------

/// Schedules random timers on a simulation, and counts what the scheduler should count.
class StatsModel {
 public:
  explicit StatsModel(std::uint64_t seed)
      : rng_(seed),
        simulation_(seed, {.job_delay = 500us,
                           .scheduler = {.error_handler = [](const std::exception_ptr&) {},
                                         .capacity = 30}}) {}

  void play(int steps) {
    for (int step = 0; step < steps; ++step) {
      const std::size_t i = rng_.below(kTimers);
      switch (rng_.below(4)) {
        case 0:
          cancel(i);
          break;
        case 1:
          if (timers_.at(i).handle.expires_after(any_delay())) break;
          [[fallthrough]];
        default:
          cancel(i);
          schedule(i);
      }
      simulation_.run_for(nanoseconds{rng_.below(200'000)});
      compare();
    }
  }

  void stop_and_go_on() {
    const std::vector<PendingJob> left = simulation_.scheduler().stop(Drain::hand_back);
    EXPECT_EQ(left.size(), model_.pending);
    model_.dropped += std::exchange(model_.pending, 0);
    compare();
    for (int i = 0; i < 10; ++i) {
      EXPECT_FALSE(simulation_.scheduler().schedule_after(0s, [] {}));
      ++model_.scheduled;
      ++model_.dropped;
    }
    compare();
  }

  const SchedulerStats& model() const { return model_; }

 private:
  static constexpr std::size_t kTimers = 150;
  struct Timer {
    TimerHandle handle;
    std::uint64_t runs_left = 0;
  };

  nanoseconds any_delay() { return nanoseconds{rng_.below(20'000'000)} - 1ms; }

  void schedule(std::size_t i) {
    const std::uint64_t count = 1 + rng_.below(4);
    const bool is_periodic = rng_.below(2) == 0;
    const PeriodicOptions periodic{.period = nanoseconds{1 + rng_.below(9'000'000)},
                                   .count = count};
    Job job = [this, i] { run(i); };
    Scheduler& scheduler = simulation_.scheduler();
    Timer& timer = timers_.at(i);
    timer.handle = is_periodic ? scheduler.schedule_every(periodic, std::move(job))
                               : scheduler.schedule_after(any_delay(), std::move(job));
    timer.runs_left = is_periodic ? count : 1;
    ++model_.scheduled;
    ++(timer.handle ? model_.pending : model_.rejected);
  }

  void cancel(std::size_t i) {
    const bool was_pending = timers_.at(i).handle.is_pending();
    const bool cancelled = timers_.at(i).handle.cancel() == CancelResult::cancelled;
    EXPECT_EQ(cancelled, was_pending);
    if (!cancelled) return;
    --model_.pending;
    ++model_.cancelled;
  }

  void run(std::size_t i) {
    ++model_.runs;
    --model_.pending;
    ++model_.running;
    compare();
    const bool is_last = --timers_.at(i).runs_left == 0;
    const bool ends = rng_.below(5) == 0;
    if (ends) {
      EXPECT_EQ(timers_.at(i).handle.cancel(), CancelResult::running);
    }
    --model_.running;
    ++(is_last ? model_.completed : ends ? model_.cancelled : model_.pending);
    if (rng_.below(3) != 0) return;
    ++model_.errors;
    throw std::runtime_error("broken");
  }

  void compare() {
    const SchedulerStats stats = simulation_.scheduler().stats();
    ASSERT_EQ(stats.scheduled, model_.scheduled);
    ASSERT_EQ(stats.completed, model_.completed);
    ASSERT_EQ(stats.cancelled, model_.cancelled);
    ASSERT_EQ(stats.dropped, model_.dropped);
    ASSERT_EQ(stats.rejected, model_.rejected);
    ASSERT_EQ(stats.pending, model_.pending);
    ASSERT_EQ(stats.running, model_.running);
    ASSERT_EQ(stats.runs, model_.runs);
    ASSERT_EQ(stats.errors, model_.errors);
    ASSERT_GE(stats.wakeups, model_.wakeups);
    model_.wakeups = stats.wakeups;
    ASSERT_EQ(stats.scheduled, stats.completed + stats.cancelled + stats.dropped + stats.rejected +
                                   stats.pending + stats.running);
  }

  Rng rng_;
  SchedulerStats model_;
  Simulation simulation_;
  std::array<Timer, kTimers> timers_;  // destroyed before the simulation
};

TEST(SchedulerStats, AreTheModelsUnderRandomUse) {
  const std::uint64_t seed = test_seed();
  SCOPED_TRACE(replay_hint(seed));
  StatsModel model(seed);
  model.play(10'000);
  model.stop_and_go_on();
  // Each count must have been used.
  const SchedulerStats& stats = model.model();
  EXPECT_GT(stats.completed, 100u);
  EXPECT_GT(stats.cancelled, 100u);
  EXPECT_GT(stats.dropped, 10u);
  EXPECT_GT(stats.rejected, 100u);
  EXPECT_GT(stats.errors, 100u);
  EXPECT_GT(stats.wakeups, 100u);
}

// ---- pending_timers -----------------------------------------------------------------------------

std::map<std::string, TimerInfo> by_name(const std::vector<TimerInfo>& timers) {
  std::map<std::string, TimerInfo> named;
  for (const TimerInfo& timer : timers) named.emplace(timer.name, timer);
  EXPECT_EQ(named.size(), timers.size());
  return named;
}

TEST(SchedulerPendingTimers, DescribeATimerAndWhereItWasScheduled) {
  SchedulerRig rig;
  const WallTime date = std::chrono::floor<std::chrono::milliseconds>(rig.clock().wall_now()) + 3h;
  std::string name = "once";
  const std::uint_least32_t line = __LINE__ + 1;
  const TimerHandle once = rig.scheduler().schedule_after(1h, [] {}, {.name = name});
  name = "overwritten";  // the scheduler must have copied it
  const TimerHandle often =
      rig.scheduler().schedule_every({.period = 2h}, [] {}, {.name = "often"});
  const TimerHandle dated = rig.scheduler().schedule_at(date, [] {}, {.name = "dated"});
  const TimerHandle plain = rig.scheduler().schedule_at(MonotonicTime{4h}, [] {});
  rig.scheduler().schedule_keyed("keyed", 5h, [] {});
  const std::map<std::string, TimerInfo> timers = by_name(rig.scheduler().pending_timers());
  ASSERT_EQ(timers.size(), 5u);
  const std::array<const char*, 5> in_order = {"once", "often", "dated", "", "keyed"};
  for (std::size_t i = 0; i < in_order.size(); ++i) {
    const TimerInfo& timer = timers.at(in_order.at(i));
    EXPECT_EQ(timer.state, TimerState::pending);
    EXPECT_EQ(timer.deadline, MonotonicTime{(1 + i) * 1h});
    EXPECT_EQ(timer.date.has_value(), timer.name == "dated");
    EXPECT_EQ(timer.period.has_value(), timer.name == "often");
    EXPECT_EQ(std::string(timer.scheduled_at.file), __FILE__);
    EXPECT_EQ(timer.scheduled_at.line == line, i == 0) << timer.name;
    EXPECT_GE(timer.scheduled_at.line, line + i);
  }
  EXPECT_EQ(timers.at("dated").date, date);
  EXPECT_EQ(timers.at("often").period, 2h);
}

TEST(SchedulerPendingTimers, ShowQueuedAndRunningTimers) {
  ManualClock clock;
  Gate began;
  Gate may_end;
  ThreadPool pool({.threads = 1});
  Scheduler scheduler({.clock = &clock, .executor = &pool});
  const TimerHandle running = scheduler.schedule_after(1ms,
                                                       [&] {
                                                         began.open();
                                                         may_end.wait();
                                                       },
                                                       {.name = "running"});
  const TimerHandle queued = scheduler.schedule_after(2ms, [] {}, {.name = "queued"});
  const TimerHandle pending = scheduler.schedule_after(3ms, [] {}, {.name = "pending"});
  clock.await_waiters(1);
  clock.advance(1ms);
  began.wait();
  clock.await_waiters(1);
  clock.advance(1ms);
  clock.await_waiters(1);
  std::map<std::string, TimerInfo> timers = by_name(scheduler.pending_timers());
  EXPECT_EQ(timers.at("running").state, TimerState::running);
  EXPECT_EQ(timers.at("queued").state, TimerState::queued);
  EXPECT_EQ(timers.at("pending").state, TimerState::pending);
  EXPECT_EQ(scheduler.forecast(1h, 1), std::vector<std::uint64_t>{2}) << "the queued one is due";
  may_end.open();
}

TEST(SchedulerPendingTimers, ListAllTimersOfAllShardsUpToTheLimit) {
  constexpr int kThreads = 4;
  constexpr int kTimers = 3000;
  SchedulerRig rig({.shards = 3});
  std::array<std::vector<TimerHandle>, kThreads> timers;
  std::vector<std::thread> threads;
  for (int i = 0; i < kThreads; ++i) {
    threads.emplace_back([&, i] {
      for (int n = 0; n < kTimers; ++n) {
        const std::string name = std::to_string(i * kTimers + n);
        timers.at(static_cast<std::size_t>(i))
            .push_back(rig.scheduler().schedule_after(1h, [] {}, {.name = name}));
        rig.scheduler().pending_timers(n % 3 == 0 ? 5 : 0);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  std::size_t left = kThreads * kTimers;
  for (std::vector<TimerHandle>& mine : timers) {
    for (std::size_t n = 100; n < 1500; n += 2, --left) mine[n].cancel();
  }
  EXPECT_EQ(by_name(rig.scheduler().pending_timers()).size(), left);
  for (const std::size_t limit : {std::size_t{0}, std::size_t{1}, std::size_t{1024},
                                  std::size_t{5000}, left - 1, left, left + 1}) {
    EXPECT_EQ(by_name(rig.scheduler().pending_timers(limit)).size(), std::min(limit, left));
  }
  EXPECT_EQ(rig.scheduler().forecast(2h, 1), std::vector<std::uint64_t>{left});
}

// ---- forecast -----------------------------------------------------------------------------------

TEST(SchedulerForecast, CountsTheSameAsABruteForceModel) {
  const std::uint64_t seed = test_seed();
  SCOPED_TRACE(replay_hint(seed));
  Rng rng(seed);
  Simulation simulation(seed, {.job_delay = 1h});  // so that some timers are overdue
  std::vector<MonotonicTime> deadlines;
  std::vector<TimerHandle> timers;
  for (int i = 0; i < 3000; ++i) {
    deadlines.emplace_back(nanoseconds{rng.next() >> (10 + rng.below(40))});
    timers.push_back(simulation.scheduler().schedule_at(deadlines.back(), [] {}));
  }
  for (int i = 0; i < 300; ++i) {
    deadlines.push_back(i % 2 == 0 ? MonotonicTime::max() : MonotonicTime{i * 1s});
    timers.push_back(simulation.scheduler().schedule_at(deadlines.back(), [] {}));
  }
  simulation.run_for(10s);
  const MonotonicTime now = simulation.clock().now();
  for (const nanoseconds width :
       {nanoseconds{1}, nanoseconds{1s}, nanoseconds{7s}, nanoseconds{24h}, nanoseconds::max()}) {
    for (const std::size_t bins : {std::size_t{0}, std::size_t{1}, std::size_t{50}}) {
      std::vector<std::uint64_t> expected(bins);
      for (std::size_t i = 0; i < timers.size(); ++i) {
        if (!timers[i].is_pending()) continue;
        const nanoseconds delay = std::max(0ns, deadlines[i] - now);
        for (std::size_t bin = 0; bin < bins; ++bin) {
          if (static_cast<std::size_t>(delay / width) == bin) ++expected[bin];
        }
      }
      EXPECT_EQ(simulation.scheduler().forecast(width, bins), expected);
    }
  }
  EXPECT_GT(simulation.scheduler().forecast(1ns, 1)[0], 0u) << "overdue ones";
}

TEST(SchedulerForecast, ABinIncludesItsStartAndNotItsEnd) {
  SchedulerRig rig;
  rig.scheduler().schedule_after(999ms, [] {}).release();
  rig.scheduler().schedule_after(1s, [] {}).release();
  rig.scheduler().schedule_every({.period = 500ms}, [] {}).release();
  rig.scheduler().schedule_after(3s, [] {}).release();
  EXPECT_EQ(rig.scheduler().forecast(1s, 3), (std::vector<std::uint64_t>{2, 1, 0}));
}

}  // namespace
}  // namespace detent

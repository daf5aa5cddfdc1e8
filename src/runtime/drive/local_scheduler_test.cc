#include "detent/local_scheduler.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <functional>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "runtime/testing/recurring_test_rig.h"
#include "runtime/testing/scheduler_test_rig.h"

namespace detent {
namespace {

using namespace std::chrono_literals;

/// A clock that moves by a microsecond at each reading, and counts the readings.
class CountingClock final : public Clock {
 public:
  MonotonicTime now() const noexcept override {
    ++readings;
    return time += 1us;
  }
  WallInstant wall_now() const noexcept override { return WallInstant{time.time_since_epoch()}; }
  bool wait(Doorbell&, std::optional<MonotonicTime>) noexcept override { std::abort(); }

  mutable MonotonicTime time{};
  mutable int readings = 0;
};

class LocalSchedulerTest : public testing::Test {
 protected:
  static LocalSchedulerOptions on(Clock& clock) { return {.resolution = 1ms, .clock = &clock}; }
  void advance(std::chrono::nanoseconds delta) {
    clock_.advance(delta);
    timers_.run_ready();
  }
  /// A job that appends `name` to ran_.
  auto note(char name) {
    return [this, name] { ran_ += name; };
  }

  ManualClock clock_;
  std::string ran_;
  LocalScheduler timers_{on(clock_)};
};

TEST_F(LocalSchedulerTest, RunsJobsAtTheirDeadlinesInOrder) {
  timers_.schedule_after(20ms, note('b')).release();
  timers_.schedule_after(10ms, note('a')).release();
  timers_.schedule_at(clock_.now() + 30ms, note('c')).release();
  EXPECT_EQ(timers_.time_to_next(), 10ms);
  advance(9ms);
  EXPECT_EQ(ran_, "");
  advance(1ms);
  EXPECT_EQ(ran_, "a");
  EXPECT_EQ(timers_.next_wakeup(), clock_.now() + 10ms);
  advance(1s);
  EXPECT_EQ(ran_, "abc");
  EXPECT_EQ(timers_.time_to_next(), std::nullopt);
  EXPECT_EQ(timers_.next_wakeup(), std::nullopt);
}

TEST_F(LocalSchedulerTest, IsNeverEarlyOutsideOfATurn) {
  timers_.schedule_after(10ms, note('a')).release();
  clock_.advance(5ms);
  timers_.schedule_after(10ms, note('b')).release();  // no turn has begun: counts from now
  advance(5ms);
  EXPECT_EQ(ran_, "a");
  advance(5ms);
  EXPECT_EQ(ran_, "ab");
}

TEST_F(LocalSchedulerTest, ATurnReadsTheClockOnce) {
  CountingClock clock;
  LocalScheduler timers(on(clock));
  timers.schedule_after(0s, [&] { timers.schedule_after(1s, [] {}).release(); }).release();
  clock.readings = 0;
  timers.begin_turn();
  const MonotonicTime turn = timers.now();
  std::vector<TimerHandle> handles;
  for (int i = 0; i < 100; ++i) handles.push_back(timers.schedule_after(1s, [] {}));
  handles[0].expires_after(2s);
  EXPECT_EQ(timers.run_ready().fired, 1u);
  EXPECT_EQ(clock.readings, 1);
  EXPECT_EQ(turn, clock.time);
  EXPECT_GT(timers.now(), turn);  // the turn is over
}

TEST_F(LocalSchedulerTest, CancelAnswersExactly) {
  int alive = 0;
  TimerHandle timer = timers_.schedule_after(1s, [token = LifeToken(alive)] {});
  EXPECT_TRUE(timer.is_pending());
  EXPECT_EQ(alive, 1);
  EXPECT_EQ(timer.cancel(), CancelResult::cancelled);
  EXPECT_EQ(alive, 0);
  EXPECT_FALSE(timer);
  EXPECT_EQ(timer.cancel(), CancelResult::not_pending);

  timer = timers_.schedule_after(0s, [] {});
  EXPECT_EQ(timers_.run_ready().fired, 1u);
  EXPECT_FALSE(timer.is_pending());
  EXPECT_EQ(timer.cancel(), CancelResult::not_pending);
  { const TimerHandle dropped = timers_.schedule_after(0s, note('x')); }
  timers_.run_ready();
  EXPECT_EQ(ran_, "");
  const SchedulerStats stats = timers_.stats();
  EXPECT_EQ(stats.scheduled, 3u);
  EXPECT_EQ(stats.cancelled, 2u);
  EXPECT_EQ(stats.completed, 1u);
}

TEST_F(LocalSchedulerTest, AJobMayCancelAndMoveItselfAndOthers) {
  TimerHandle self;
  TimerHandle other = timers_.schedule_after(10ms, note('o'));
  TimerHandle moved = timers_.schedule_after(10ms, note('m'));
  CancelResult result = CancelResult::not_pending;
  CancelResult waited = CancelResult::not_pending;
  self = timers_.schedule_after(5ms, [&] {
    waited = self.cancel_and_wait();
    result = self.cancel();
    EXPECT_FALSE(self.expires_after(1s));
    other.cancel();
    EXPECT_TRUE(moved.expires_after(1s));
  });
  advance(10ms);
  EXPECT_EQ(waited, CancelResult::running);
  EXPECT_EQ(result, CancelResult::running);
  EXPECT_EQ(ran_, "");
  advance(1s);
  EXPECT_EQ(ran_, "m");
}

TEST_F(LocalSchedulerTest, AJobCancelsATimerThatIsDueInTheSameCall) {
  TimerHandle second;
  timers_.schedule_after(1ms, [&] { EXPECT_EQ(second.cancel(), CancelResult::cancelled); })
      .release();
  second = timers_.schedule_after(2ms, note('x'));
  advance(1s);
  EXPECT_EQ(ran_, "");
  EXPECT_EQ(timers_.time_to_next(), std::nullopt);
}

// A job that always schedules the next due job must not keep the loop in run_ready.
TEST_F(LocalSchedulerTest, NewTimersRunInALaterCall) {
  int runs = 0;
  std::function<void()> again = [&] {
    ++runs;
    timers_.schedule_after(0s, again).release();
  };
  for (int i = 0; i < 1'000; ++i) timers_.schedule_after(0s, again).release();
  EXPECT_EQ(timers_.run_ready().fired, 1'000u);
  EXPECT_EQ(runs, 1'000);
  EXPECT_EQ(timers_.time_to_next(), 0ns);
  EXPECT_EQ(timers_.run_ready().fired, 1'000u);
  EXPECT_EQ(runs, 2'000);
}

TEST_F(LocalSchedulerTest, ACountEndsTheCallAndTheNextCallContinues) {
  for (int i = 0; i < 1'000; ++i) timers_.schedule_after(1ms, note('a')).release();
  clock_.advance(1ms);
  EXPECT_EQ(timers_.run_ready({.count = 0}).fired, 0u);
  EXPECT_TRUE(timers_.run_ready({.count = 0}).more);
  std::size_t ran = 0;
  while (timers_.time_to_next() == 0ns) {
    const AdvanceResult result = timers_.run_ready({.count = 300});
    ran += result.fired;
    EXPECT_LE(result.fired, 300u);
    EXPECT_EQ(result.more, ran < 1'000);
  }
  EXPECT_EQ(ran, 1'000u);
  EXPECT_EQ(timers_.stats().wakeups, 6u);
}

TEST_F(LocalSchedulerTest, ATimeEndsTheCallAfterTheJobThatExceedsIt) {
  for (int i = 0; i < 10; ++i) {
    timers_.schedule_after(1ms, [&] { clock_.advance(1ms); }).release();
  }
  clock_.advance(1ms);
  EXPECT_EQ(timers_.run_ready({.time = 3ms}).fired, 3u);
  EXPECT_EQ(timers_.run_ready({.time = 0ms}).fired, 1u);
  EXPECT_EQ(timers_.run_ready().fired, 6u);
}

TEST_F(LocalSchedulerTest, LeftTimersCanBeCancelledAndMoved) {
  TimerHandle first = timers_.schedule_after(1ms, note('a'));
  TimerHandle second = timers_.schedule_after(1ms, note('b'));
  TimerHandle third = timers_.schedule_after(1ms, note('c'));
  clock_.advance(1ms);
  EXPECT_EQ(timers_.run_ready({.count = 1}).fired, 1u);
  EXPECT_TRUE(second.is_pending());
  EXPECT_EQ(second.cancel(), CancelResult::cancelled);
  EXPECT_TRUE(third.expires_after(1s));
  EXPECT_EQ(timers_.time_to_next(), 1s);
  advance(1s);
  EXPECT_EQ(ran_, "ac");
}

TEST_F(LocalSchedulerTest, PeriodicTimersKeepTheirPeriodAndEnd) {
  timers_.schedule_every({.period = 10ms, .count = 3}, note('p')).release();
  int stopped = 0;
  timers_
      .schedule_every({.period = 10ms},
                      [&](TimerContext& timer) {
                        if (++stopped == 2) timer.stop();
                      })
      .release();
  for (int i = 0; i < 10; ++i) advance(10ms);
  EXPECT_EQ(ran_, "ppp");
  EXPECT_EQ(stopped, 2);
  EXPECT_EQ(timers_.stats().pending, 0u);
}

// The end of the run counts, although the time of the turn does not move.
TEST_F(LocalSchedulerTest, ASlowRunMissesItsTicks) {
  std::vector<std::chrono::nanoseconds> runs;
  const TimerHandle timer =
      timers_.schedule_every({.period = 10ms, .missed = MissedTick::skip}, [&] {
        runs.push_back(timers_.now().time_since_epoch());
        if (runs.size() == 1) clock_.advance(25ms);
      });
  for (int i = 0; i < 6; ++i) advance(10ms);
  EXPECT_EQ(runs[0], 10ms);
  EXPECT_EQ(runs[1], 45ms);
}

TEST_F(LocalSchedulerTest, RecurringTimersFollowTheWallClock) {
  std::vector<WallTime> dates;
  const TimerHandle timer =
      timers_.schedule_on(Every{1h}, [&](WallTime date) { dates.push_back(date); }, {.count = 2});
  EXPECT_EQ(timers_.time_to_next(), 1s);  // the check of the wall clock
  clock_.step_wall(2h);
  advance(1s);
  ASSERT_EQ(dates.size(), 1u);
  advance(1h);
  EXPECT_EQ(dates.size(), 2u);
  EXPECT_EQ(timers_.time_to_next(), std::nullopt);
}

TEST_F(LocalSchedulerTest, TimersForDatesWaitForTheWallClock) {
  const TimerHandle timer = timers_.schedule_at(clock_.wall_now() + 1h, note('d'));
  clock_.step_wall(-1h);
  advance(1h);
  EXPECT_EQ(ran_, "");
  advance(1h);
  EXPECT_EQ(ran_, "d");
}

// The wall clock is read although no date existed when the call began.
TEST_F(LocalSchedulerTest, AJobMayScheduleTheFirstDate) {
  timers_
      .schedule_after(0s, [&] { timers_.schedule_at(clock_.wall_now() - 1s, note('d')).release(); })
      .release();
  for (int i = 0; i < 600; ++i) timers_.schedule_after(0s, [] {}).release();  // several batches
  timers_.run_ready();
  timers_.run_ready();
  EXPECT_EQ(ran_, "d");
}

TEST_F(LocalSchedulerTest, ExceptionsGoToTheHandler) {
  std::vector<std::string> errors;
  LocalSchedulerOptions options = on(clock_);
  options.error_handler = [&](const std::exception_ptr& error) {
    try {
      std::rethrow_exception(error);
    } catch (const std::exception& caught) {
      errors.emplace_back(caught.what());
    }
  };
  LocalScheduler timers(options);
  int alive = 0;
  timers.schedule_after(0s, [token = LifeToken(alive)] { throw std::runtime_error("once"); })
      .release();
  const TimerHandle beat =
      timers.schedule_every({.period = 1s}, [] { throw std::runtime_error("beat"); });
  timers.schedule_after(0s, note('a')).release();
  timers.run_ready();
  EXPECT_EQ(alive, 0);
  EXPECT_EQ(ran_, "a");
  clock_.advance(1s);
  timers.run_ready();
  clock_.advance(1s);
  timers.run_ready();
  EXPECT_EQ(errors, (std::vector<std::string>{"once", "beat", "beat"}));
  EXPECT_EQ(timers.stats().errors, 3u);
  EXPECT_TRUE(beat.is_pending());
}

TEST_F(LocalSchedulerTest, RefusesTimersBeyondItsCapacityAndAfterTheStop) {
  LocalSchedulerOptions options = on(clock_);
  options.capacity = 1;
  LocalScheduler timers(options);
  TimerHandle first = timers.schedule_after(1s, [] {});
  EXPECT_FALSE(timers.schedule_after(1s, [] {}));
  first.cancel();
  EXPECT_TRUE(timers.schedule_after(1s, [] {}));
  timers.stop();
  EXPECT_FALSE(timers.is_running());
  EXPECT_FALSE(timers.schedule_after(1s, [] {}));
  EXPECT_EQ(timers.stats().rejected, 1u);
  EXPECT_EQ(timers.stats().dropped, 1u);
}

TEST_F(LocalSchedulerTest, HandlesMayOutliveTheScheduler) {
  int alive = 0;
  auto timers = std::make_unique<LocalScheduler>(on(clock_));
  TimerHandle kept = timers->schedule_after(1s, [token = LifeToken(alive)] {});
  TimerHandle released = timers->schedule_after(1s, [token = LifeToken(alive)] {});
  TimerHandle moved = timers->schedule_after(1s, [] {});
  timers.reset();
  EXPECT_EQ(alive, 0);
  EXPECT_FALSE(kept.is_pending());
  EXPECT_FALSE(kept.expires_after(1s));
  EXPECT_EQ(kept.cancel(), CancelResult::not_pending);
  released.release();
  moved = TimerHandle();  // the last share frees the memory; AddressSanitizer sees it
}

// ---- stop ---------------------------------------------------------------------------------------

TEST_F(LocalSchedulerTest, StopDropsOrHandsBack) {
  int alive = 0;
  timers_.schedule_after(1s, [token = LifeToken(alive)] {}).release();
  timers_.schedule_every({.period = 1s, .count = 5}, note('p'), {.name = "beat"}).release();
  std::vector<PendingJob> left = timers_.stop(Drain::hand_back);
  ASSERT_EQ(left.size(), 2u);
  EXPECT_EQ(alive, 1);
  const bool first_is_beat = left[0].name == "beat";
  PendingJob& beat = left[first_is_beat ? 0 : 1];
  EXPECT_EQ(beat.periodic->count, 5u);
  beat.job();
  EXPECT_EQ(ran_, "p");
  left.clear();
  EXPECT_EQ(alive, 0);
  EXPECT_TRUE(timers_.stop(Drain::drop).empty());
}

TEST_F(LocalSchedulerTest, StopRunsDueJobs) {
  timers_.schedule_after(1ms, note('a')).release();
  timers_.schedule_after(1s, note('b')).release();
  clock_.advance(1ms);
  timers_.stop(Drain::run_due);
  EXPECT_EQ(ran_, "a");
  EXPECT_EQ(timers_.time_to_next(), std::nullopt);
  EXPECT_EQ(timers_.stats().dropped, 1u);
}

TEST_F(LocalSchedulerTest, StopInsideAJobRunsDueJobs) {
  timers_.schedule_after(1ms, [&] { timers_.stop(Drain::run_due); }).release();
  timers_.schedule_after(2ms, note('a')).release();
  timers_.schedule_after(1s, note('b')).release();
  advance(2ms);
  EXPECT_EQ(ran_, "a");
  EXPECT_EQ(timers_.time_to_next(), std::nullopt);
}

TEST_F(LocalSchedulerTest, StopInsideAJobDropsDueJobs) {
  timers_.schedule_after(1ms, [&] { timers_.stop(); }).release();
  timers_.schedule_after(2ms, note('a')).release();
  advance(2ms);
  EXPECT_EQ(ran_, "");
  EXPECT_EQ(timers_.time_to_next(), std::nullopt);
}

TEST_F(LocalSchedulerTest, StopLetsTheLoopRunPendingJobs) {
  timers_.schedule_after(1s, note('a')).release();
  timers_.schedule_every({.period = 1ms}, note('p')).release();
  timers_.stop(Drain::run_pending);
  EXPECT_FALSE(timers_.schedule_after(0s, note('x')));
  while (const auto wait = timers_.time_to_next()) advance(*wait);
  EXPECT_EQ(ran_, "a");
  EXPECT_TRUE(timers_.stop(Drain::drop).empty());
}

TEST_F(LocalSchedulerTest, ADestructorOfADroppedJobMayUseTheScheduler) {
  struct Captured {
    explicit Captured(LocalScheduler& owner) : timers(&owner) {}
    Captured(Captured&& other) noexcept : timers(std::exchange(other.timers, nullptr)) {}
    ~Captured() {
      if (timers == nullptr) return;
      EXPECT_FALSE(timers->schedule_after(0s, [] {}));
      timers->stop();
    }
    LocalScheduler* timers;
  };
  timers_.schedule_after(1s, [captured = Captured(timers_)] {}).release();
  timers_.stop();
  EXPECT_EQ(timers_.stats().pending, 0u);
}

// ---- spin ---------------------------------------------------------------------------------------

TEST_F(LocalSchedulerTest, SpinWakesEarlierAndRunsOnTime) {
  CountingClock clock;
  LocalScheduler timers({.resolution = 1us, .clock = &clock, .spin = 50us});
  std::optional<MonotonicTime> ran_at;
  const MonotonicTime deadline = timers.now() + 100us;
  const TimerHandle timer = timers.schedule_at(deadline, [&] { ran_at = timers.now(); });
  EXPECT_EQ(timers.next_wakeup(), deadline - 50us);
  clock.time = deadline - 60us;
  timers.run_ready();  // too early to spin
  EXPECT_FALSE(ran_at);
  clock.time = deadline - 50us;
  EXPECT_EQ(timers.run_ready().fired, 1u);
  EXPECT_EQ(ran_at, deadline);
}

// ---- misuse and observation ---------------------------------------------------------------------

TEST_F(LocalSchedulerTest, ReportsItsTimers) {
  const TimerHandle late = timers_.schedule_after(2s, [] {}, {.name = "late"});
  const TimerHandle soon = timers_.schedule_after(500ms, [] {}, {.name = "soon"});
  EXPECT_EQ(timers_.pending_timers().size(), 2u);
  EXPECT_EQ(timers_.pending_timers(1).size(), 1u);
  EXPECT_EQ(timers_.forecast(1s, 3), (std::vector<std::uint64_t>{1, 0, 1}));
  EXPECT_EQ(&timers_.clock(), &clock_);
  advance(600ms);
  EXPECT_EQ(timers_.lateness().total.count, 1u);
}

using LocalSchedulerDeathTest = LocalSchedulerTest;

TEST_F(LocalSchedulerDeathTest, AJobMustNotRunTheLoopOrDestroyTheScheduler) {
  timers_.schedule_after(0s, [&] { timers_.run_ready(); }).release();
  EXPECT_DEATH(timers_.run_ready(), "running_jobs_");
  auto timers = std::make_unique<LocalScheduler>(on(clock_));
  timers->schedule_after(0s, [&] { timers.reset(); }).release();
  EXPECT_DEATH(timers->run_ready(), "of_scheduler");
}

TEST_F(LocalSchedulerDeathTest, WithoutAHandlerAnExceptionEndsTheProcess) {
  timers_.schedule_after(0s, [] { throw std::runtime_error("no handler"); }).release();
  EXPECT_DEATH(timers_.run_ready(), "no handler");
}

}  // namespace
}  // namespace detent

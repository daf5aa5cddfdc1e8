// The scheduler under orders of steps that a seed determines: two or three user threads, a driver,
// in some runs a pool, a few timers, and time that passes. timer_book_rig.h states the conditions
// that must hold. DETENT_EXPLORE_SCHEDULES sets the number of schedules of each test.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "base/thread.h"
#include "detent/scheduler.h"
#include "tests/explore/scheduler_world_rig.h"
#include "tests/explore/schedules_rig.h"

namespace detent::explore {
namespace {

using namespace std::chrono_literals;
using std::chrono::nanoseconds;

// The number of schedules of each test. A release build needs one or two seconds for 20,000. Other
// builds are several times slower.
#ifdef NDEBUG
constexpr std::uint64_t kSchedules = 20'000;
#else
constexpr std::uint64_t kSchedules = 2'000;
#endif

nanoseconds any_delay(Rng& rng) { return rng.below(3) * 1ms; }
Pool any_pool(Rng& rng) { return static_cast<Pool>(rng.below(3)); }
Drain any_drain(Rng& rng) {
  constexpr std::array kDrains = {Drain::drop, Drain::run_due, Drain::hand_back};
  return kDrains.at(rng.below(3));
}

/// A user thread of the scheduler: `steps` random operations on its own two timers.
void use_timers(SchedulerWorld& world, Rng rng, int steps) {
  std::array<std::optional<BookedTimer>, 2> timers;
  for (int step = 0; step < steps; ++step) {
    std::optional<BookedTimer>& timer = timers.at(rng.below(2));
    if (!timer) {
      timer = world.schedule(any_delay(rng));
      continue;
    }
    switch (rng.below(5)) {
      case 0:
        timer->cancel();
        break;
      case 1:
        timer->cancel_and_wait();
        break;
      case 2:
        timer->move(any_delay(rng));
        break;
      case 3:
        timer.reset();
        break;
      case 4:
        timer->release();
        timer.reset();
        break;
    }
  }
  for (std::optional<BookedTimer>& timer : timers) {
    if (timer && rng.below(2) == 0) timer->release();
  }
}

void add_cancel_fire(Rng& rng, Findings& findings, Pool pool) {
  SchedulerWorld world(rng, findings, pool);
  {
    Thread first([&, own = Rng(rng.next())] { use_timers(world, own, 5); });
    Thread second([&, own = Rng(rng.next())] { use_timers(world, own, 5); });
    world.advance(1ms);
    world.advance(1ms);
  }
  world.finish();
}

void cancel_and_wait_against_the_run(Rng& rng, Findings& findings) {
  SchedulerWorld world(rng, findings, any_pool(rng));
  BookedTimer mine = world.schedule(1ms);
  BookedTimer yours = world.schedule(any_delay(rng));
  {
    Thread first([&] { mine.cancel_and_wait(); });
    Thread second([&] {
      yours.cancel_and_wait();
      yours.cancel_and_wait();
    });
    world.advance(1ms);
  }
  mine.cancel_and_wait();
  world.finish();
}

void move_against_the_run(Rng& rng, Findings& findings) {
  SchedulerWorld world(rng, findings, any_pool(rng));
  std::vector<BookedTimer> timers;
  for (int i = 0; i < 3; ++i) timers.push_back(world.schedule(any_delay(rng)));
  {
    Thread first([&, own = Rng(rng.next())]() mutable {
      timers[0].move(any_delay(own));
      timers[0].move(any_delay(own));
    });
    Thread second([&, own = Rng(rng.next())]() mutable {
      timers[1].move(any_delay(own));
      timers[2].move(any_delay(own));
      timers[1].cancel();
    });
    world.advance(1ms);
    world.advance(1ms);
  }
  world.finish();
}

void stop_twice(Rng& rng, Findings& findings) {
  SchedulerWorld world(rng, findings, any_pool(rng));
  std::vector<BookedTimer> timers;
  for (int i = 0; i < 3; ++i) timers.push_back(world.schedule(any_delay(rng)));
  {
    Thread user([&, own = Rng(rng.next())] { use_timers(world, own, 4); });
    Thread stopper([&, drain = any_drain(rng)] { world.stop(drain); });
    world.advance(1ms);
    timers[0].cancel();
    world.stop(any_drain(rng));
  }
  world.finish();
}

// The clock does not move, so the first stop returns only because the second stop overrides it.
void stop_again_stronger(Rng& rng, Findings& findings) {
  SchedulerWorld world(rng, findings, any_pool(rng));
  std::vector<BookedTimer> timers;
  for (int i = 0; i < 3; ++i) timers.push_back(world.schedule(any_delay(rng)));
  world.start(1ms);
  world.advance(1ms);
  {
    Thread user([&, own = Rng(rng.next())] { use_timers(world, own, 2); });
    Thread stopper([&] { world.stop(Drain::run_pending); });
    world.stop(rng.below(2) == 0 ? Drain::drop : Drain::hand_back);
  }
  world.finish();
}

void stop_running_what_is_due(Rng& rng, Findings& findings) {
  SchedulerWorld world(rng, findings, any_pool(rng));
  std::vector<BookedTimer> timers;
  for (int i = 0; i < 3; ++i) timers.push_back(world.schedule(any_delay(rng)));
  {
    Thread user([&, own = Rng(rng.next())]() mutable {
      timers[0].move(any_delay(own));
      timers[0].cancel_and_wait();
    });
    Thread time([&] { world.advance(1ms); });
    world.advance(1ms);
    world.stop(Drain::run_due);
  }
  world.finish();
}

void stop_running_what_is_pending(Rng& rng, Findings& findings) {
  SchedulerWorld world(rng, findings, any_pool(rng));
  std::vector<BookedTimer> timers;
  for (int i = 0; i < 3; ++i) timers.push_back(world.schedule(any_delay(rng)));
  {
    Thread user([&, own = Rng(rng.next())]() mutable {
      timers[0].move(any_delay(own));
      timers[1].cancel_and_wait();
      world.start(any_delay(own));
    });
    Thread time([&] {
      world.advance(1ms);
      user.join();
      world.advance(5ms);  // later than all deadlines
    });
    world.stop(Drain::run_pending);
  }
  world.finish();
}

void destroy_while_handles_are_used(Rng& rng, Findings& findings) {
  SchedulerWorld world(rng, findings, any_pool(rng));
  std::vector<BookedTimer> timers;
  for (int i = 0; i < 4; ++i) timers.push_back(world.schedule(any_delay(rng)));
  {
    Thread first([&, own = Rng(rng.next())]() mutable {
      timers[0].move(any_delay(own));
      timers[0].cancel_and_wait();
    });
    Thread second([&, own = Rng(rng.next())]() mutable {
      timers[1].cancel();
      timers[2].move(any_delay(own));
      timers[2].let_go();
    });
    world.advance(1ms);
    world.destroy();
  }
  timers.clear();
  world.book().check_end();
}

void periodic_that_ends_itself(Rng& rng, Findings& findings) {
  SchedulerWorld world(rng, findings, any_pool(rng));
  std::optional<BookedTimer> own;
  std::uint64_t runs = 0;
  const std::uint64_t last = 1 + rng.below(3);
  own = world.schedule_every(1ms, 3, [&] {
    if (++runs == last) own->cancel_from_own_job();
  });
  BookedTimer other = world.schedule_every(1ms, 2);
  {
    Thread time([&] {
      world.advance(1ms);
      world.advance(1ms);
    });
    Thread user([&, waits = rng.below(2) == 0] {
      if (waits) other.cancel_and_wait();
      other.cancel();
    });
    world.advance(1ms);
  }
  world.finish();
  findings.expect(runs <= last, "a periodic timer that was cancelled in its job runs no more");
}

void jobs_that_use_the_scheduler(Rng& rng, Findings& findings) {
  SchedulerWorld world(rng, findings, any_pool(rng));
  Rng jobs(rng.next());
  const bool stops = rng.below(2) == 0;
  BookedTimer victim = world.schedule(1ms);
  world.start(any_delay(rng), [&] {
    victim.move(any_delay(jobs));
    victim.cancel();
  });
  world.start(any_delay(rng), [&] { world.start(any_delay(jobs), [&] { world.start(0ms); }); });
  {
    Thread user([&, own = Rng(rng.next())] { use_timers(world, own, 3); });
    if (stops) world.start(1ms, [&] { world.stop_from_inside_a_job(); });
    world.advance(1ms);
    world.advance(1ms);
  }
  world.finish();
}

/// The traces of `seeds`, run in this order.
std::vector<std::vector<Step>> traces_of(const std::vector<std::uint64_t>& seeds) {
  std::vector<std::vector<Step>> traces;
  Explorer explorer;
  for (const std::uint64_t seed : seeds) {
    const Outcome& outcome = explorer.run({.seed = seed, .length = 200}, [seed] {
      Rng rng(seed);
      Findings findings;
      add_cancel_fire(rng, findings, any_pool(rng));
    });
    traces.push_back(outcome.trace);
  }
  return traces;
}

class SchedulerSchedules : public testing::Test {
 protected:
  static void explore_all(const Scenario& scenario) {
    const std::uint64_t seed = test_seed();
    std::puts(replay_hint(seed).c_str());  // printed first, because a failed check ends the process
    const auto failure = explore(seed, schedule_count(kSchedules), scenario);
    EXPECT_FALSE(failure) << failure->what;
  }
};

TEST_F(SchedulerSchedules, AreReplayedByTheirSeedsWhateverRanBefore) {
  Rng rng(test_seed());
  std::vector<std::uint64_t> seeds(200);
  for (std::uint64_t& seed : seeds) seed = rng.next();
  std::vector<std::vector<Step>> traces = traces_of(seeds);
  std::reverse(seeds.begin(), seeds.end());
  std::reverse(traces.begin(), traces.end());
  EXPECT_TRUE(traces == traces_of(seeds));
}

TEST_F(SchedulerSchedules, UsersAddAndCancelWhileTimersFire) {
  explore_all([](Rng& rng, Findings& findings) { add_cancel_fire(rng, findings, Pool::none); });
}

TEST_F(SchedulerSchedules, UsersAddAndCancelOnAPoolThatIsFull) {
  explore_all([](Rng& rng, Findings& findings) {
    add_cancel_fire(rng, findings, rng.below(2) == 0 ? Pool::one_thread : Pool::two_threads);
  });
}

TEST_F(SchedulerSchedules, CancelAndWaitMeetsTheRunningJob) {
  explore_all(cancel_and_wait_against_the_run);
}

TEST_F(SchedulerSchedules, MovesMeetTheRunningJob) { explore_all(move_against_the_run); }

TEST_F(SchedulerSchedules, TwoThreadsStopWhileAnotherAddsAndCancels) { explore_all(stop_twice); }
TEST_F(SchedulerSchedules, AStrongerStopOverridesOneThatWaits) { explore_all(stop_again_stronger); }

TEST_F(SchedulerSchedules, StopRunsDueTimersWhileTimeMoves) {
  explore_all(stop_running_what_is_due);
}

TEST_F(SchedulerSchedules, StopRunsPendingTimersWhileTimeMoves) {
  explore_all(stop_running_what_is_pending);
}

TEST_F(SchedulerSchedules, HandlesAreUsedWhileTheSchedulerDies) {
  explore_all(destroy_while_handles_are_used);
}

TEST_F(SchedulerSchedules, APeriodicTimerEndsItselfWhileAnotherIsCancelled) {
  explore_all(periodic_that_ends_itself);
}

TEST_F(SchedulerSchedules, JobsScheduleMoveCancelAndStop) {
  explore_all(jobs_that_use_the_scheduler);
}

}  // namespace
}  // namespace detent::explore

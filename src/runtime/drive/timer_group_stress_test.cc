// Threads schedule and cancel timers of one group, pause it and change its rate while time passes.
// Other tests create and destroy groups. Every timer must end exactly once. Run this test under
// ThreadSanitizer.
#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <thread>
#include <utility>
#include <vector>

#include "base/test_seed.h"
#include "detent/timer_group.h"
#include "runtime/testing/scheduler_test_rig.h"

namespace detent {
namespace {

using namespace std::chrono_literals;
using std::chrono::nanoseconds;

/// The test's own counts, to compare with the group's counts.
struct Books {
  std::atomic<std::uint64_t> scheduled = 0;
  std::atomic<std::uint64_t> cancelled = 0;
  std::atomic<std::uint64_t> runs = 0;
  std::atomic<std::uint64_t> early = 0;
};

/// Moves time forward until it is destroyed.
class TimeMover {
 public:
  TimeMover(ManualClock& clock, std::uint64_t seed)
      : thread_([this, &clock, seed] {
          Rng rng(seed);
          while (!done_) {
            clock.advance(nanoseconds{rng.below(50'000)});
            std::this_thread::yield();
          }
        }) {}
  ~TimeMover() {
    done_ = true;
    thread_.join();
  }
  TimeMover(const TimeMover&) = delete;
  TimeMover& operator=(const TimeMover&) = delete;

 private:
  std::atomic<bool> done_ = false;
  std::thread thread_;
};

/// The work of one thread: random operations on its own 32 timers.
void use_timers(TimerGroup& group, Books& books, std::uint64_t seed) {
  Rng rng(seed);
  std::array<TimerHandle, 32> timers;
  for (int step = 0; step < 2'000; ++step) {
    TimerHandle& timer = timers.at(rng.below(32));
    const nanoseconds delay{rng.below(2'000'000)};
    if (rng.below(3) != 0) {
      const MonotonicTime due = group.now() + delay;
      if (timer.cancel() == CancelResult::cancelled) ++books.cancelled;
      timer = group.schedule_at(due, [&group, &books, due] {
        ++books.runs;
        if (group.now() < due) ++books.early;
      });
      ++books.scheduled;
    } else if (rng.below(2) == 0) {
      if (timer.cancel_and_wait() == CancelResult::cancelled) ++books.cancelled;
    } else {
      timer.expires_after(2ms + delay);  // later than any deadline it had before
    }
  }
  for (TimerHandle& timer : timers) timer.release();
}

/// The work of another thread: operations on the whole group.
void use_group(TimerGroup& group, Books& books, std::uint64_t seed) {
  Rng rng(seed);
  for (int step = 0; step < 2'000; ++step) {
    switch (rng.below(8)) {
      case 0:
        group.pause();
        break;
      case 1:
      case 2:
      case 3:
        group.resume();
        break;
      case 4:
        if (rng.below(20) == 0) books.cancelled += group.cancel_all();
        break;
      default:
        group.set_rate(0.25 + 8 * rng.unit());
    }
    if (step % 16 == 0) std::this_thread::yield();
  }
}

void stress(Executor* executor, std::uint64_t seed) {
  ManualClock clock;
  Books books;
  Scheduler scheduler({.clock = &clock, .executor = executor});
  TimerGroup group(scheduler);
  {
    const TimeMover time(clock, seed);
    std::vector<std::thread> threads;
    for (std::uint64_t i = 1; i <= 3; ++i) {
      threads.emplace_back([&, i] { use_timers(group, books, seed + i); });
    }
    threads.emplace_back([&] { use_group(group, books, seed + 4); });
    for (std::thread& thread : threads) thread.join();
  }
  // The remaining timers run when time passes, although no thread wakes the group again.
  group.resume();
  group.set_rate(1);
  for (int i = 0; i < 1'000'000 && group.stats().pending + group.stats().running != 0; ++i) {
    clock.advance(100us);
    std::this_thread::yield();
  }
  const SchedulerStats stats = group.stats();
  EXPECT_EQ(stats.pending, 0u) << "a wake-up was lost";
  EXPECT_EQ(stats.running, 0u);
  EXPECT_EQ(stats.scheduled, books.scheduled);
  EXPECT_EQ(stats.cancelled, books.cancelled);
  EXPECT_EQ(stats.completed, books.runs);
  EXPECT_EQ(stats.completed + stats.cancelled, stats.scheduled);
  EXPECT_EQ(books.early, 0u);
}

TEST(TimerGroupStress, EveryTimerEndsExactlyOnceOnTheDriverThread) {
  const std::uint64_t seed = test_seed();
  SCOPED_TRACE(replay_hint(seed));
  stress(nullptr, seed);
}

TEST(TimerGroupStress, EveryTimerEndsExactlyOnceOnAPool) {
  const std::uint64_t seed = test_seed();
  SCOPED_TRACE(replay_hint(seed));
  ThreadPool pool({.threads = 3, .capacity = 16});
  stress(&pool, seed);
}

/// Destroys groups at random moments of the life of their timers, on threads other than the
/// driver's. If `stop` is set, the scheduler is stopped in the middle.
void come_and_go(Executor* executor, std::optional<Drain> stop, std::uint64_t seed) {
  ManualClock clock;
  std::atomic<int> alive = 0;
  std::atomic<int> gone_early = 0;
  Scheduler scheduler({.clock = &clock, .executor = executor});
  {
    const TimeMover time(clock, seed);
    std::vector<std::thread> threads;
    std::atomic<int> groups = 0;
    for (std::uint64_t i = 1; i <= 3; ++i) {
      threads.emplace_back([&, i] {
        Rng rng(seed + i);
        for (int round = 0; round < 150; ++round) {
          std::vector<TimerHandle> outlive;
          std::atomic<int> runs = 0;
          {
            TimerGroup group(scheduler);
            ++groups;
            for (int timer = 0; timer < 8; ++timer) {
              auto entry = std::shared_ptr<void>(nullptr, [&alive](void*) { --alive; });
              ++alive;
              outlive.push_back(group.schedule_after(nanoseconds{rng.below(100'000)},
                                                     [&runs, e = std::move(entry)] { ++runs; }));
            }
            group.set_rate(0.5 + rng.unit());
            for (std::uint32_t wait = rng.below(20); wait > 0; --wait) std::this_thread::yield();
          }
          const int at_end = runs;
          for (TimerHandle& timer : outlive) timer.cancel_and_wait();
          if (runs != at_end) ++gone_early;
        }
      });
    }
    if (stop) {
      while (groups < 100) std::this_thread::yield();
      scheduler.stop(*stop);
    }
    for (std::thread& thread : threads) thread.join();
  }
  EXPECT_EQ(alive, 0) << "a job was leaked or destroyed twice";
  EXPECT_EQ(gone_early, 0) << "a job ran after its group's end";
}

TEST(TimerGroupStress, GroupsMayComeAndGoWhileTheirTimersRun) {
  const std::uint64_t seed = test_seed();
  SCOPED_TRACE(replay_hint(seed));
  come_and_go(nullptr, std::nullopt, seed);
  ThreadPool pool({.threads = 3, .capacity = 16});
  come_and_go(&pool, std::nullopt, seed);
}

TEST(TimerGroupStress, GroupsMayComeAndGoWhileTheSchedulerStops) {
  const std::uint64_t seed = test_seed();
  SCOPED_TRACE(replay_hint(seed));
  for (const Drain drain : {Drain::drop, Drain::run_due, Drain::run_pending, Drain::hand_back}) {
    come_and_go(nullptr, drain, seed);
    ThreadPool pool({.threads = 2, .capacity = 16});
    come_and_go(&pool, drain, seed);
  }
}

}  // namespace
}  // namespace detent

// Keyed timers under threads, and bugs that other libraries had with keys. The test names are those
// in tests/regress/classic/cases.md.
#include <gtest/gtest.h>

#include <atomic>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "base/test_seed.h"
#include "detent/scheduler.h"
#include "runtime/testing/scheduler_test_rig.h"

namespace detent {
namespace {

using namespace std::chrono_literals;
using std::chrono::nanoseconds;

/// A pool with one thread, which is blocked until let_go().
class BusyPool final : public Executor {
 public:
  BusyPool() {
    pool_.execute([this] { go_on_.wait(); });
  }
  void execute(Job job) override { pool_.execute(std::move(job)); }
  void let_go() { go_on_.open(); }

 private:
  Gate go_on_;
  ThreadPool pool_{{.threads = 1}};
};

TEST(SchedulerKeyed, LK_NO_THREAD) {
  SchedulerRig rig;
  std::thread::id ran_on;
  rig.scheduler().schedule_keyed("a", 0s, [&] { ran_on = std::this_thread::get_id(); });
  rig.settle();
  EXPECT_NE(ran_on, std::thread::id()) << "a scheduler runs without a call of start";
  EXPECT_NE(ran_on, std::this_thread::get_id());
}

TEST(SchedulerKeyed, LK_DUP_KEY) {
  SchedulerRig rig;
  int fired = 0;
  EXPECT_EQ(rig.scheduler().schedule_keyed("a", 5s, [&] { ++fired; }), KeyedResult::scheduled);
  EXPECT_EQ(rig.scheduler().schedule_keyed("a", 7s, [&] { ++fired; }), KeyedResult::kept);
  EXPECT_EQ(rig.scheduler().cancel_key("a"), CancelResult::cancelled);
  rig.advance(1h);
  EXPECT_EQ(fired, 0) << "the key has no second timer";
}

TEST(SchedulerKeyed, LK_REMOVE_MISSING) {
  SchedulerRig rig;
  EXPECT_EQ(rig.scheduler().cancel_key("never"), CancelResult::not_pending);
  for (int round = 0; round < 200; ++round) {
    rig.scheduler().schedule_keyed("a", 1h, [] {});
    std::atomic<int> cancelled = 0;
    const auto cancel = [&] {
      if (rig.scheduler().cancel_key("a") == CancelResult::cancelled) ++cancelled;
    };
    std::thread other(cancel);
    cancel();
    other.join();
    ASSERT_EQ(cancelled, 1);
  }
}

// The timer that expires a cache entry is due and queued when the entry is set again.
TEST(SchedulerKeyed, EX_KEY_RESET_ABA) {
  ManualClock clock;
  BusyPool pool;
  Scheduler scheduler({.clock = &clock, .executor = &pool});
  std::optional<std::string> entry = "old";
  scheduler.schedule_keyed("entry", 1s, [&] { entry.reset(); });
  clock.await_waiters(1);
  clock.advance(1s);
  clock.await_waiters(1);
  EXPECT_EQ(scheduler.find_key("entry")->state, TimerState::queued);
  entry = "new";
  EXPECT_EQ(scheduler.schedule_keyed(
                "entry", 1h, [&] { entry.reset(); }, SameKey::replace),
            KeyedResult::replaced);
  pool.let_go();
  scheduler.stop(Drain::run_due);
  EXPECT_EQ(entry, "new");
}

/// Threads schedule and cancel the same keys while time passes. Every timer that was scheduled and
/// not cancelled must run, once, and never early.
void use_the_same_keys(Executor* executor, std::uint64_t seed) {
  ManualClock clock;
  Scheduler scheduler({.clock = &clock, .executor = executor});
  std::atomic<int> scheduled = 0;
  std::atomic<int> cancelled = 0;
  std::atomic<int> runs = 0;
  std::atomic<int> early = 0;
  std::atomic<int> at_work = 3;
  std::vector<std::thread> threads;
  for (std::uint64_t i = 0; i < 3; ++i) {
    threads.emplace_back([&, i] {
      Rng rng(seed + i);
      for (int step = 0; step < 3000; ++step) {
        const std::string key = std::to_string(rng.below(4));
        const nanoseconds delay{rng.below(30'000)};
        const MonotonicTime due = clock.now() + delay;
        const auto job = [&, due] { ++runs, early += clock.now() < due ? 1 : 0; };
        if (rng.below(3) == 0) {
          if (scheduler.cancel_key(key) == CancelResult::cancelled) ++cancelled;
        } else if (scheduler.schedule_keyed(key, delay, job) == KeyedResult::scheduled) {
          ++scheduled;
        }
        static_cast<void>(scheduler.find_key(key));
      }
      --at_work;
    });
  }
  while (at_work > 0) {
    clock.advance(10us);
    std::this_thread::yield();
  }
  for (std::thread& thread : threads) thread.join();
  clock.advance(40us);
  scheduler.stop(Drain::run_due);
  EXPECT_EQ(runs, scheduled - cancelled);
  EXPECT_EQ(early, 0);
}

TEST(SchedulerKeyed, LK_RACE) {
  const std::uint64_t seed = test_seed();
  SCOPED_TRACE(replay_hint(seed));
  use_the_same_keys(nullptr, seed);
}

TEST(SchedulerKeyed, EX_MAP_RACE) {
  const std::uint64_t seed = test_seed();
  SCOPED_TRACE(replay_hint(seed));
  ThreadPool pool({.threads = 2, .capacity = 4});
  use_the_same_keys(&pool, seed);
}

// The same with replacing: the last timer that got the key is the timer that runs.
TEST(SchedulerKeyed, TheLastReplacementHasTheKey) {
  ManualClock clock;
  Scheduler scheduler({.clock = &clock});
  std::vector<std::thread> threads;
  std::atomic<int> runs = 0;
  for (int i = 0; i < 3; ++i) {
    threads.emplace_back([&] {
      for (int n = 0; n < 2000; ++n) {
        scheduler.schedule_keyed(
            std::to_string(n % 2), 1s, [&] { ++runs; }, SameKey::replace);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(scheduler.stats().pending, 2u);
  clock.advance(1s);
  scheduler.stop(Drain::run_due);
  EXPECT_EQ(runs, 2);
}

}  // namespace
}  // namespace detent

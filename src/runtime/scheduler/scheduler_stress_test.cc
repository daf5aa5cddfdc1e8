// Threads schedule, cancel and move timers at random while time passes. Some tests stop the
// scheduler in the middle. Every timer must end exactly once. Run this test under ThreadSanitizer.
#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <optional>
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

/// The test's own counts, to compare with the scheduler's counts.
struct Books {
  std::atomic<std::uint64_t> scheduled = 0;
  std::atomic<std::uint64_t> refused = 0;
  std::atomic<std::uint64_t> cancelled = 0;
  std::atomic<std::uint64_t> runs = 0;
  std::atomic<std::uint64_t> early = 0;
  std::atomic<std::int64_t> alive = 0;  // jobs that exist
};

/// Held by the jobs of the test. Counts as alive in the books during its lifetime.
class Entry {
 public:
  explicit Entry(Books& books) : books_(&books) { ++books.alive; }
  Entry(Entry&& other) noexcept : books_(std::exchange(other.books_, nullptr)) {}
  Entry& operator=(Entry&&) = delete;
  ~Entry() {
    if (books_ != nullptr) --books_->alive;
  }
  Books& books() const { return *books_; }

 private:
  Books* books_;
};

/// When the work of a thread ends.
enum class Until : std::uint8_t { enough, stopped };

constexpr std::uint64_t kThreads = 8;

/// The number of operations of all threads of a test together, from the environment variable
/// DETENT_STRESS_OPS.
std::uint64_t operations() {
  const char* const text = std::getenv("DETENT_STRESS_OPS");
  return text != nullptr ? std::strtoull(text, nullptr, 10) : 32'000;
}

/// The work of one thread: random operations on up to 64 timers of its own. With Until::enough, a
/// fixed number of operations. With Until::stopped, until the scheduler has refused a timer, plus a
/// hundred operations.
void work(Scheduler& scheduler, ManualClock& clock, Books& books, std::uint64_t seed, Until until) {
  Rng rng(seed);
  std::array<TimerHandle, 64> timers;
  bool is_refused = false;
  for (std::uint64_t left = operations() / kThreads; left > 0; --left) {
    if (until == Until::stopped && !is_refused) left = 100;
    TimerHandle& timer = timers.at(rng.below(64));
    const nanoseconds delay{rng.below(2'000'000)};
    switch (rng.below(4)) {
      case 0:
      case 1: {
        const MonotonicTime due = clock.now() + delay;
        Job job = [entry = Entry(books), due, &clock] {
          ++entry.books().runs;
          if (clock.now() < due) ++entry.books().early;
        };
        if (timer.cancel() == CancelResult::cancelled) ++books.cancelled;
        timer = scheduler.schedule_at(due, std::move(job));
        ++books.scheduled;
        if (!timer) {
          is_refused = true;
          ++books.refused;
        }
        break;
      }
      case 2:
        if ((rng.below(2) == 0 ? timer.cancel() : timer.cancel_and_wait()) ==
            CancelResult::cancelled) {
          ++books.cancelled;
        }
        break;
      case 3:
        timer.expires_after(2ms + delay);
        break;  // later than any deadline it had before
    }
  }
  for (TimerHandle& timer : timers) timer.release();
}

/// Eight threads work and another thread moves time. If `stop_early` is set, the scheduler is
/// stopped half-way.
void stress(Executor* executor, std::uint64_t seed, std::optional<Drain> stop_early) {
  ManualClock clock;
  Books books;
  std::uint64_t handed_back = 0;
  SchedulerStats stats;
  {
    Scheduler scheduler({.clock = &clock, .executor = executor});
    std::atomic<bool> done = false;
    std::thread time([&] {
      Rng rng(seed);
      while (!done) {
        clock.advance(nanoseconds{rng.below(50'000)});
        std::this_thread::yield();
      }
    });
    std::vector<std::thread> workers;
    for (std::uint64_t i = 1; i <= kThreads; ++i) {
      const Until until = stop_early ? Until::stopped : Until::enough;
      workers.emplace_back([&, i, until] { work(scheduler, clock, books, seed + i, until); });
    }
    if (stop_early) {
      while (books.scheduled < 2000) std::this_thread::yield();
      handed_back = scheduler.stop(*stop_early).size();
    }
    for (std::thread& worker : workers) worker.join();
    done = true;
    time.join();
    clock.advance(1s);
    scheduler.stop(Drain::run_due);
    stats = scheduler.stats();
  }
  EXPECT_EQ(stats.scheduled, books.scheduled);
  EXPECT_EQ(stats.completed + stats.cancelled + stats.dropped, stats.scheduled);
  EXPECT_EQ(stats.completed, books.runs);
  EXPECT_EQ(stats.runs, books.runs);
  EXPECT_EQ(stats.cancelled, books.cancelled);
  EXPECT_GE(stats.dropped, books.refused + handed_back);
  EXPECT_EQ(stats.dropped > 0, stop_early.has_value());
  EXPECT_EQ(stats.pending, 0u);
  EXPECT_EQ(stats.running, 0u);
  EXPECT_EQ(books.early, 0u);
  EXPECT_EQ(books.alive, 0) << "a job was leaked or destroyed twice";
}

TEST(SchedulerStress, EveryTimerEndsExactlyOnceOnTheDriverThread) {
  const std::uint64_t seed = test_seed();
  SCOPED_TRACE(replay_hint(seed));
  stress(nullptr, seed, std::nullopt);
}

TEST(SchedulerStress, EveryTimerEndsExactlyOnceOnAPool) {
  const std::uint64_t seed = test_seed();
  SCOPED_TRACE(replay_hint(seed));
  ThreadPool pool({.threads = 3, .capacity = 16});
  stress(&pool, seed, std::nullopt);
}

TEST(SchedulerStress, EveryTimerEndsExactlyOnceWhenStoppedInTheMiddle) {
  const std::uint64_t seed = test_seed();
  SCOPED_TRACE(replay_hint(seed));
  for (const Drain drain : {Drain::drop, Drain::run_due, Drain::hand_back}) {
    stress(nullptr, seed, drain);
    ThreadPool pool({.threads = 2, .capacity = 16});
    stress(&pool, seed, drain);
  }
}

// The scheduler is destroyed while other threads use handles to cancel, move and wait.
TEST(SchedulerStress, HandlesMayBeUsedWhileTheSchedulerDies) {
  for (int round = 0; round < 50; ++round) {
    auto clock = std::make_unique<ManualClock>();
    auto scheduler = std::make_unique<Scheduler>(SchedulerOptions{.clock = clock.get()});
    std::vector<TimerHandle> mine;
    for (int i = 0; i < 200; ++i) mine.push_back(scheduler->schedule_after(i * 10us, [] {}));
    Gate go;
    std::thread user([&] {
      go.wait();
      for (TimerHandle& timer : mine) {
        timer.expires_after(1ms);
        timer.cancel_and_wait();
      }
    });
    go.open();
    clock->advance(1ms);
    scheduler.reset();
    clock.reset();
    user.join();
  }
}

}  // namespace
}  // namespace detent

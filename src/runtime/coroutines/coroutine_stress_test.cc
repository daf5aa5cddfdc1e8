// Threads start sleepers and tasks with time limits, stop them, and let time pass, all at random.
// Some tests stop the scheduler in the middle. Every coroutine must continue exactly once after
// each sleep, and must free all its memory. Run this test under ThreadSanitizer.
#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <stop_token>
#include <thread>
#include <utility>
#include <vector>

#include "base/rng.h"
#include "base/test_seed.h"
#include "detent/coroutine.h"
#include "detent/executor.h"
#include "runtime/testing/coroutine_test_rig.h"

namespace detent {
namespace {

using namespace std::chrono_literals;
using std::chrono::microseconds;
using std::chrono::nanoseconds;

/// Counts the results of the coroutines. All threads write to it.
struct Books {
  std::atomic<int> started = 0;
  std::atomic<int> ended = 0;
  std::atomic<int> slept = 0;
  std::atomic<int> in_time = 0;
  std::atomic<int> wrong = 0;  // slept too short, or ended without a stop
  std::atomic<int> alive = 0;  // frames
};

/// Counts as alive in the books during its lifetime.
class AliveEntry {
 public:
  explicit AliveEntry(Books& books) : books_(books) { ++books_.alive; }
  ~AliveEntry() { --books_.alive; }
  AliveEntry(const AliveEntry&) = delete;
  AliveEntry& operator=(const AliveEntry&) = delete;

 private:
  Books& books_;
};

/// One round: a clock, a scheduler that runs its jobs on two threads, and the books.
struct Round {
  ManualClock clock;
  ThreadPool pool{{.threads = 2}};
  std::optional<Scheduler> scheduler{std::in_place,
                                     SchedulerOptions{.clock = &clock, .executor = &pool}};
  std::atomic<bool> is_stopping = false;
  Books books;
};

Task<int> sleep_twice(Round& round, nanoseconds delay, std::stop_token stop) {
  const AliveEntry alive(round.books);
  int slept = 0;
  for (int i = 0; i < 2; ++i) {
    const MonotonicTime deadline = round.clock.now() + delay;
    const bool done = co_await sleep_for(*round.scheduler, delay, stop);
    slept += static_cast<int>(done);
    const bool is_right =
        done ? round.clock.now() >= deadline : stop.stop_requested() || round.is_stopping.load();
    round.books.wrong += static_cast<int>(!is_right);
  }
  co_return slept;
}

Task<void> sleeper(Round& round, nanoseconds delay, std::stop_token stop) {
  const AliveEntry alive(round.books);
  round.books.slept += co_await sleep_twice(round, delay, std::move(stop));
}

Task<void> limited(Round& round, nanoseconds delay, std::stop_token stop) {
  const AliveEntry alive(round.books);
  auto work = [&round, delay](std::stop_token token) {
    return sleep_twice(round, delay, std::move(token));
  };
  const std::optional<int> slept =
      co_await timeout_after(*round.scheduler, 2 * delay, work, std::move(stop));
  round.books.in_time += static_cast<int>(slept.has_value());
}

/// The work of one thread: starts coroutines that share its stop sources, and sometimes requests a
/// stop.
void start_and_stop(Round& round, std::uint64_t seed) {
  Rng rng(seed);
  std::array<std::stop_source, 4> sources;
  const auto count_end = [&round](const std::exception_ptr& error) {
    round.books.wrong += static_cast<int>(error != nullptr);
    ++round.books.ended;
  };
  for (int step = 0; step < 60; ++step) {
    std::stop_source& source = sources[rng.below(sources.size())];
    const nanoseconds delay = microseconds(10 * rng.below(20));
    ++round.books.started;
    switch (rng.below(4)) {
      case 0:
        spawn(limited(round, delay, source.get_token()), count_end);
        break;
      case 1:
        spawn(sleeper(round, delay, {}), count_end);
        break;
      default:
        spawn(sleeper(round, delay, source.get_token()), count_end);
        break;
    }
    if (rng.below(3) == 0) {
      source.request_stop();
      source = std::stop_source();
    }
    if (rng.below(4) == 0) round.clock.advance(microseconds(10 * rng.below(20)));
  }
}

void play(std::uint64_t seed, bool stop_early) {
  Round round;
  {
    std::vector<std::thread> threads;
    for (std::uint64_t i = 0; i < 3; ++i) {
      threads.emplace_back([&round, seed, i] { start_and_stop(round, seed + i); });
    }
    if (stop_early) {
      while (round.books.started < 60) std::this_thread::yield();
      round.is_stopping = true;
      round.scheduler->stop();
    }
    for (std::thread& thread : threads) thread.join();
  }
  if (!stop_early) {
    while (round.books.ended < round.books.started) {
      round.clock.advance(1ms);
      std::this_thread::yield();
    }
  }
  round.scheduler->stop();
  const SchedulerStats stats = round.scheduler->stats();
  EXPECT_EQ(round.books.ended, round.books.started);
  EXPECT_EQ(round.books.alive, 0);
  EXPECT_EQ(round.books.wrong, 0);
  EXPECT_EQ(stats.scheduled, stats.completed + stats.cancelled + stats.dropped);
}

TEST(CoroutineStress, EverySleepEndsOnceWhileThreadsStartStopAndMoveTime) {
  const std::uint64_t seed = test_seed();
  SCOPED_TRACE(replay_hint(seed));
  for (std::uint64_t i = 0; i < 100; ++i) play(seed + 100 * i, false);
}

TEST(CoroutineStress, EverySleepEndsOnceWhileTheSchedulerIsStopped) {
  const std::uint64_t seed = test_seed();
  SCOPED_TRACE(replay_hint(seed));
  for (std::uint64_t i = 0; i < 100; ++i) play(seed + 100 * i, true);
}

Task<void> race_with_limits(Round& round) {
  for (int i = 0; i < 300; ++i) {
    auto work = [&round](std::stop_token stop) {
      return sleep_twice(round, 10us, std::move(stop));
    };
    const std::optional<int> slept = co_await timeout_after(*round.scheduler, 20us, work);
    round.books.in_time += static_cast<int>(slept.has_value());
  }
}

// The work ends at the same moment as its time limit.
TEST(CoroutineStress, LimitAndWorkThatEndTogetherFreeAllMemory) {
  Round round;
  const auto count_end = [&round](const std::exception_ptr&) { ++round.books.ended; };
  for (int i = 0; i < 4; ++i) spawn(race_with_limits(round), count_end);
  while (round.books.ended < 4) {
    round.clock.advance(10us);
    std::this_thread::yield();
  }
  round.scheduler->stop();
  EXPECT_EQ(round.books.alive, 0);
  EXPECT_EQ(round.books.wrong, 0);
}

}  // namespace
}  // namespace detent

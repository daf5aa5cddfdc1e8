// Many threads refresh, add and remove connections of one IdleTimeouts while it reports other
// connections. Run this test under ThreadSanitizer.
#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <memory>
#include <thread>
#include <utility>
#include <vector>

#include "base/test_seed.h"
#include "detent/executor.h"
#include "detent/idle_timeouts.h"
#include "detent/scheduler.h"
#include "runtime/testing/scheduler_test_rig.h"

namespace detent {
namespace {

using namespace std::chrono_literals;
using std::chrono::nanoseconds;
using Connection = IdleTimeouts::Connection;

constexpr std::size_t kThreads = 6;

/// Each thread refreshes some of its connections in each round. Time passes only between rounds, so
/// the test knows which connections must be reported, and when.
TEST(IdleTimeoutsStress, ReportsExactlyTheConnectionsThatWereNotRefreshed) {
  constexpr std::size_t kPerThread = 32;
  constexpr nanoseconds kTimeout = 10ms;
  const std::uint64_t seed = test_seed();
  SCOPED_TRACE(replay_hint(seed));
  SchedulerRig rig;
  std::array<int, kThreads * kPerThread> told{};  // written by the driver, read when it sleeps
  IdleTimeouts idle(rig.scheduler(), {.timeout = kTimeout,
                                      .on_idle = [&](std::uint64_t id) { ++told.at(id); },
                                      .resolution = 1us});
  std::array<Connection, kThreads * kPerThread> connections;
  std::array<MonotonicTime, kThreads * kPerThread> refreshed;
  std::array<int, kThreads * kPerThread> wanted{};
  Rng rng(seed);
  for (int round = 0; round < 60; ++round) {
    std::vector<std::thread> threads;
    for (std::size_t t = 0; t < kThreads; ++t) {
      threads.emplace_back([&, t, thread_seed = rng.next()] {
        Rng own(thread_seed);
        const MonotonicTime now = rig.clock().now();
        for (std::size_t i = t * kPerThread; i < (t + 1) * kPerThread; ++i) {
          const bool is_over = !connections[i] || told[i] > 0;
          if (is_over) {
            connections[i] = idle.add(i);
            told[i] = wanted[i] = 0;
          } else if (own.below(3) != 0) {
            own.below(2) == 0 ? connections[i].refresh() : connections[i].refresh(now);
          } else {
            continue;
          }
          refreshed[i] = now;
        }
      });
    }
    for (std::thread& thread : threads) thread.join();
    rig.settle();
    rig.advance(nanoseconds{rng.below(8'000'000)});
    for (std::size_t i = 0; i < told.size(); ++i) {
      // The resolution may delay the report to the next microsecond.
      const nanoseconds idle_for = rig.clock().now() - refreshed[i];
      if (idle_for >= kTimeout && idle_for < kTimeout + 20us && told[i] == 0) continue;
      wanted[i] = idle_for >= kTimeout ? 1 : 0;
      ASSERT_EQ(told[i], wanted[i]) << i << " idle for " << idle_for.count();
    }
    idle.check_invariants();
  }
}

/// The fate of one connection.
struct Fate {
  std::atomic<int> told = 0;
  std::atomic<bool> is_removed = false;  // in a way that excludes a later report
};

/// Threads add, refresh and remove connections at random, on the system clock. Thread-safe.
class Chaos {
 public:
  static constexpr std::uint32_t kSteps = 4000;  // of each thread

  explicit Chaos(std::uint64_t seed)
      : seed_(seed),
        fates_(kThreads * kSteps),
        idle_(std::make_unique<IdleTimeouts>(
            scheduler_, IdleTimeoutsOptions{.timeout = 100us,
                                            .on_idle = [this](std::uint64_t id) { on_idle(id); },
                                            .resolution = 1us})) {}

  void run() {
    std::vector<std::thread> threads;
    for (std::uint32_t t = 0; t < kThreads; ++t) {
      threads.emplace_back([this, t] { work(t); });
    }
    for (std::thread& thread : threads) thread.join();
    idle_->check_invariants();
    idle_.reset();  // while connections become idle
    is_gone_ = true;
    MutexLock lock(mu_);
    left_.clear();
    EXPECT_EQ(wrong_, 0);
  }

 private:
  struct Watched {
    std::uint64_t id;
    Connection connection;
  };

  void on_idle(std::uint64_t id) {
    Fate& fate = fates_.at(id);
    if (++fate.told != 1 || fate.is_removed || is_gone_) ++wrong_;
  }

  void work(std::uint32_t thread) {
    Rng rng(seed_ + thread);
    std::vector<Watched> watched;
    for (std::uint32_t i = 0; i < kSteps; ++i) {
      const std::uint64_t id = thread * kSteps + i;
      watched.push_back({id, idle_->add(id, nanoseconds{rng.below(200'000)})});
      for (int k = 0; k < 4; ++k) watched[any(watched, rng)].connection.refresh();
      if (watched.size() > 16) remove(watched, any(watched, rng), rng);
      if (rng.below(64) == 0) idle_->check_invariants();
    }
    MutexLock lock(mu_);
    for (Watched& one : watched) left_.push_back(std::move(one));
  }

  static std::size_t any(const std::vector<Watched>& watched, Rng& rng) {
    return rng.below(static_cast<std::uint32_t>(watched.size()));
  }

  void remove(std::vector<Watched>& watched, std::size_t index, Rng& rng) {
    std::swap(watched[index], watched.back());
    Watched removed = std::move(watched.back());
    watched.pop_back();
    Fate& fate = fates_.at(removed.id);
    const bool waits = rng.below(2) == 0;
    const CancelResult result =
        waits ? removed.connection.remove_and_wait() : removed.connection.remove();
    const bool is_running = result == CancelResult::running && !waits;
    if (!is_running) {
      fate.is_removed = true;
      EXPECT_EQ(fate.told, result == CancelResult::cancelled ? 0 : 1);
    }
  }

  const std::uint64_t seed_;
  ThreadPool pool_{{.threads = 2, .capacity = 16}};
  Scheduler scheduler_{{.executor = &pool_}};
  std::vector<Fate> fates_;
  std::atomic<int> wrong_ = 0;
  std::atomic<bool> is_gone_ = false;
  Mutex mu_;
  std::vector<Watched> left_ DETENT_GUARDED_BY(mu_);
  std::unique_ptr<IdleTimeouts> idle_;
};

TEST(IdleTimeoutsStress, ReportsEachConnectionOnceAndNoRemovedConnection) {
  const std::uint64_t seed = test_seed();
  SCOPED_TRACE(replay_hint(seed));
  for (std::uint64_t i = 0; i < 3; ++i) std::make_unique<Chaos>(seed + i)->run();
}

}  // namespace
}  // namespace detent

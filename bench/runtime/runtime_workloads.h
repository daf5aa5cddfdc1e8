// The workloads of runtime_bench for a runtime of this process. The runtime is a class:
//
//     Runtime(std::uint32_t timers, std::uint32_t threads, OnFire on_fire);
//     void schedule(std::uint32_t timer, std::chrono::microseconds delay);
//     void cancel(std::uint32_t timer);
//     void refresh(std::uint32_t timer, std::chrono::microseconds delay);
//     void run(step);       // calls step(thread) on each of its threads until it returns false;
//                           // returns when the runtime has done all requests
//     void settle();        // waits until the runtime has done all requests
//     void serve(start);    // calls start and lets timers fire until a callback calls finish
//     void finish();
//     std::uint64_t pending();  // the runtime's own count, between two runs
//
// With one thread, a runtime that is a loop runs all calls on the loop's thread, like its programs.
// Timers [0, load.pending) are only pending. After them, each thread has its own window of timers,
// and cancels the oldest timer of the window first.
#pragma once

#include <sched.h>
#include <sys/types.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <barrier>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "base/rng.h"
#include "bench/runtime/runtime_peer.h"
#include "bench/server/process_cost.h"
#include "bench/stopwatch.h"

namespace detent::bench {

/// Gets the number of the timer that fired. Several threads can call it at the same time.
using OnFire = std::function<void(std::uint32_t)>;

/// The workloads of a runtime in addition to schedule_and_cancel.
struct TakesPart {
  bool cancel = false;  ///< run() must give each thread of the caller its own thread
  bool refresh = false;
  bool lateness = false;  ///< lateness and idle
  bool threads = true;    ///< more than one thread
};

/// The name of a runtime, how it is driven, and its resolution.
struct RuntimeCard {
  std::string name;
  std::string note;
  TakesPart takes_part;
  std::chrono::microseconds unit{0};  ///< a timer may be early by this time
};

template <class Runtime>
class InProcess final : public RuntimePeer {
 public:
  explicit InProcess(RuntimeCard card) : card_(std::move(card)) {}

  std::string name() const override { return card_.name; }
  std::string note() const override { return card_.note; }
  std::uint64_t count_wrong() override;
  std::optional<double> schedule_and_cancel(const RuntimeLoad& load) override;
  std::optional<CancelCost> cancel(const RuntimeLoad& load) override;
  std::optional<double> refresh(const RuntimeLoad& load) override;
  std::vector<double> lateness(const RuntimeLoad& load) override;
  std::optional<ProcessCost> idle(const RuntimeLoad& load) override;

 private:
  using Steady = std::chrono::steady_clock;
  using Microseconds = std::chrono::microseconds;

  static constexpr std::uint32_t kAtOnce = 64;  // operations between two looks at the clock
  static constexpr Microseconds kHour = std::chrono::hours{1};

  /// Keeps the calling thread on one core: the first, the second, … that this process may use.
  static void stay_on_core(std::uint32_t index) {
    cpu_set_t cores;
    if (sched_getaffinity(getpid(), sizeof(cores), &cores) != 0) return;
    for (std::size_t core = 0; core < CPU_SETSIZE; ++core) {
      if (!CPU_ISSET(core, &cores) || index-- > 0) continue;
      CPU_ZERO(&cores);
      CPU_SET(core, &cores);
      sched_setaffinity(0, sizeof(cores), &cores);
      return;
    }
  }

  // The position of one thread in its window.
  struct alignas(64) Lane {
    Rng random{0};
    std::uint64_t scheduled = 0;
    std::uint64_t cancelled = 0;
  };

  static Microseconds delay_between(Rng& random, Microseconds shortest, Microseconds longest) {
    const auto range = static_cast<std::uint32_t>((longest - shortest).count());
    return shortest + Microseconds{range == 0 ? 0 : random.below(range)};
  }

  /// Timers [0, count), spread over an hour that begins after `shortest`.
  static void fill(Runtime& runtime, std::uint32_t count, Microseconds shortest) {
    Rng random(count);
    for (std::uint32_t timer = 0; timer < count; ++timer) {
      runtime.schedule(timer, delay_between(random, shortest, shortest + kHour));
    }
  }

  /// Ends the process unless every scheduled timer is pending or has fired.
  void check_pending(Runtime& runtime, const std::atomic<std::uint64_t>& fired,
                     std::uint64_t armed) const {
    for (int look = 0; look < 1'000; ++look) {  // a timer may fire between the two readings
      if (runtime.pending() + fired == armed) return;
      std::this_thread::yield();
    }
    std::fprintf(stderr, "%s: %llu timers armed, but %llu pending and %llu fired\n",
                 card_.name.c_str(), static_cast<unsigned long long>(armed),
                 static_cast<unsigned long long>(runtime.pending()),
                 static_cast<unsigned long long>(fired.load()));
    std::exit(1);
  }

  void check_few_fired(std::uint64_t fired, std::uint64_t pairs) const {
    if (fired <= kAtOnce + pairs / 10) return;
    std::fprintf(stderr, "%s: many timers fired before they were cancelled\n", card_.name.c_str());
    std::exit(1);
  }

  RuntimeCard card_;
};

template <class Runtime>
std::uint64_t InProcess<Runtime>::count_wrong() {
  constexpr std::uint32_t kTimers = 1'000;
  std::vector<Steady::time_point> deadlines(kTimers);
  std::vector<std::atomic<std::uint32_t>> firings(kTimers);
  std::atomic<std::uint64_t> early = 0;
  Runtime* running = nullptr;
  const OnFire on_fire = [&](std::uint32_t timer) {
    const Steady::time_point now = Steady::now();
    if (timer == kTimers) return running->finish();
    if (now < deadlines[timer] - card_.unit) ++early;
    ++firings[timer];
  };
  Runtime runtime(kTimers + 1, 1, on_fire);
  running = &runtime;
  runtime.serve([&] {
    Rng random(7);
    const auto arm = [&](std::uint32_t timer, int milliseconds, auto how) {
      const Microseconds shortest{milliseconds * 1'000};
      const Microseconds delay = delay_between(random, shortest, shortest + Microseconds{20'000});
      deadlines[timer] = Steady::now() + delay;
      (runtime.*how)(timer, delay);
    };
    // Of each four timers, one fires as scheduled, one moves to an earlier time, one moves to a
    // later time, and one is cancelled. Timers that must not fire at their first deadline are due
    // late enough for the move or the cancel.
    const bool refreshes = card_.takes_part.refresh;
    for (std::uint32_t timer = 0; timer < kTimers; ++timer) {
      arm(timer, timer % 4 == 0 ? 1 : 100, &Runtime::schedule);
    }
    for (std::uint32_t timer = 0; timer < kTimers; ++timer) {
      if (timer % 4 == 1 && refreshes) arm(timer, 1, &Runtime::refresh);
      if (timer % 4 == 2 && refreshes) arm(timer, 140, &Runtime::refresh);
      if (timer % 4 == 3) runtime.cancel(timer);
    }
    runtime.schedule(kTimers, Microseconds{200'000});
  });
  std::uint64_t wrong = early;
  for (std::uint32_t timer = 0; timer < kTimers; ++timer) {
    const std::uint32_t expected = timer % 4 == 3 ? 0 : 1;
    if (firings[timer] != expected) ++wrong;
  }
  return wrong;
}

template <class Runtime>
std::optional<double> InProcess<Runtime>::schedule_and_cancel(const RuntimeLoad& load) {
  if (load.threads > 1 && !card_.takes_part.threads) return std::nullopt;
  std::atomic<std::uint64_t> fired = 0;
  std::atomic<std::uint64_t> fired_in_window = 0;
  const OnFire on_fire = [&](std::uint32_t timer) {
    ++fired;
    if (timer >= load.pending) ++fired_in_window;
  };
  Runtime runtime(load.pending + load.threads * load.window, load.threads, on_fire);
  fill(runtime, load.pending, Microseconds{0});
  std::vector<Lane> lanes(load.threads);
  for (std::uint32_t i = 0; i < load.threads; ++i) lanes[i].random = Rng(load.seed * 1'000 + i);

  const Stopwatch watch;
  runtime.run([&](std::uint32_t thread) {
    Lane& lane = lanes[thread];
    const std::uint32_t first = load.pending + thread * load.window;
    const auto timer_of = [&](std::uint64_t count) {
      return first + static_cast<std::uint32_t>(count % load.window);
    };
    const bool more = watch.wall_seconds() < load.seconds;
    for (std::uint32_t i = 0; i < kAtOnce; ++i) {
      const bool is_full = lane.scheduled - lane.cancelled == load.window;
      const bool is_empty = lane.scheduled == lane.cancelled;
      if (is_full || (!more && !is_empty)) runtime.cancel(timer_of(lane.cancelled++));
      if (!more) continue;
      runtime.schedule(timer_of(lane.scheduled++),
                       delay_between(lane.random, load.shortest, load.longest));
    }
    return more || lane.scheduled > lane.cancelled;
  });
  const double seconds = watch.wall_seconds();

  std::uint64_t pairs = 0;
  for (const Lane& lane : lanes) pairs += lane.cancelled;
  check_few_fired(fired_in_window, pairs);
  check_pending(runtime, fired, load.pending + fired_in_window);
  return seconds * 1e9 / static_cast<double>(pairs);
}

// Two threads on two cores alternate: the first schedules timers, then one of the two cancels them.
template <class Runtime>
std::optional<CancelCost> InProcess<Runtime>::cancel(const RuntimeLoad& load) {
  if (!card_.takes_part.cancel) return std::nullopt;
  constexpr std::uint32_t kTimers = 10'000;
  std::atomic<std::uint64_t> fired = 0;
  const OnFire on_fire = [&](std::uint32_t) { ++fired; };
  Runtime runtime(load.pending + kTimers, 2, on_fire);
  fill(runtime, load.pending, Microseconds{0});

  std::barrier<> turn(2);
  double seconds[2] = {};  // by the cancelling thread
  double cancelled = 0;    // by each thread
  const Stopwatch watch;
  bool more = true;
  std::uint32_t canceller = 1;
  runtime.run([&](std::uint32_t thread) {
    stay_on_core(thread);
    if (thread == 0) {
      canceller = 1 - canceller;
      if (canceller == 0) more = watch.wall_seconds() < 2 * load.seconds;
      Rng random(load.seed);
      for (std::uint32_t i = 0; more && i < kTimers; ++i) {
        runtime.schedule(load.pending + i, delay_between(random, load.shortest, load.longest));
      }
    }
    turn.arrive_and_wait();
    const bool goes_on = more;
    if (goes_on && thread == canceller) {
      const Stopwatch cancelling;
      for (std::uint32_t i = 0; i < kTimers; ++i) runtime.cancel(load.pending + i);
      runtime.settle();
      seconds[thread] += cancelling.wall_seconds();
      if (thread == 0) cancelled += kTimers;
    }
    turn.arrive_and_wait();
    return goes_on;
  });
  check_pending(runtime, fired, load.pending);
  return CancelCost{.own_thread = seconds[0] * 1e9 / cancelled,
                    .other_thread = seconds[1] * 1e9 / cancelled};
}

// Moves a random pending timer to an hour from now, like the timeout of a connection that received
// data.
template <class Runtime>
std::optional<double> InProcess<Runtime>::refresh(const RuntimeLoad& load) {
  if (!card_.takes_part.refresh) return std::nullopt;
  std::atomic<std::uint64_t> fired = 0;
  const OnFire on_fire = [&](std::uint32_t) { ++fired; };
  Runtime runtime(load.pending, 1, on_fire);
  fill(runtime, load.pending, Microseconds{60'000'000});
  Rng random(load.seed);
  std::uint64_t refreshed = 0;
  const Stopwatch watch;
  runtime.run([&](std::uint32_t) {
    if (watch.wall_seconds() >= load.seconds) return false;
    for (std::uint32_t i = 0; i < kAtOnce; ++i) runtime.refresh(random.below(load.pending), kHour);
    refreshed += kAtOnce;
    return true;
  });
  const double seconds = watch.wall_seconds();
  check_pending(runtime, fired, load.pending);
  return seconds * 1e9 / static_cast<double>(refreshed);
}

template <class Runtime>
std::vector<double> InProcess<Runtime>::lateness(const RuntimeLoad& load) {
  std::vector<double> measured;
  if (!card_.takes_part.lateness) return measured;
  Steady::time_point deadline;
  Runtime* running = nullptr;
  Rng random(load.seed);
  const auto schedule_next = [&] {
    const Microseconds delay = delay_between(random, load.shortest, load.longest);
    deadline = Steady::now() + delay;
    // Two timers alternate, because the timer of the running callback must not be scheduled.
    const auto turn = static_cast<std::uint32_t>(measured.size() % 2);
    running->schedule(load.pending + turn, delay);
  };
  const OnFire on_fire = [&](std::uint32_t) {
    const std::chrono::duration<double, std::nano> late = Steady::now() - deadline;
    measured.push_back(late.count());
    if (measured.size() == load.samples) return running->finish();
    schedule_next();
  };
  Runtime runtime(load.pending + 2, 1, on_fire);
  running = &runtime;
  runtime.serve([&] {
    fill(runtime, load.pending, kHour);
    schedule_next();
  });
  return measured;
}

template <class Runtime>
std::optional<ProcessCost> InProcess<Runtime>::idle(const RuntimeLoad& load) {
  if (!card_.takes_part.lateness) return std::nullopt;
  Runtime* running = nullptr;
  const OnFire on_fire = [&](std::uint32_t) { running->finish(); };
  Runtime runtime(load.pending + 1, 1, on_fire);
  running = &runtime;
  ProcessCost cost;
  std::atomic<bool> is_filled = false;
  std::jthread observer([&] {
    is_filled.wait(false);
    std::this_thread::sleep_for(std::chrono::milliseconds{50});  // until the runtime is idle
    const ProcessCost before = process_cost(getpid(), gettid());
    std::this_thread::sleep_for(std::chrono::duration<double>(load.seconds));
    cost = process_cost(getpid(), gettid()) - before;
  });
  runtime.serve([&] {
    fill(runtime, load.pending, kHour);
    const auto end = std::chrono::duration<double>(load.seconds + 0.2);
    runtime.schedule(load.pending, std::chrono::duration_cast<Microseconds>(end));
    is_filled = true;
    is_filled.notify_one();
  });
  observer.join();
  return cost;
}

}  // namespace detent::bench

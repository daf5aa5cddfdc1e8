// The workloads of timers_bench. Each fills a queue with n timers, works on it and records
// nanoseconds an operation. Delays are in ticks:
//
//     U60k   uniform in 1 … 60 000                     LU36   2^(36 u), u uniform in [0, 1)
//     a      schedule timers 0 … n − 1                 b      cancel a random one, schedule it
//     again b3     64 cancels, then 64 schedules             b1     cancel distinct random ones c
//     keep-alive: postpone random ones to now + 60 000 while time goes on g      mixed: cancel and
//     schedule random ones while time goes on; what fires is re-armed d      advance tick by tick
//     until all have fired      dL   from wake-up to wake-up, LU36 e      one timer an hour or a
//     century (of milliseconds) away f      the next wake-up, while ticking and with nothing due
//     for 30 000 ticks
//
// In c and g a tick holds n / 15 000 operations (at least one), as when each of n connections is
// heard of every 15 seconds. A phase that takes longer than its box is cut short; the figure is
// then over what was done.
#pragma once

#include <malloc.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <functional>
#include <numeric>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "base/rng.h"
#include "bench/stopwatch.h"
#include "bench/timer_queues.h"

namespace detent::bench {

struct WorkloadOptions {
  std::uint32_t timer_count = 0;
  std::uint64_t seed = 0;
  double box_seconds = 3;
  std::set<std::string> only;  // empty: all

  bool wants(const std::string& name) const { return only.empty() || only.contains(name); }
};

/// Takes a measure's name and its value.
using Record = std::function<void(const std::string&, double)>;

inline Tick u60k(Rng& random) { return 1 + random.below(60'000); }
inline Tick lu36(Rng& random) { return static_cast<Tick>(std::exp2(36.0 * random.unit())); }

/// 150 000 ticks of random operations on 5 000 timers, each firing's tick checked.
/// Returns: how many timers fired early, late or never.
template <class Queue>
std::uint64_t count_wrong_firings() {
  constexpr std::uint32_t kTimers = 5'000;
  constexpr Tick kIdle = 0;
  Queue queue(kTimers);
  Fired fired(kTimers);
  Rng random(7);
  std::vector<Tick> deadlines(kTimers);
  std::uint64_t wrong = 0;
  const auto arm = [&](std::uint32_t id, Tick deadline) {
    deadlines[id] = deadline;
    queue.schedule(id, deadline);
  };
  for (std::uint32_t id = 0; id < kTimers; ++id) arm(id, u60k(random));
  for (Tick now = 1; now <= 150'000; ++now) {
    const std::uint32_t moved = random.below(kTimers);
    queue.cancel(moved);
    arm(moved, now - 1 + (random.below(4) == 0 ? 1 + random.below(300) : u60k(random)));
    const std::uint32_t kept_alive = random.below(kTimers);
    deadlines[kept_alive] = now - 1 + 60'000;
    queue.postpone(kept_alive, deadlines[kept_alive]);

    fired.count = 0;
    queue.advance(now, fired);
    for (std::size_t i = 0; i < fired.count; ++i) {
      const std::uint32_t id = fired.ids[i];
      if (deadlines[id] != now) ++wrong;
      deadlines[id] = kIdle;
    }
    for (std::size_t i = 0; i < fired.count; ++i) arm(fired.ids[i], now + u60k(random));
    if (now % 5'000 == 0) {
      wrong += static_cast<std::uint64_t>(
          std::ranges::count_if(deadlines, [now](Tick deadline) { return deadline <= now; }));
    }
  }
  return wrong;
}

template <class Queue>
class Workloads {
 public:
  Workloads(const WorkloadOptions& options, const Record& record)
      : options_(options), record_(record), n_(options.timer_count), fired_(n_) {}

  void run() {
    if (wants_any({"a", "b", "b1", "b3", "d"})) schedule_churn_expire();
    if (wants_any({"a", "dL"})) schedule_and_jump();
    if (options_.wants("c")) refresh();
    if (wants_any({"g", "f"})) mixed();
    if (options_.wants("f")) wakeup_of_far_timers();
    if (options_.wants("e")) idle();
  }

 private:
  bool wants_any(std::initializer_list<const char*> names) const {
    return std::ranges::any_of(names, [this](const char* name) { return options_.wants(name); });
  }

  bool over(const Stopwatch& watch, double boxes = 1) const {
    return watch.seconds() > boxes * options_.box_seconds;
  }

  static std::size_t bytes_in_use() {
    const struct mallinfo2 info = mallinfo2();
    return info.uordblks + info.hblkhd;
  }

  std::size_t advance(Queue& queue, Tick now) {
    fired_.count = 0;
    queue.advance(now, fired_);
    return fired_.count;
  }

  std::uint32_t operations_per_tick() const { return std::max<std::uint32_t>(1, n_ / 15'000); }

  // Schedules timers 0 … n − 1 at the deadlines given.
  // Returns: whether there was time for all; if not, what would be measured on them is left out.
  template <class NextDeadline>
  bool fill(Queue& queue, NextDeadline next_deadline, const std::string& measure = "") {
    std::uint32_t id = 0;
    const Stopwatch watch;
    while (id < n_) {
      queue.schedule(id, next_deadline());
      if (++id % 4'096 == 0 && over(watch, 4)) break;
    }
    if (!measure.empty()) record_(measure, watch.nanoseconds_each(id));
    return id == n_;
  }

  void schedule_churn_expire() {
    Rng random(1'000 + options_.seed);
    const std::size_t bytes_before = bytes_in_use();
    Queue queue(n_);
    if (!fill(
            queue, [&] { return u60k(random); }, "a U60k"))
      return;
    record_("bytes", static_cast<double>(bytes_in_use() - bytes_before) / n_);
    if (options_.wants("b")) churn(queue, random);
    if (wants_any({"b1", "b3"})) churn_distinct(queue, random);
    if (options_.wants("d")) expire(queue);
  }

  void churn(Queue& queue, Rng& random) {
    const std::uint64_t operations =
        std::min<std::uint64_t>(4'000'000, std::max<std::uint64_t>(1'000'000, 2ull * n_));
    std::uint64_t done = 0;
    const Stopwatch watch;
    while (done < operations) {
      const std::uint32_t id = random.below(n_);
      queue.cancel(id);
      queue.schedule(id, u60k(random));
      if (++done % 4'096 == 0 && over(watch)) break;
    }
    record_("b churn", watch.nanoseconds_each(static_cast<double>(done)));
  }

  void churn_distinct(Queue& queue, Rng& random) {
    const std::uint32_t count = std::min<std::uint32_t>(n_, 2'000'000);
    std::vector<std::uint32_t> ids(n_);
    std::iota(ids.begin(), ids.end(), 0);
    for (std::uint32_t i = 0; i < count; ++i) std::swap(ids[i], ids[i + random.below(n_ - i)]);

    std::uint64_t done = 0;
    const Stopwatch batches;
    while (done < 2'000'000) {
      const std::uint32_t* const batch = &ids[random.below(count - 64)];
      for (int i = 0; i < 64; ++i) queue.cancel(batch[i]);
      for (int i = 0; i < 64; ++i) queue.schedule(batch[i], u60k(random));
      done += 64;
      if (done % 4'096 == 0 && over(batches)) break;
    }
    record_("b3 batch", batches.nanoseconds_each(static_cast<double>(done)));

    const Stopwatch cancels;
    std::uint32_t cancelled = 0;
    while (cancelled < count) {
      queue.cancel(ids[cancelled]);
      if (++cancelled % 4'096 == 0 && over(cancels)) break;
    }
    record_("b1 cancel", cancels.nanoseconds_each(cancelled));
    for (std::uint32_t i = 0; i < cancelled; ++i) queue.schedule(ids[i], u60k(random));
  }

  void expire(Queue& queue) {
    std::size_t fired = 0;
    const Stopwatch watch;
    for (Tick now = 1; now <= 60'000 && fired < n_; ++now) {
      fired += advance(queue, now);
      if (now % 64 == 0 && over(watch, 2)) break;
    }
    if (fired > 0) record_("d expire", watch.nanoseconds_each(static_cast<double>(fired)));
  }

  void schedule_and_jump() {
    Rng random(2'000 + options_.seed);
    Queue queue(n_);
    const bool filled = fill(
        queue, [&] { return lu36(random); }, "a LU36");
    if (!filled || !options_.wants("dL") || !Queue::kFires) return;

    std::size_t fired = 0;
    std::uint64_t wakeups = 0;
    const Stopwatch watch;
    while (fired < n_) {
      fired += advance(queue, *queue.next());
      if (++wakeups % 256 == 0 && over(watch, 2)) break;
    }
    record_("dL jump", watch.nanoseconds_each(static_cast<double>(fired)));
  }

  void refresh() {
    Rng random(3'000 + options_.seed);
    Queue queue(n_);
    const auto heard_of_some_time_ago = [&random] {
      const double age = std::min(59'998.0, -15'000.0 * std::log(1.0 - random.unit()));
      return 60'000 - static_cast<Tick>(age);
    };
    if (!fill(queue, heard_of_some_time_ago)) return;
    std::uint64_t operations = 0;
    const Stopwatch watch;
    for (Tick now = 0; now < 60'000;) {
      for (std::uint32_t i = operations_per_tick(); i > 0; --i) {
        queue.postpone(random.below(n_), now + 60'000);
      }
      operations += operations_per_tick();
      ++now;
      const std::size_t fired = advance(queue, now);
      for (std::size_t i = 0; i < fired; ++i) queue.schedule(fired_.ids[i], now + 60'000);
      if (now % 64 == 0 && over(watch)) break;
    }
    record_("c refresh", watch.nanoseconds_each(static_cast<double>(operations)));
  }

  void mixed() {
    Rng random(4'000 + options_.seed);
    Queue queue(n_);
    if (!fill(queue, [&] { return u60k(random); })) return;
    std::uint64_t operations = 0;
    Tick now = 0;
    const Stopwatch watch;
    while (now < 60'000) {
      for (std::uint32_t i = operations_per_tick(); i > 0; --i) {
        const std::uint32_t id = random.below(n_);
        queue.cancel(id);
        queue.schedule(id, now + u60k(random));
      }
      ++now;
      operations += operations_per_tick() + tick_and_rearm(queue, random, now);
      if (now % 64 == 0 && over(watch, 1.5)) break;
    }
    record_("g mixed", watch.nanoseconds_each(static_cast<double>(operations)));
    if (options_.wants("f")) wakeup_while_ticking(queue, random, now);
  }

  std::size_t tick_and_rearm(Queue& queue, Rng& random, Tick now) {
    const std::size_t fired = advance(queue, now);
    for (std::size_t i = 0; i < fired; ++i) queue.schedule(fired_.ids[i], now + u60k(random));
    return fired;
  }

  // Answers are summed up, so that the calls cannot be left out.
  double seconds_of_wakeups(const Queue& queue, int count) {
    const Stopwatch watch;
    for (int i = 0; i < count; ++i) fired_.sum += queue.next().value_or(0);
    return watch.seconds();
  }

  void wakeup_while_ticking(Queue& queue, Rng& random, Tick now) {
    constexpr int kTicks = 1'000;
    constexpr int kCallsPerTick = 64;
    double seconds = 0;
    for (int tick = 0; tick < kTicks; ++tick) {
      tick_and_rearm(queue, random, ++now);
      seconds += seconds_of_wakeups(queue, kCallsPerTick);
    }
    record_("f ticking", seconds * 1e9 / (kTicks * kCallsPerTick));
  }

  void wakeup_of_far_timers() {
    constexpr int kCalls = 100'000;
    Rng random(5'000 + options_.seed);
    Queue queue(n_);
    if (!fill(queue, [&] { return Tick{30'000} + random.below(30'001); })) return;
    record_("f far", seconds_of_wakeups(queue, kCalls) * 1e9 / kCalls);
  }

  void idle() {
    constexpr Tick kHour = 3'600'000;
    constexpr Tick kCentury = 3'155'760'000'000;
    if (!Queue::kFires) return;
    idle_over(kHour, "1 h");
    idle_over(kCentury, "100 y");
  }

  void idle_over(Tick delay, const std::string& name) {
    constexpr int kTimes = 2'000;
    Queue queue(16);
    Tick now = 0;
    const Stopwatch jumps;
    for (int i = 0; i < kTimes; ++i) {
      queue.schedule(3, now + delay);
      now += delay;
      advance(queue, now);
    }
    record_("e jump " + name, jumps.nanoseconds_each(kTimes));

    std::uint64_t wakeups = 0;
    for (int i = 0; i < kTimes; ++i) {
      queue.schedule(3, now + delay + 12'345);
      do {
        now = *queue.next();
        ++wakeups;
      } while (advance(queue, now) == 0);
    }
    record_("e wake-ups " + name, static_cast<double>(wakeups) / kTimes);
  }

  const WorkloadOptions& options_;
  const Record& record_;
  std::uint32_t n_;
  Fired fired_;
};

}  // namespace detent::bench

// The workloads of timers_bench. Each fills a queue with n timers, works on it and records
// nanoseconds per operation. Delays are in ticks: U60k is uniform in 1 … 60 000, and LU36 is 2^(36
// u) with u uniform in [0, 1).
//
//  - a: schedule timers 0 … n − 1, at U60k and at LU36. The memory was used before: each timer was
//    scheduled and cancelled once. With fewer than 1 000 timers this is repeated.
//  - a first: the same at U60k, in a new queue that has reserved nothing. The memory of the timers
//    was used before.
//  - b: cancel a random timer and schedule it again
//  - b3: 64 cancels, then 64 schedules. A queue with calls for many timers uses one call for each.
//  - b1: cancel distinct random timers
//  - c: keep-alive: postpone random timers to now + 60 000 while time advances
//  - g: mixed: cancel and schedule random timers while time advances. A timer that fires is
//    scheduled again.
//  - w: a web server: every request has a timeout of 30 000 ticks, and 95 % are cancelled
//  - t: a game: all timers are due within 100 ticks. A timer that fires is scheduled again.
//  - r: as g, with recorded delays (recorded_delays.h)
//  - d: advance tick by tick until all U60k timers have fired
//  - dL: advance from wake-up to wake-up until all LU36 timers have fired
//  - e: one timer that is due in an hour, or in a century, with ticks of a millisecond
//  - f: ask for the next wake-up, while ticking, and while all timers are due in at least 30 000
//    ticks
//
// In c, g and r, each tick has n / 15 000 operations, and at least one. This is the load if each of
// n connections sends something every 15 seconds. A phase that takes longer than its time limit
// stops early, and its figure covers the operations until then. Operations that a queue does not
// have (QueueLimits) are left out.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <numeric>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/rng.h"
#include "bench/run_options.h"
#include "bench/stopwatch.h"
#include "bench/wheel/bench_queue.h"

namespace detent::bench {

inline Tick u60k(Rng& random) { return 1 + random.below(60'000); }
inline Tick lu36(Rng& random) { return static_cast<Tick>(std::exp2(36.0 * random.unit())); }

template <class Queue>
class Workloads {
 public:
  Workloads(const RunOptions& options, const Record& record)
      : options_(options), record_(record), n_(options.capacity.timers), fired_(n_) {}

  Outcome run() {
    if (options_.wants_any({"a", "b", "b1", "b3", "d"})) schedule_churn_expire();
    if (options_.wants_any({"a", "dL"}) && Queue::kLimits.span >= Tick{1} << 36) {
      schedule_and_jump();
    }
    if (options_.wants("c")) refresh();
    if (options_.wants("a")) first_fill();
    if (options_.wants_any({"g", "f"})) mixed();
    if (options_.wants("w")) web();
    if (options_.wants("t") && Queue::kLimits.fires) game();
    if (options_.wants("r")) recorded();
    if (options_.wants("f") && Queue::kLimits.has_next) wakeup_of_far_timers();
    if (options_.wants("e") && Queue::kLimits.fires) idle();
    return too_slow_ ? Outcome::too_slow : Outcome::measured;
  }

 private:
  std::size_t advance(Queue& queue, Tick now) {
    fired_.count = 0;
    queue.advance(now, fired_);
    return fired_.count;
  }

  std::uint32_t operations_per_tick() const { return std::max<std::uint32_t>(1, n_ / 15'000); }

  // Schedules timers 0 … n − 1 at the given deadlines. `measure` may be null. Returns false if the
  // time was too short for all timers. Then this workload and all later workloads are left out.
  template <class NextDeadline>
  bool fill(Queue& queue, const char* measure, NextDeadline next_deadline) {
    const Stopwatch watch;
    for (std::uint32_t id = 0; id < n_ && !too_slow_; ++id) {
      queue.schedule(id, next_deadline());
      if (id % 1'024 == 0) too_slow_ = options_.too_slow(watch);
    }
    if (too_slow_) return false;
    if (measure != nullptr) record_(measure, watch.nanoseconds_each(n_));
    return true;
  }

  // Empties a queue and fills it again, so the measurement does not include the first access to a
  // page.
  template <class NextDeadline>
  bool refill(Queue& queue, const char* measure, NextDeadline next_deadline) {
    if (n_ < kFewTimers) return refill_often(queue, measure, next_deadline);
    for (std::uint32_t id = 0; id < n_; ++id) queue.cancel(id);
    return fill(queue, measure, next_deadline);
  }

  // Reading CPU time takes longer than filling a queue with few timers, so this uses wall time and
  // the median of many rounds.
  template <class NextDeadline>
  bool refill_often(Queue& queue, const char* measure, NextDeadline next_deadline) {
    std::vector<double> rounds(101);
    std::vector<double> empty(rounds.size());
    std::vector<Tick> deadlines(n_);
    for (std::size_t round = 0; round < rounds.size(); ++round) {
      for (std::uint32_t id = 0; id < n_; ++id) {
        queue.cancel(id);
        deadlines[id] = next_deadline();
      }
      empty[round] = Stopwatch().wall_seconds();
      const Stopwatch watch;
      for (std::uint32_t id = 0; id < n_; ++id) queue.schedule(id, deadlines[id]);
      rounds[round] = watch.wall_seconds();
    }
    record_(measure, std::max(0.0, median(rounds) - median(empty)) * 1e9 / n_);
    return true;
  }

  static double median(std::vector<double>& values) {
    const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
    std::nth_element(values.begin(), middle, values.end());
    return *middle;
  }

  // One queue after the other, because an event loop under virtual time allows only one at a time.
  void first_fill() {
    if (too_slow_) return;
    Rng random(6'000 + options_.seed);
    Capacity capacity = options_.capacity;
    capacity.reserve = false;
    std::vector<Tick> deadlines(n_);
    for (Tick& deadline : deadlines) deadline = u60k(random);
    std::vector<double> rounds(std::clamp(4 * kFewTimers / n_, 1u, 101u));
    std::vector<double> empty(rounds.size());
    for (std::size_t round = 0; round < rounds.size(); ++round) {
      Queue queue(capacity);
      empty[round] = Stopwatch().wall_seconds();
      const Stopwatch watch;
      for (std::uint32_t id = 0; id < n_; ++id) queue.schedule(id, deadlines[id]);
      rounds[round] = n_ < 10 * kFewTimers ? watch.wall_seconds() : watch.seconds();
    }
    record_("a first", std::max(0.0, median(rounds) - median(empty)) * 1e9 / n_);
  }

  void schedule_churn_expire() {
    Rng random(1'000 + options_.seed);
    const std::size_t allocated_before = bytes_allocated();
    Queue queue(options_.capacity);
    const auto next_deadline = [&random] { return u60k(random); };
    if (!fill(queue, nullptr, next_deadline)) return;
    record_("bytes", bytes_each(queue, bytes_allocated() - allocated_before, n_));
    if (!refill(queue, "a U60k", next_deadline)) return;
    if (options_.wants("b")) churn(queue, random);
    if (options_.wants_any({"b1", "b3"})) churn_distinct(queue, random);
    if (options_.wants("d") && Queue::kLimits.fires) expire(queue);
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
      if (++done % 1'024 == 0 && options_.over(watch)) break;
    }
    record_("b churn", watch.nanoseconds_each(static_cast<double>(done)));
  }

  void churn_distinct(Queue& queue, Rng& random) {
    const std::uint32_t count = std::min<std::uint32_t>(n_, 2'000'000);
    std::vector<std::uint32_t> ids(n_);
    std::iota(ids.begin(), ids.end(), 0);
    for (std::uint32_t i = 0; i < count; ++i) std::swap(ids[i], ids[i + random.below(n_ - i)]);
    if (options_.wants("b3")) churn_in_batches(queue, random, {ids.data(), count});
    if (options_.wants("b1")) cancel_and_rearm(queue, random, {ids.data(), count});
  }

  void churn_in_batches(Queue& queue, Rng& random, std::span<const std::uint32_t> ids) {
    constexpr std::uint32_t kBatch = 64;
    if (ids.size() <= kBatch) return;
    const std::uint32_t starts = static_cast<std::uint32_t>(ids.size()) - kBatch;
    std::uint64_t done = 0;
    std::vector<Armed> armed(kBatch);
    const Stopwatch watch;
    while (done < 2'000'000) {
      const std::span<const std::uint32_t> batch = ids.subspan(random.below(starts), kBatch);
      queue.cancel_all(batch);
      for (std::uint32_t i = 0; i < kBatch; ++i) armed[i] = {batch[i], u60k(random)};
      queue.schedule_all(armed);
      done += kBatch;
      if (done % 1'024 == 0 && options_.over(watch)) break;
    }
    record_("b3 batch", watch.nanoseconds_each(static_cast<double>(done)));
  }

  void cancel_and_rearm(Queue& queue, Rng& random, std::span<const std::uint32_t> ids) {
    const Stopwatch watch;
    std::uint32_t cancelled = 0;
    while (cancelled < ids.size()) {
      queue.cancel(ids[cancelled]);
      if (++cancelled % 1'024 == 0 && options_.over(watch)) break;
    }
    record_("b1 cancel", watch.nanoseconds_each(cancelled));
    for (const std::uint32_t id : ids.first(cancelled)) queue.schedule(id, u60k(random));
  }

  void expire(Queue& queue) {
    std::size_t fired = 0;
    const Stopwatch watch;
    for (Tick now = 1; now <= 60'000 && fired < n_; ++now) {
      fired += advance(queue, now);
      if (now % 64 == 0 && options_.over(watch, 2)) break;
    }
    if (fired > 0) record_("d expire", watch.nanoseconds_each(static_cast<double>(fired)));
  }

  void schedule_and_jump() {
    Rng random(2'000 + options_.seed);
    Queue queue(options_.capacity);
    const auto next_deadline = [&random] { return lu36(random); };
    if (!fill(queue, nullptr, next_deadline)) return;
    if (!refill(queue, "a LU36", next_deadline)) return;
    if (!options_.wants("dL") || !Queue::kLimits.fires || !Queue::kLimits.has_next) return;
    std::size_t fired = 0;
    std::uint64_t wakeups = 0;
    const Stopwatch watch;
    while (fired < n_) {
      fired += advance(queue, queue.next());
      if (++wakeups % 256 == 0 && options_.over(watch, 2)) break;
    }
    if (fired > 0) record_("dL jump", watch.nanoseconds_each(static_cast<double>(fired)));
  }

  void refresh() {
    Rng random(3'000 + options_.seed);
    Queue queue(options_.capacity);
    const auto heard_of_some_time_ago = [&random] {
      const double age = std::min(59'998.0, -15'000.0 * std::log(1.0 - random.unit()));
      return 60'000 - static_cast<Tick>(age);
    };
    if (!fill(queue, nullptr, heard_of_some_time_ago)) return;
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
      if (now % 64 == 0 && options_.over(watch)) break;
    }
    record_("c refresh", watch.nanoseconds_each(static_cast<double>(operations)));
  }

  void mixed() {
    const auto delay = [](Rng& random) { return u60k(random); };
    steadily("g mixed", {.seed = 4'000, .rate = 1.0 * operations_per_tick(), .boxes = 1.5}, delay,
             [this](Queue& queue, Rng& random, Tick now) {
               if (options_.wants("f") && Queue::kLimits.has_next) {
                 wakeup_while_ticking(queue, random, now);
               }
             });
  }

  // A request ends at random, after 10 000 ticks on average. Of all requests, e^−3 take longer than
  // 30 000 ticks: these are the 5 % whose timeout fires.
  void web() {
    steadily("w web", {.seed = 7'000, .rate = n_ / 10'000.0}, [](Rng&) { return Tick{30'000}; });
  }

  void game() {
    steadily("t game", {.seed = 8'000}, [](Rng& random) { return 1 + random.below(100); });
  }

  void recorded() {
    const std::span<const Tick> delays = options_.recorded_delays;
    if (delays.empty() || std::ranges::max(delays) >= Queue::kLimits.span) return;
    steadily("r recorded", {.seed = 9'000, .rate = 1.0 * operations_per_tick()},
             [delays](Rng& random) {
               return delays[random.below(static_cast<std::uint32_t>(delays.size()))];
             });
  }

  struct Load {
    std::uint64_t seed = 0;
    double rate = 0;  // random timers that are cancelled and scheduled again in each tick
    double boxes = 1;
  };
  static constexpr auto kNoMore = [](Queue&, Rng&, Tick) {};

  // Ticks with the same load. A timer that fires is scheduled again. Then calls `more(queue,
  // random, now)`.
  template <class NextDelay, class More = decltype(kNoMore)>
  void steadily(const char* measure, const Load& load, NextDelay next_delay,
                const More& more = kNoMore) {
    Rng random(load.seed + options_.seed);
    Queue queue(options_.capacity);
    if (!fill(queue, nullptr, [&] { return next_delay(random); })) return;
    std::uint64_t operations = 0;
    double due = 0;
    Tick now = 0;
    const Stopwatch watch;
    while (now < 60'000) {
      for (due += load.rate; due >= 1; --due) {
        const std::uint32_t id = random.below(n_);
        queue.cancel(id);
        queue.schedule(id, now + next_delay(random));
        ++operations;
      }
      ++now;
      operations += tick_and_rearm(queue, random, now, next_delay);
      if (now % 64 == 0 && options_.over(watch, load.boxes)) break;
    }
    if (operations != 0) {
      record_(measure, watch.nanoseconds_each(static_cast<double>(operations)));
    }
    more(queue, random, now);
  }

  template <class NextDelay>
  std::size_t tick_and_rearm(Queue& queue, Rng& random, Tick now, NextDelay next_delay) {
    const std::size_t fired = advance(queue, now);
    for (std::size_t i = 0; i < fired; ++i) {
      queue.schedule(fired_.ids[i], now + next_delay(random));
    }
    return fired;
  }

  // Sums up the answers, so the compiler cannot remove the calls.
  void ask_wakeup(const Queue& queue, int count) {
    for (int i = 0; i < count; ++i) fired_.sum += queue.next();
  }

  void wakeup_while_ticking(Queue& queue, Rng& random, Tick now) {
    constexpr int kCallsPerTick = 64;
    double seconds = 0;
    int ticks = 0;
    while (ticks < 1'000 && seconds < options_.box_seconds) {
      ++ticks;
      tick_and_rearm(queue, random, ++now, u60k);
      const Stopwatch watch;
      ask_wakeup(queue, kCallsPerTick);
      seconds += watch.seconds();
    }
    record_("f ticking", seconds * 1e9 / (ticks * kCallsPerTick));
  }

  void wakeup_of_far_timers() {
    constexpr int kCalls = 1'000;
    Rng random(5'000 + options_.seed);
    Queue queue(options_.capacity);
    if (!fill(queue, nullptr, [&] { return Tick{30'000} + random.below(30'001); })) return;
    int rounds = 0;
    const Stopwatch watch;
    do {
      ask_wakeup(queue, kCalls);
      ++rounds;
    } while (rounds < 100 && !options_.over(watch));
    record_("f far", watch.nanoseconds_each(rounds * kCalls));
  }

  // The century is left out for a queue that visits every tick or every slot.
  void idle() {
    constexpr Tick kHour = 3'600'000;
    constexpr Tick kCentury = 3'155'760'000'000;
    if (Queue::kLimits.span < 2 * kHour) return;
    const double hour_seconds = jump_over(kHour, "1 h");
    if (Queue::kLimits.has_next) wake_up_over(kHour, "1 h");
    if (Queue::kLimits.span < 2 * kCentury || hour_seconds > 1e-5) return;
    jump_over(kCentury, "100 y");
    if (Queue::kLimits.has_next) wake_up_over(kCentury, "100 y");
  }

  // Returns CPU seconds per jump.
  double jump_over(Tick delay, const std::string& name) {
    Queue queue(Capacity{.timers = 16});
    Tick now = 0;
    int times = 0;
    const Stopwatch watch;
    while (times < 2'000 && !(times % 16 == 1 && options_.over(watch, 0.2))) {
      ++times;
      queue.schedule(3, now + delay);
      now += delay;
      advance(queue, now);
    }
    record_("e jump " + name, watch.nanoseconds_each(times));
    return watch.seconds() / times;
  }

  void wake_up_over(Tick delay, const std::string& name) {
    constexpr int kTimes = 200;
    Queue queue(Capacity{.timers = 16});
    Tick now = 0;
    std::uint64_t wakeups = 0;
    const Stopwatch watch;
    for (int i = 0; i < kTimes; ++i) {
      queue.schedule(3, now + delay + 12'345);
      do {
        now = queue.next();
        if (++wakeups % 1'024 == 0 && options_.over(watch, 0.2)) return;  // too many to count
      } while (advance(queue, now) == 0);
    }
    record_("e wake-ups " + name, static_cast<double>(wakeups) / kTimes);
  }

  const RunOptions& options_;
  const Record& record_;
  static constexpr std::uint32_t kFewTimers = 1'000;
  std::uint32_t n_;
  Fired fired_;
  bool too_slow_ = false;
};

}  // namespace detent::bench

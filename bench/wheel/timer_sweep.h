// Cost against the number of timers, for the charts of the guide: schedule, cancel and fire
// separately.
//
// With n timers pending at U60k, a round cancels distinct random timers and then schedules them
// again. Their objects are then in the cache, as in a program that has just handled a connection.
// To fire timers, time goes from one deadline to the next until all have fired, as in a program
// that sleeps in between. Each figure is the median of its rounds, so other work of the machine in
// a few rounds does not change it. Short rounds use wall time, because reading CPU time takes
// longer.
#pragma once

#include <algorithm>
#include <cstdint>
#include <numeric>
#include <span>
#include <utility>
#include <vector>

#include "base/rng.h"
#include "bench/run_options.h"
#include "bench/stopwatch.h"
#include "bench/wheel/bench_queue.h"
#include "bench/wheel/timer_workloads.h"

namespace detent::bench {

template <class Queue>
class Sweep {
 public:
  Sweep(const RunOptions& options, const Record& record)
      : options_(options),
        record_(record),
        n_(options.capacity.timers),
        random_(6'000 + options.seed),
        fired_(n_),
        order_(n_) {
    std::iota(order_.begin(), order_.end(), 0);
  }

  Outcome run() {
    const std::size_t allocated_before = bytes_allocated();
    Queue queue(options_.capacity);
    const Stopwatch watch;
    for (std::uint32_t id = 0; id < n_; ++id) {
      queue.schedule(id, u60k(random_));
      if (id % 1'024 == 0 && options_.too_slow(watch)) return Outcome::too_slow;
    }
    record_("bytes", bytes_each(queue, bytes_allocated() - allocated_before, n_));
    cancel_and_schedule(queue);
    if (Queue::kLimits.fires) fire_all(queue);
    return Outcome::measured;
  }

 private:
  static double median(std::vector<double>& values) {
    const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
    std::nth_element(values.begin(), middle, values.end());
    return *middle;
  }

  // CPU time, used if the cost of reading it does not matter.
  static double seconds_of(const Stopwatch& watch) {
    const double seconds = watch.wall_seconds();
    return seconds < 1e-4 ? seconds : watch.seconds();
  }

  // The time that a Stopwatch itself takes.
  static double empty_seconds() {
    std::vector<double> empty(101);
    for (double& each : empty) each = Stopwatch().wall_seconds();
    return median(empty);
  }

  static double nanoseconds_each(double seconds, std::size_t count) {
    return std::max(0.0, seconds - empty_seconds()) * 1e9 / static_cast<double>(count);
  }

  // Distinct random timers, at the front of order_.
  std::span<const std::uint32_t> choose(std::uint32_t count) {
    for (std::uint32_t i = 0; i < count; ++i) {
      std::swap(order_[i], order_[i + random_.below(n_ - i)]);
    }
    return {order_.data(), count};
  }

  void cancel_and_schedule(Queue& queue) {
    constexpr std::uint32_t kOperations = 200'000;
    const std::uint32_t round = std::min<std::uint32_t>(n_ / 2, 4'096);
    std::vector<double> cancels;
    std::vector<double> schedules;
    std::vector<Tick> deadlines(round);
    const Stopwatch box;
    do {
      const std::span<const std::uint32_t> ids = choose(round);
      for (Tick& deadline : deadlines) deadline = u60k(random_);
      const Stopwatch cancelling;
      for (const std::uint32_t id : ids) queue.cancel(id);
      cancels.push_back(seconds_of(cancelling));
      const Stopwatch scheduling;
      for (std::uint32_t i = 0; i < round; ++i) queue.schedule(ids[i], deadlines[i]);
      schedules.push_back(seconds_of(scheduling));
    } while (cancels.size() * round < kOperations && !options_.over(box));
    record_("cancel", nanoseconds_each(median(cancels), round));
    record_("schedule", nanoseconds_each(median(schedules), round));
  }

  // Schedules all timers again in each round. The deadlines are known, so next() is not needed.
  void fire_all(Queue& queue) {
    constexpr std::size_t kTimers = 200'000;
    std::vector<double> rounds;
    std::vector<Tick> deadlines(n_);
    Tick now = 0;
    const Stopwatch box;
    do {
      for (std::uint32_t id = 0; id < n_; ++id) {
        deadlines[id] = now + u60k(random_);
        queue.schedule(id, deadlines[id]);
      }
      std::ranges::sort(deadlines);
      fired_.count = 0;
      const Stopwatch firing;
      for (const Tick deadline : deadlines) {
        if (deadline == now) continue;
        now = deadline;
        queue.advance(now, fired_);
      }
      rounds.push_back(seconds_of(firing));
      DETENT_CHECK(fired_.count == n_);
    } while (rounds.size() * n_ < kTimers && !options_.over(box));
    record_("fire", nanoseconds_each(median(rounds), n_));
  }

  const RunOptions& options_;
  const Record& record_;
  std::uint32_t n_;
  Rng random_;
  Fired fired_;
  std::vector<std::uint32_t> order_;
};

}  // namespace detent::bench

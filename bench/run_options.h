// The options and the result of one run of a queue, for workloads and sweep.
#pragma once

#include <malloc.h>

#include <algorithm>
#include <cstdint>
#include <functional>
#include <initializer_list>
#include <set>
#include <span>
#include <string>

#include "bench/stopwatch.h"
#include "bench/wheel/bench_queue.h"

namespace detent::bench {

struct RunOptions {
  Capacity capacity;
  std::uint64_t seed = 0;
  double box_seconds = 1;      ///< the time limit of a phase, or a small multiple of it
  std::set<std::string> only;  ///< the selected workloads; empty: all
  std::span<const Tick> recorded_delays = {};  ///< may be empty

  bool wants(const std::string& name) const { return only.empty() || only.contains(name); }
  bool wants_any(std::initializer_list<const char*> names) const {
    return std::ranges::any_of(names, [this](const char* name) { return wants(name); });
  }

  /// Returns true if filling takes longer than 2 µs per timer. The queue is then left out.
  bool too_slow(const Stopwatch& filling) const {
    return filling.seconds() > 0.25 + 2e-6 * capacity.timers;
  }

  bool over(const Stopwatch& watch, double boxes = 1) const {
    return watch.seconds() > boxes * box_seconds;
  }
};

/// The queue took part, or it was left out because filling it took too long.
enum class Outcome { measured, too_slow };

/// Gets the name and the value of a measure.
using Record = std::function<void(const std::string&, double)>;

/// The bytes that malloc has handed out and that were not freed, with the headers of malloc.
inline std::size_t bytes_allocated() {
  const struct mallinfo2 info = mallinfo2();
  return info.uordblks + info.hblkhd;
}

/// Bytes per timer, for `count` timers: the timer's object, and its share of the queue object, of
/// the `allocated` bytes from malloc, and of the pages that the queue has from the kernel.
template <class Queue>
double bytes_each(const Queue& queue, std::size_t allocated, std::uint32_t count) {
  const std::size_t all = sizeof(Queue) + allocated + queue.mapped_bytes();
  return Queue::kObjectBytes + static_cast<double>(all) / count;
}

}  // namespace detent::bench

// What one run of a queue is given, and what it answers: shared by workloads and sweep.
#pragma once

#include <malloc.h>

#include <algorithm>
#include <cstdint>
#include <functional>
#include <initializer_list>
#include <set>
#include <string>

#include "bench/bench_queue.h"
#include "bench/stopwatch.h"

namespace detent::bench {

struct RunOptions {
  Capacity capacity;
  std::uint64_t seed = 0;
  double box_seconds = 1;      ///< a phase is cut short after so long, or a small multiple of it
  std::set<std::string> only;  ///< the workloads wanted; empty: all

  bool wants(const std::string& name) const { return only.empty() || only.contains(name); }
  bool wants_any(std::initializer_list<const char*> names) const {
    return std::ranges::any_of(names, [this](const char* name) { return wants(name); });
  }

  /// Whether filling takes longer than 2 µs a timer: then nobody waits for the queue's figures.
  bool too_slow(const Stopwatch& filling) const {
    return filling.seconds() > 0.25 + 2e-6 * capacity.timers;
  }

  bool over(const Stopwatch& watch, double boxes = 1) const {
    return watch.seconds() > boxes * box_seconds;
  }
};

/// Whether the queue could take part, or filling it took so long that it sits out.
enum class Outcome { measured, too_slow };

/// Takes a measure's name and its value.
using Record = std::function<void(const std::string&, double)>;

/// What malloc has given out and not got back, its own headers included.
inline std::size_t bytes_allocated() {
  const struct mallinfo2 info = mallinfo2();
  return info.uordblks + info.hblkhd;
}

/// Bytes for each of `count` timers: its object, and its share of the queue, of the `allocated`
/// bytes that the queue asked malloc for, and of the pages that it has from the kernel.
template <class Queue>
double bytes_each(const Queue& queue, std::size_t allocated, std::uint32_t count) {
  const std::size_t all = sizeof(Queue) + allocated + queue.mapped_bytes();
  return Queue::kObjectBytes + static_cast<double>(all) / count;
}

}  // namespace detent::bench

// Which tick to fire at when a timer may be late by its slack: two opposite wishes, both pure.
//
//     wheel.schedule(timer, coalesced_tick(deadline, slack));   // few wake-ups: share ticks
//
//     ValleyMap valleys(bin_width);                             // an even load: avoid ticks
//     const Tick placed = valleys.place(deadline, slack, rng);
//     ...and when the timer fired, was cancelled or moved: valleys.remove(placed);
//
// The first picks the roundest number in the window, so that windows that overlap tend to pick the
// same one without knowing of each other: Linux's apply_slack (kernel/time/timer.c, 2.6.35 to 4.7).
// The second counts who fires when, looks at a few random ticks of the window and takes the least
// loaded. Few are enough: with d >= 2 choices the fullest bin is over the average by about
// ln ln n / ln d, with one by the root of the load (Azar, Broder, Karlin, Upfal 1994; Mitzenmacher
// 2001, "The power of two choices in randomized load balancing").
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "base/rng.h"
#include "detent/tick.h"

namespace detent::internal {

/// `tick` + `slack`, at most the last tick of all.
Tick end_of_window(Tick tick, Tick slack) noexcept;

/// The tick in [`tick`, `tick` + `slack`] that ends in the most zero bits; there is only one. O(1).
Tick coalesced_tick(Tick tick, Tick slack) noexcept;

/// How many timers are placed in each bin of ticks. Memory goes with the bins that are not empty,
/// 16 bytes each in an array that is an eighth to a half full, and is given back as they empty.
/// Thread-compatible. Running out of memory ends the process.
class ValleyMap {
 public:
  /// Bins of `bin_width` ticks; the first begins at tick 0. Requires: bin_width > 0.
  explicit ValleyMap(Tick bin_width);
  ValleyMap(const ValleyMap&) = delete;
  ValleyMap& operator=(const ValleyMap&) = delete;

  /// Counts a timer in. Returns: its place, in [`tick`, `tick` + `slack`]. Without slack there is
  /// no choice, but it counts. O(1), amortised.
  Tick place(Tick tick, Tick slack, Rng& rng) noexcept;

  /// Counts a timer out. Requires: `placed` is what `place` returned for it. O(1), amortised.
  void remove(Tick placed) noexcept;

  /// The timers in the bin of `tick`.
  std::uint64_t timers_at(Tick tick) const noexcept;

  /// How many bins are not empty.
  std::size_t bin_count() const noexcept { return bin_count_; }
  /// For tests: how many bins there is memory for.
  std::size_t capacity() const noexcept { return bins_.size(); }

 private:
  struct Bin {
    Tick number = 0;
    std::uint64_t timers = 0;  // 0: this place of the table is free
  };

  std::size_t home_of(Tick number) const noexcept;
  std::size_t find(Tick number) const noexcept;
  std::size_t after(std::size_t place) const noexcept { return (place + 1) & (bins_.size() - 1); }
  void close_gap(std::size_t gap) noexcept;
  void resize(std::size_t capacity);

  // A hash table with linear probing, of a power of two places.
  // Invariant: no place between the home of a bin and where it lies is free.
  Tick bin_width_;
  std::vector<Bin> bins_;
  std::size_t bin_count_ = 0;
};

}  // namespace detent::internal

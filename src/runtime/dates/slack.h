// Chooses the tick of a timer that may fire late by its slack. The two ways have opposite goals.
// Both are pure.
//
//     wheel.schedule(timer, coalesced_tick(deadline, slack));   // few wake-ups: share ticks
//
//     ValleyMap valleys(bin_width);                             // an even load: avoid ticks
//     const Tick placed = valleys.place(deadline, slack, rng);
//     ...and when the timer fired, was cancelled or moved: valleys.remove(placed);
//
// `coalesced_tick` picks the roundest number in the window, so overlapping windows tend to pick the
// same tick without knowing about each other. Linux used this method in apply_slack
// (kernel/time/timer.c, 2.6.35 to 4.7). `ValleyMap` counts the timers of each bin, looks at a few
// random ticks of the window, and takes the tick with the fewest timers. A few ticks are enough:
// with d >= 2 choices, the fullest bin exceeds the average by about ln ln n / ln d. With one
// choice, it exceeds the average by the square root of the load (Azar, Broder, Karlin, Upfal 1994;
// Mitzenmacher 2001, "The power of two choices in randomized load balancing").
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "base/rng.h"
#include "detent/tick.h"

namespace detent::internal {

/// `tick` + `slack`, or the last possible tick if the sum is larger.
Tick end_of_window(Tick tick, Tick slack) noexcept;

/// The tick in [`tick`, `tick` + `slack`] that ends in the most zero bits. Exactly one tick does.
/// O(1).
Tick coalesced_tick(Tick tick, Tick slack) noexcept;

/// The number of timers in each bin of ticks. Memory is in proportion to the number of non-empty
/// bins: 16 bytes for each place of an array that is between one eighth and one half full. The
/// array shrinks when bins become empty. Thread-compatible. If memory runs out, the process ends.
class ValleyMap {
 public:
  /// Bins of `bin_width` ticks; the first begins at tick 0. Requires: bin_width > 0.
  explicit ValleyMap(Tick bin_width);
  ValleyMap(const ValleyMap&) = delete;
  ValleyMap& operator=(const ValleyMap&) = delete;

  /// Adds a timer. Returns its tick, in [`tick`, `tick` + `slack`]. A timer without slack has no
  /// choice, but is counted. O(1), amortised.
  Tick place(Tick tick, Tick slack, Rng& rng) noexcept;

  /// Removes a timer. Requires: `place` returned `placed` for this timer. O(1), amortised.
  void remove(Tick placed) noexcept;

  /// The number of timers in the bin of `tick`.
  std::uint64_t timers_at(Tick tick) const noexcept;

  /// The number of bins that are not empty.
  std::size_t bin_count() const noexcept { return bin_count_; }
  /// For tests: the number of bins for which memory is allocated.
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

  // A hash table with linear probing. The number of places is a power of two. Invariant: no place
  // between the home of a bin and its actual place is free.
  Tick bin_width_;
  std::vector<Bin> bins_;
  std::size_t bin_count_ = 0;
};

}  // namespace detent::internal

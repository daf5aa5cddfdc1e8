#include "runtime/dates/slack.h"

#include <algorithm>
#include <bit>
#include <limits>
#include <utility>

#include "detent/check.h"

namespace detent::internal {

namespace {

constexpr Tick kLastTick = std::numeric_limits<Tick>::max();
constexpr int kChoices = 4;
constexpr std::size_t kLeastCapacity = 8;

/// A random tick in [`first`, `last`]. The distribution is uniform, except for a bias below 2^-64
/// of their number.
Tick any_tick(Tick first, Tick last, Rng& rng) noexcept {
  const Tick count = last - first + 1;
  return count == 0 ? rng.next() : first + rng.next() % count;
}

}  // namespace

Tick end_of_window(Tick tick, Tick slack) noexcept {
  return slack > kLastTick - tick ? kLastTick : tick + slack;
}

Tick coalesced_tick(Tick tick, Tick slack) noexcept {
  if (tick == 0) return 0;
  const Tick last = end_of_window(tick, slack);
  // The window contains a multiple of 2^k if `last` and `tick - 1` differ in bit k or a higher bit.
  const Tick below = std::bit_floor((tick - 1) ^ last) - 1;
  return last & ~below;
}

ValleyMap::ValleyMap(Tick bin_width) : bin_width_(bin_width), bins_(kLeastCapacity) {
  DETENT_CHECK(bin_width > 0);
}

Tick ValleyMap::place(Tick tick, Tick slack, Rng& rng) noexcept {
  const Tick last = end_of_window(tick, slack);
  Tick best = any_tick(tick, last, rng);
  std::uint64_t least = timers_at(best);
  for (int choice = 1; choice < kChoices && least > 0; ++choice) {
    const Tick other = any_tick(tick, last, rng);
    const std::uint64_t timers = timers_at(other);
    if (timers >= least) continue;
    best = other;
    least = timers;
  }
  Bin& bin = bins_[find(best / bin_width_)];
  bin.number = best / bin_width_;
  if (bin.timers++ == 0 && ++bin_count_ * 2 > bins_.size()) resize(bins_.size() * 2);
  return best;
}

void ValleyMap::remove(Tick placed) noexcept {
  const std::size_t place = find(placed / bin_width_);
  DETENT_CHECK(bins_[place].timers > 0);
  if (--bins_[place].timers > 0) return;
  --bin_count_;
  close_gap(place);
  if (bins_.size() > kLeastCapacity && bin_count_ * 8 < bins_.size()) resize(bins_.size() / 2);
}

std::uint64_t ValleyMap::timers_at(Tick tick) const noexcept {
  return bins_[find(tick / bin_width_)].timers;
}

/// Fibonacci hashing (Knuth, The Art of Computer Programming 3, 6.4). It scatters neighbouring
/// bins.
std::size_t ValleyMap::home_of(Tick number) const noexcept {
  const int bits = std::countr_zero(bins_.size());
  return static_cast<std::size_t>((number * 0x9E3779B97F4A7C15u) >> (64 - bits));
}

/// The place of the bin with that number. If the bin is empty, a free place.
std::size_t ValleyMap::find(Tick number) const noexcept {
  std::size_t place = home_of(number);
  while (bins_[place].timers > 0 && bins_[place].number != number) place = after(place);
  return place;
}

/// Moves bins back into a place that became free (Knuth's algorithm R in the same chapter). So the
/// table needs no marks for removed bins.
void ValleyMap::close_gap(std::size_t gap) noexcept {
  const std::size_t mask = bins_.size() - 1;
  for (std::size_t place = after(gap); bins_[place].timers > 0; place = after(place)) {
    const std::size_t from_home = (place - home_of(bins_[place].number)) & mask;
    if (from_home < ((place - gap) & mask)) continue;  // its home is after the gap
    std::swap(bins_[gap], bins_[place]);
    gap = place;
  }
}

void ValleyMap::resize(std::size_t capacity) {
  const std::vector<Bin> old = std::exchange(bins_, std::vector<Bin>(capacity));
  for (const Bin& bin : old) {
    if (bin.timers > 0) bins_[find(bin.number)] = bin;
  }
}

}  // namespace detent::internal

// Virtual time for event loops that read the clock themselves.
//
// libevent, libev, libuv and std::chrono call the C library's clock_gettime. This program defines
// its own clock_gettime, which the dynamic linker finds first. While a VirtualClock exists, it
// returns the tick of that clock, one millisecond per tick. So the peers run the same workloads as
// our queues, tick by tick, and the benchmark checks that they fire in time. With the real call, a
// peer would take about 20 ns more per reading.
#pragma once

#include "detent/tick.h"

namespace detent::bench {

/// Only one object at a time, on one thread. Its ticks are in the middle of a millisecond, so
/// rounding in a library cannot make a timer late or early.
class VirtualClock {
 public:
  /// The time of the clocks at tick 0, minus half a tick.
  static constexpr int kStartSeconds = 1'000;

  VirtualClock();
  ~VirtualClock();
  VirtualClock(const VirtualClock&) = delete;
  VirtualClock& operator=(const VirtualClock&) = delete;

  void set(Tick now);
  Tick now() const { return now_; }

  /// Milliseconds from now to `deadline`; 0 if it has passed.
  Tick delay_until(Tick deadline) const { return deadline > now_ ? deadline - now_ : 0; }

 private:
  Tick now_ = 0;
};

}  // namespace detent::bench

// Virtual time for event loops that read the clock themselves.
//
// libevent, libev, libuv and std::chrono ask the C library's clock_gettime. This program defines
// one of its own, which the dynamic linker finds first; while a VirtualClock exists it answers that
// clock's tick, a millisecond each. So the peers run the same workloads as our queues, tick by
// tick, and are checked to fire on time. What it hides: a real call costs them about 20 ns more.
#pragma once

#include "detent/tick.h"

namespace detent::bench {

/// One at a time, and one thread. Its ticks are whole milliseconds and a half, so that rounding in
/// a library cannot make a timer late or early.
class VirtualClock {
 public:
  /// What the clocks show at tick 0, less half a tick.
  static constexpr int kStartSeconds = 1'000;

  VirtualClock();
  ~VirtualClock();
  VirtualClock(const VirtualClock&) = delete;
  VirtualClock& operator=(const VirtualClock&) = delete;

  void set(Tick now);
  Tick now() const { return now_; }

  /// Milliseconds from now to `deadline`; 0 when it has passed.
  Tick delay_until(Tick deadline) const { return deadline > now_ ? deadline - now_ : 0; }

 private:
  Tick now_ = 0;
};

}  // namespace detent::bench

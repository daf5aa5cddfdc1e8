// Wheel: a timing wheel whose times are those of std::chrono. You convert no ticks.
//
//     struct Connection : detent::Timer { int socket; };
//
//     Connection connection;
//     detent::Wheel wheel;                              // std::chrono::steady_clock, 1 ms
//     wheel.schedule_after(connection, 30s);            // arm, or move
//     wheel.postpone_after(connection, 60s);            // there was traffic: later
//     wheel.run_ready({}, [](detent::Timer& timer) {    // fires the due timers
//       close(static_cast<Connection&>(timer).socket);
//     });
//
// It is a TimerWheel with its QueueDrive, so the functions are those of the drive. Another clock,
// another length of a tick and another queue are template parameters. It is header-only.
//
// Read next: detent/queue_drive.h. To move the time of a test by hand, use a QueueDrive and a
// ManualClock, or your own clock type.
#pragma once

#include <chrono>
#include <cstddef>
#include <utility>

#include "detent/queue_drive.h"
#include "detent/timer_wheel.h"

namespace detent {

namespace internal {

/// A base class that is made before the drive that uses its queue.
template <class Q>
struct DrivenQueue {
  Q queue;
};

}  // namespace internal

/// A queue, by default a TimerWheel, driven by `C`. A tick is one `Resolution`: a timer can be late
/// by less than this, and is never early. `Q` has a default constructor. Neither copyable nor
/// movable. Thread-compatible.
template <StdClock C = std::chrono::steady_clock, class Resolution = std::chrono::milliseconds,
          class Q = TimerWheel>
class Wheel : private internal::DrivenQueue<Q>, public QueueDrive<Q, C> {
 public:
  /// Makes an empty wheel. Reads the clock.
  Wheel() noexcept : QueueDrive<Q, C>(internal::DrivenQueue<Q>::queue, Resolution{1}) {}

  /// Returns the number of pending timers. O(1).
  std::size_t size() const noexcept { return internal::DrivenQueue<Q>::queue.size(); }
  /// Returns size() == 0.
  bool empty() const noexcept { return size() == 0; }
};

}  // namespace detent

// MemberTimer: a timer that is a member of an object, and knows this object.
//
// A type with one timer can derive from Timer. `static_cast<Session&>(timer)` then converts the
// timer back to its object. A plain member has no such cast: converting it to its object is
// undefined behaviour, even if it seems to work. Objects with several timers therefore use
// MemberTimer:
//
//     struct Connection {
//       detent::MemberTimer<Connection> read_timeout{*this};
//       detent::MemberTimer<Connection> write_timeout{*this};
//     };
//
//     detent::TimerWheel wheel;
//     Connection connection;
//     wheel.schedule(connection.read_timeout, 30'000);
//     wheel.schedule(connection.write_timeout, 10'000);
//     wheel.advance(10'000, [](detent::Timer& timer) noexcept {
//       Connection& owner = detent::MemberTimer<Connection>::owner_of(timer);
//       std::puts(&timer == &owner.read_timeout ? "reads nothing" : "writes nothing");
//     });
//
// Each MemberTimer costs one pointer more than a Timer: 24 bytes in the object instead of 16.
// examples/15_read_write_timeouts.cc is a complete program.
#pragma once

#include "detent/queues/timer_queue.h"
#include "detent/timer_wheel.h"

namespace detent {

/// A timer for a queue whose timer type is `Base`, with a reference to the object that contains it.
/// The contract of `Base` applies. It cannot be copied or moved, so its owner cannot be copied or
/// moved by default.
template <class Owner, QueueTimer Base = Timer>
class MemberTimer : public Base {
 public:
  /// `owner` is `*this` in the declaration of the member. Requires: the owner outlives the timer,
  /// which is always true for a member.
  explicit MemberTimer(Owner& owner) noexcept : owner_(owner) {}

  /// Returns the object that contains the timer.
  Owner& owner() const noexcept { return owner_; }

  /// Returns the owner of a timer that a callback received. Compare addresses to find out which
  /// timer of the owner it is. Requires: `timer` is a MemberTimer<Owner, Base>. Therefore use one
  /// timer type per queue.
  static Owner& owner_of(Base& timer) noexcept { return static_cast<MemberTimer&>(timer).owner_; }

 private:
  Owner& owner_;
};

}  // namespace detent

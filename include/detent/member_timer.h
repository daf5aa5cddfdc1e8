// MemberTimer: a timer that is a member of its owner, and knows it.
//
// A type that has one timer can be a Timer itself: `static_cast<Session&>(timer)` then leads from
// the timer back to the object. No cast leads from a member to the object it is in; one that tries
// is undefined behaviour, and may seem to work. So an object with several timers has MemberTimers:
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
// It costs a pointer a timer: 24 bytes in the object instead of 16.
// examples/15_read_write_timeouts.cc is a whole program.
#pragma once

#include "detent/queues/timer_queue.h"
#include "detent/timer_wheel.h"

namespace detent {

/// A timer of the queue whose timer is `Base`, and the object that it is a part of. What `Base`
/// says holds here; neither copyable nor movable, and so neither is its owner.
template <class Owner, QueueTimer Base = Timer>
class MemberTimer : public Base {
 public:
  /// `owner` is `*this` where the member is declared. It must outlive the timer, as an object does
  /// with its members.
  explicit MemberTimer(Owner& owner) noexcept : owner_(owner) {}

  /// Returns: the object that it is a part of.
  Owner& owner() const noexcept { return owner_; }

  /// Returns: the owner of a timer that a callback was called with. To tell which of the owner's
  /// timers it is, compare addresses. Requires: `timer` is a MemberTimer<Owner, Base>. So let all
  /// timers of a queue be of one type.
  static Owner& owner_of(Base& timer) noexcept { return static_cast<MemberTimer&>(timer).owner_; }

 private:
  Owner& owner_;
};

}  // namespace detent

// HashedWheel: one ring of slots for timers of any deadline, many turns sharing a slot.
//
// The idea. Time goes round a ring of lists like the hand of a clock, and a timer is put into the
// slot at which the hand will be when it is due, in whichever turn. A slot is a bucket of a hash
// table whose hash is the deadline modulo the ring. When the hand comes to a slot, it fires what
// is due in this turn and leaves the rest. Here each slot also knows the earliest turn in it, so
// the hand passes it untouched until then.
//
//     struct Session : detent::HashedWheel::Timer { int socket; };
//
//     auto wheel = detent::HashedWheel::make({.slot_count = 1'024});
//     Session session;
//     wheel->schedule(session, wheel->now() + 30'000);       // the 30th turn from now
//     wheel->advance(30'000, [](detent::HashedWheel::Timer& timer) noexcept {
//       close(static_cast<Session&>(timer).socket);
//     });
//
// With a slot_width of w ticks a timer fires at the first multiple of w that is not before its
// deadline (the last tick of all counts as one).
//
// Cost, with m timers in a slot on average (pending timers / slots):
//
//     schedule, cancel    O(1), no allocation
//     next_wakeup         O(slots); exact, unless timers were cancelled or moved: each slot whose
//                         earliest timer was may cause one wake-up too early, not more
//     advance             O(m) for each slot that something is due in, and O(slots passed), at most
//                         one turn of them. A jump of more than a turn looks at every timer of
//                         those slots once, not once a turn, and moves what is due at most 16 times
//                         more. So is a timer moved that was due already when it was scheduled
//     memory              32 bytes a timer, inside the user's object; 24 a slot, 4 KB a wheel
//     equal deadlines     in an order that is unspecified but the same in every run
//
// Scheme 6 of Varghese and Lauck, "Hashed and hierarchical timing wheels" (SOSP 1987, ToN 1997).
// Netty's HashedWheelTimer counts turns ("rounds") in each timer; here a timer keeps its deadline.
// Read next: internal/ring_slots.h (the ring), timer_wheel.h (levels instead of turns).
#pragma once

#include <limits>
#include <optional>
#include <string>
#include <utility>

#include "detent/internal/ring_slots.h"
#include "detent/internal/slot_store.h"
#include "detent/internal/store_queue.h"
#include "detent/queues/timer_queue.h"
#include "detent/tick.h"

namespace detent {

/// A wheel of many turns. Thread-compatible. internal/store_queue.h documents the operations; every
/// deadline is accepted.
class HashedWheel : public internal::StoreQueue<internal::SlotStore<internal::RingSlots>> {
  struct Passkey {};

 public:
  /// slot_count, slot_width = 1, now = 0.
  using Options = internal::RingOptions;

  /// Returns: a wheel; empty when a measure is zero or too big, and `error`, if given, then says
  /// which. Allocates the slots; throws std::bad_alloc when there is no memory for them.
  static std::optional<HashedWheel> make(const Options& options, std::string* error = nullptr) {
    if (const auto fault = options.fault()) {
      if (error != nullptr) *error = *fault;
      return std::nullopt;
    }
    return std::optional<HashedWheel>(std::in_place, Passkey{}, options);
  }

  /// For make().
  HashedWheel(Passkey, const Options& options)
      : StoreQueue(options.now, internal::SlotWidth(options.slot_width),
                   std::numeric_limits<Tick>::max(), options.slot_count) {}
};

static_assert(TimerQueue<HashedWheel>);

}  // namespace detent

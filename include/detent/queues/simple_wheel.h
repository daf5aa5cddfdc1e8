// SimpleWheel: one ring of slots, for timers that are all due within one turn.
//
// The idea. Time goes round a ring of lists like the hand of a clock. A timer is put into the slot
// at which the hand will be when it is due, and nothing is ever sorted or compared. What lies
// beyond one turn has no slot, so it is refused: put into the slot of the same name it would fire
// turns too early. A bit a slot tells which hold timers, so empty ones are skipped 64 at a time.
//
//     struct Session : detent::SimpleWheel::Timer { int socket; };
//
//     auto wheel = detent::SimpleWheel::make({.slot_count = 60'000});  // a minute of milliseconds
//     Session session;
//     wheel->schedule(session, wheel->now() + 30'000);                 // true
//     wheel->schedule(session, wheel->now() + 60'001);                 // false: still at + 30'000
//     wheel->advance(30'000, [](detent::SimpleWheel::Timer& timer) noexcept {
//       close(static_cast<Session&>(timer).socket);
//     });
//
// With a slot_width of w ticks a turn is w times as long, and a timer fires at the first multiple
// of w that is not before its deadline (the last tick of all counts as one).
//
// Cost:
//
//     schedule, cancel    O(1), no allocation
//     next_wakeup         exact, unless timers were cancelled or moved; O(slots / 64), to find the
//                         next slot that is not empty
//     advance             O(1) a timer fired, and O(slots / 64) besides; a timer that was due
//                         already is moved at most 16 times more, and so are those that a jump of
//                         more than a turn passes
//     memory              32 bytes a timer, inside the user's object; 24 a slot, 4 KB a wheel
//     equal deadlines     in an order that is unspecified but the same in every run
//
// Scheme 4 of Varghese and Lauck, "Hashed and hierarchical timing wheels" (SOSP 1987, ToN 1997).
// Read next: internal/ring_slots.h (the ring), hashed_wheel.h (the same without the limit).
#pragma once

#include <optional>
#include <string>
#include <utility>

#include "detent/internal/ring_slots.h"
#include "detent/internal/slot_store.h"
#include "detent/internal/store_queue.h"
#include "detent/queues/timer_queue.h"
#include "detent/tick.h"

namespace detent {

/// A wheel of one turn. Thread-compatible. internal/store_queue.h documents the operations:
/// `schedule` and `postpone` refuse a deadline that is more than span() after now().
class SimpleWheel : public internal::StoreQueue<internal::SlotStore<internal::RingSlots>> {
  struct Passkey {};

 public:
  /// slot_count, slot_width = 1, now = 0.
  using Options = internal::RingOptions;

  /// Returns: a wheel; empty when a measure is zero or too big, and `error`, if given, then says
  /// which. Allocates the slots; throws std::bad_alloc when there is no memory for them.
  static std::optional<SimpleWheel> make(const Options& options, std::string* error = nullptr) {
    if (const auto fault = options.fault()) {
      if (error != nullptr) *error = *fault;
      return std::nullopt;
    }
    return std::optional<SimpleWheel>(std::in_place, Passkey{}, options);
  }

  /// For make().
  SimpleWheel(Passkey, const Options& options)
      : StoreQueue(options.now, internal::SlotWidth(options.slot_width), options.turn(),
                   options.slot_count) {}

  /// Returns: the longest delay that is accepted, slot_width × slot_count ticks.
  Tick span() const noexcept { return store().span(); }
};

static_assert(TimerQueue<SimpleWheel>);

}  // namespace detent

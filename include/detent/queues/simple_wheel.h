// SimpleWheel: one ring of slots, for timers that are due within one round.
//
// The idea. Time moves around a ring of lists like the hand of a clock. Each timer is put into the
// slot where the hand will be at its deadline. Timers are not sorted or compared. A deadline beyond
// one round is refused: in its slot the timer would fire one or more rounds too early. One bit per
// slot says whether the slot holds timers, so empty slots are skipped 64 at a time.
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
// With a slot_width of w ticks, a round is w times as long. A timer fires at the first multiple of
// w that is not before its deadline. (The last possible tick counts as a multiple.)
//
// Cost:
//
//     schedule, cancel    O(1), no allocation
//     next_wakeup         O(slots / 64), to find the next slot that is not empty. Exact if slots
//                         are one tick wide. A wider slot can hold timers of two rounds; if the
//                         earlier timer is cancelled or moved, the slot may cause one wake-up that
//                         is too early
//     advance             O(1) per timer fired, and O(slots / 64). A timer that was already due
//                         when it was scheduled moves at most 16 times more, as does a timer that a
//                         jump of more than a round passes
//     memory              32 bytes per timer, inside the caller's object; 24 bytes per slot and 4
//                         KB per wheel
//     equal deadlines     in an unspecified order, which is the same in every run
//
// Source: scheme 4 of Varghese and Lauck, "Hashed and hierarchical timing wheels" (SOSP 1987, ToN
// 1997). Read next: internal/ring_slots.h (the ring), hashed_wheel.h (the same ring without the
// limit).
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

/// A timing wheel of one round. Thread-compatible. internal/store_queue.h documents the operations.
/// `schedule` and `postpone` refuse a deadline that is more than span() after now().
class SimpleWheel : public internal::StoreQueue<internal::SlotStore<internal::RingSlots>> {
  struct Passkey {};

 public:
  /// slot_count, slot_width = 1, now = 0.
  using Options = internal::RingOptions;

  /// Makes a wheel. Returns std::nullopt if slot_count or slot_width is zero or too large;
  /// `*error`, if given, then says which. Allocates the slots, O(slot_count). Throws std::bad_alloc
  /// if there is no memory for them.
  static std::optional<SimpleWheel> make(const Options& options, std::string* error = nullptr) {
    if (const auto fault = options.fault()) {
      if (error != nullptr) *error = *fault;
      return std::nullopt;
    }
    return std::optional<SimpleWheel>(std::in_place, Passkey{}, options);
  }

  /// Only make() can call this.
  SimpleWheel(Passkey, const Options& options)
      : StoreQueue(options.now, internal::SlotWidth(options.slot_width), options.round(),
                   options.slot_count) {}

  /// Returns the longest accepted delay: slot_width × slot_count ticks.
  Tick span() const noexcept { return store().span(); }
};

static_assert(TimerQueue<SimpleWheel>);

}  // namespace detent

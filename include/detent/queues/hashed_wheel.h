// HashedWheel: one ring of slots for any deadline. Timers of many rounds share a slot.
//
// The idea. Time moves around a ring of lists like the hand of a clock. Each timer is put into the
// slot where the hand will be at its deadline, in this round or a later round. The ring is thus a
// hash table whose hash is the deadline modulo the size of the ring. When the hand reaches a slot,
// it fires the timers that are due in this round and leaves the other timers. In this
// implementation each timer keeps its deadline, and each slot knows its earliest deadline. The hand
// skips a slot until this deadline.
//
//     struct Session : detent::HashedWheel::Timer { int socket; };
//
//     auto wheel = detent::HashedWheel::make({.slot_count = 1'024});
//     Session session;
//     wheel->schedule(session, wheel->now() + 30'000);       // the 30th round from now
//     wheel->advance(30'000, [](detent::HashedWheel::Timer& timer) noexcept {
//       close(static_cast<Session&>(timer).socket);
//     });
//
// With a slot_width of w ticks, a timer fires at the first multiple of w that is not before its
// deadline. (The last possible tick counts as a multiple.)
//
// Cost, with m timers per slot on average (pending timers / slots):
//
//     schedule, cancel    O(1), no allocation
//     next_wakeup         O(slots). Exact until a timer is cancelled or moved. If it was the
//                         earliest timer of its slot, this slot may cause one wake-up that is too
//                         early
//     advance             O(m) for each slot with a due timer, and O(slots passed), at most one
//                         round. A jump of more than a round looks at each timer of these slots
//                         once, not once per round, and moves each due timer at most 16 times more.
//                         A timer that was already due when it was scheduled also moves at most 16
//                         times
//     memory              32 bytes per timer, inside the caller's object; 24 bytes per slot and 4
//                         KB per wheel
//     equal deadlines     in an unspecified order, which is the same in every run
//
// Source: scheme 6 of Varghese and Lauck, "Hashed and hierarchical timing wheels" (SOSP 1987, ToN
// 1997). Netty's HashedWheelTimer counts the remaining rounds in each timer; in Detent a
// timer keeps its deadline. Read next: internal/ring_slots.h (the ring), timer_wheel.h (levels
// instead of rounds).
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

/// A timing wheel with one ring for any deadline. Thread-compatible. internal/store_queue.h
/// documents the operations. Every deadline is accepted.
class HashedWheel : public internal::StoreQueue<internal::SlotStore<internal::RingSlots>> {
  struct Passkey {};

 public:
  /// slot_count, slot_width = 1, now = 0.
  using Options = internal::RingOptions;

  /// Makes a wheel. Returns std::nullopt if slot_count or slot_width is zero or too large;
  /// `*error`, if given, then says which. Allocates the slots, O(slot_count). Throws std::bad_alloc
  /// if there is no memory for them.
  static std::optional<HashedWheel> make(const Options& options, std::string* error = nullptr) {
    if (const auto fault = options.fault()) {
      if (error != nullptr) *error = *fault;
      return std::nullopt;
    }
    return std::optional<HashedWheel>(std::in_place, Passkey{}, options);
  }

  /// Only make() can call this.
  HashedWheel(Passkey, const Options& options)
      : StoreQueue(options.now, internal::SlotWidth(options.slot_width),
                   std::numeric_limits<Tick>::max(), options.slot_count) {}
};

static_assert(TimerQueue<HashedWheel>);

}  // namespace detent

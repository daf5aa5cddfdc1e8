// HierarchicalWheel: levels of slots of any size, like the hands of a clock: seconds, minutes,
// hours.
//
// The idea. One ring of slots is fast but short. So a coarser ring stands behind it, whose every
// slot covers a whole turn of the finer one, and so on. A timer that is due soon goes into the
// finest ring; one that is too far *overflows* up, to the first ring that reaches it. When time
// comes to a coarse slot, its timers *cascade* down to finer ones, so each fires at its exact tick.
//
//     struct Session : detent::HierarchicalWheel::Timer { int socket; };
//
//     auto wheel = detent::HierarchicalWheel::make({.level_sizes = {60, 60, 24}});
//     Session session;
//     wheel->schedule(session, wheel->now() + 3'725);     // true: an hour, two minutes, 5 seconds
//     wheel->schedule(session, wheel->now() + 86'401);    // false: more than a day
//     wheel->advance(3'725, [](detent::HierarchicalWheel::Timer& timer) noexcept {
//       close(static_cast<Session&>(timer).socket);
//     });
//
// {60, 60, 24, 30, 12, 100} goes on to months of 30 days, years of 12 of them, and a century of
// those. Where no span is known, {.slots_per_level = 20} makes levels of 20 slots when a timer
// needs them, up to the last of all ticks. With a slot_width of w ticks a timer fires at the first
// multiple of w that is not before its deadline (the last tick of all counts as one).
//
// Two drives find the next slot; both fire the same timers at the same ticks. `tickless` keeps the
// non-empty slots in a heap: time jumps from one to the next, and nothing wakes in between.
// `tick_by_tick` moves the hands slot by slot, as the papers do it: simple, but it wakes at every
// slot width while any timer is pending, and a long jump costs a step for each, which no limit
// bounds.
//
// Cost, with l levels and s slots:
//
//     schedule, cancel    O(l) to find the level. Tickless, O(log s) besides for the first timer
//                         into a slot and the last out of it
//     next_wakeup         O(1). Tickless, the start of the next non-empty slot: from wake-up to
//                         wake-up takes at most l to reach a timer's deadline
//     advance             tickless, O(log s) a slot that is not empty; tick by tick, O(1) a slot
//                         width passed. A timer is moved at most l - 1 times, or 16 times when it
//                         was due already when it was scheduled
//     memory              32 bytes a timer, inside the user's object; 32 a slot, and tickless 24
//                         more for each that is not empty; 4 KB a wheel
//     equal deadlines     in an order that is unspecified but the same in every run
//
// Scheme 7 of Varghese and Lauck, "Hashed and hierarchical timing wheels" (SOSP 1987, ToN 1997).
// Levels on demand and the delay queue of slots: Apache Kafka, "Purgatory redesign" (2015). Read
// next: internal/slot_levels.h (the levels), timer_wheel.h (the one to use: it needs no measures).
#pragma once

#include <concepts>
#include <cstddef>
#include <optional>
#include <string>

#include "detent/internal/link_list.h"
#include "detent/internal/slot_levels.h"
#include "detent/internal/slot_store.h"
#include "detent/internal/store_queue.h"
#include "detent/queues/timer_queue.h"
#include "detent/tick.h"

namespace detent {

/// A wheel of levels. Thread-compatible. internal/store_queue.h documents the operations:
/// `schedule` and `postpone` refuse a deadline that is more than span() after now(). A wheel whose
/// levels are made on demand accepts every deadline, keeps the levels it has made, and ends the
/// process when there is no memory for one.
class HierarchicalWheel : public internal::StoreQueue<internal::SlotStore<internal::SlotLevels>> {
  struct Passkey {};

 public:
  using Drive = internal::WheelDrive;
  /// slot_width = 1, level_sizes or slots_per_level, drive = Drive::tickless, now = 0.
  using Options = internal::LevelOptions;

  /// Returns: a wheel; empty when a measure is zero, one or too big, and `error`, if given, then
  /// says which. Allocates the slots; throws std::bad_alloc when there is no memory for them.
  static std::optional<HierarchicalWheel> make(const Options& options,
                                               std::string* error = nullptr) {
    if (const auto fault = options.fault()) {
      if (error != nullptr) *error = *fault;
      return std::nullopt;
    }
    return std::optional<HierarchicalWheel>(std::in_place, Passkey{}, options);
  }

  /// For make().
  HierarchicalWheel(Passkey, const Options& options)
      : StoreQueue(options.now, internal::SlotWidth(options.slot_width), *options.span(), options) {
  }

  /// Returns: the longest delay that is accepted: slot_width × every level size; all 64 bits when
  /// levels are made on demand.
  Tick span() const noexcept { return store().span(); }

  // ---- What a picture of it shows.

  /// A slot of a level.
  struct Slot {
    std::size_t level;  ///< 0 is the finest
    std::size_t index;  ///< on the level's ring
    Tick start;         ///< the tick at which it fires, or at which it cascades
  };

  /// Returns: how many levels there are by now.
  std::size_t level_count() const noexcept { return levels().level_count(); }
  /// Returns: how many slots the ring of `level` has: its size, and on the last level one more when
  /// slots are wider than a tick. Requires: level < level_count().
  std::size_t slot_count(std::size_t level) const noexcept { return levels().slot_count(level); }
  /// Returns: the index of the slot that now() is in. Requires: level < level_count().
  std::size_t hand(std::size_t level) const noexcept { return levels().hand(level); }

  /// Calls visit(const Slot&, std::size_t timer_count) for every slot that is not empty, level by
  /// level. O(slots + timers).
  template <std::invocable<const Slot&, std::size_t> Visit>
  void for_each_slot(Visit&& visit) const {
    levels().for_each_slot([&](const auto& view, const internal::LinkList& links) {
      std::size_t timer_count = 0;
      internal::for_each_link(links, [&timer_count](const internal::Link&) { ++timer_count; });
      visit(seen_from_outside(view), timer_count);
    });
  }

  /// Calls visit(const Slot&, const Timer&) for every timer that is in a slot; those that were due
  /// already when they were scheduled are in none. O(slots + timers).
  template <std::invocable<const Slot&, const Timer&> Visit>
  void for_each_timer(Visit&& visit) const {
    levels().for_each_slot([&](const auto& view, const internal::LinkList& links) {
      internal::for_each_link(links, [&](const internal::Link& link) {
        visit(seen_from_outside(view), store().timer_of(link));
      });
    });
  }

 private:
  const internal::SlotLevels& levels() const noexcept { return store().slots(); }

  Slot seen_from_outside(const internal::SlotLevels::SlotView& view) const noexcept {
    return {view.level, view.index, store().width().due_at(view.start)};
  }
};

static_assert(TimerQueue<HierarchicalWheel>);

}  // namespace detent

// HierarchicalWheel: levels of slots with sizes of your choice, like the hands of a clock for
// seconds, minutes and hours.
//
// The idea. One ring of slots is fast but short. A coarser ring behind it extends it: each slot of
// the coarser ring covers a whole round of the finer ring, and so on. A timer that is due soon goes
// into the finest ring. A timer that is too far away *overflows* to the first ring that reaches its
// deadline. When time reaches a coarse slot, the timers of that slot *cascade* to finer slots. Each
// timer thus fires at its exact tick.
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
// {60, 60, 24, 30, 12, 100} adds months of 30 days, years of 12 such months, and a century of such
// years. If the span is not known, {.slots_per_level = 20} makes levels of 20 slots when a timer
// needs them, up to the last possible tick. With a slot_width of w ticks, a timer fires at the
// first multiple of w that is not before its deadline. (The last possible tick counts as a
// multiple.)
//
// Two drives find the next slot. Both fire the same timers at the same ticks. `tickless` keeps the
// slots that are not empty in a heap. Time jumps from one such slot to the next, without wake-ups
// in between. `tick_by_tick` moves the hands slot by slot, as in the papers. It is simple, but it
// wakes at every slot width while a timer is pending. A long jump costs one step per slot width,
// and `limit` does not bound these steps.
//
// Cost, with l levels and s slots:
//
//     schedule, cancel    O(l) to find the level. Tickless adds O(log s) when a slot gets its first
//                         timer or loses its last timer
//     next_wakeup         O(1). Tickless: the start of the next slot that is not empty; it may be
//                         early, and a timer's deadline is reached after at most l wake-ups. Tick
//                         by tick: the next slot width
//     advance             tickless: O(log s) per slot that is not empty; tick by tick: O(1) per
//                         slot width passed. A timer moves at most l - 1 times, or 16 times if it
//                         was already due when it was scheduled
//     memory              32 bytes per timer, inside the caller's object; 32 bytes per slot, 24
//                         more per slot that is not empty if tickless, and 4 KB per wheel
//     equal deadlines     in an unspecified order, which is the same in every run
//
// Source: scheme 7 of Varghese and Lauck, "Hashed and hierarchical timing wheels" (SOSP 1987, ToN
// 1997). Levels on demand and the delay queue of slots are from Apache Kafka, "Purgatory redesign"
// (2015). Read next: internal/slot_levels.h (the levels), timer_wheel.h (the wheel to use if you do
// not want to choose sizes).
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

/// A timing wheel with levels of configurable size. Thread-compatible. internal/store_queue.h
/// documents the operations. `schedule` and `postpone` refuse a deadline that is more than span()
/// after now(). A wheel with levels on demand accepts every deadline and keeps all levels that it
/// has made. If there is no memory for a level, the process ends.
class HierarchicalWheel : public internal::StoreQueue<internal::SlotStore<internal::SlotLevels>> {
  struct Passkey {};

 public:
  /// The ways to find the next slot: tickless or tick_by_tick.
  using Drive = internal::WheelDrive;
  /// slot_width = 1, level_sizes or slots_per_level, drive = Drive::tickless, now = 0.
  using Options = internal::LevelOptions;

  /// Makes a wheel. Returns std::nullopt if a size is zero, one or too large; `*error`, if given,
  /// then says which. Allocates the slots, O(slots). Throws std::bad_alloc if there is no memory
  /// for them.
  static std::optional<HierarchicalWheel> make(const Options& options,
                                               std::string* error = nullptr) {
    if (const auto fault = options.fault()) {
      if (error != nullptr) *error = *fault;
      return std::nullopt;
    }
    return std::optional<HierarchicalWheel>(std::in_place, Passkey{}, options);
  }

  /// Only make() can call this.
  HierarchicalWheel(Passkey, const Options& options)
      : StoreQueue(options.now, internal::SlotWidth(options.slot_width), *options.span(), options) {
  }

  /// Returns the longest accepted delay in ticks: slot_width × every level size. With levels on
  /// demand it is the largest 64-bit number.
  Tick span() const noexcept { return store().span(); }

  // ---- For drawings of the wheel.

  /// A slot of a level.
  struct Slot {
    std::size_t level;  ///< 0 is the finest
    std::size_t index;  ///< position on the level's ring
    Tick start;         ///< the tick at which the slot fires or cascades
  };

  /// Returns the current number of levels.
  std::size_t level_count() const noexcept { return levels().level_count(); }
  /// Returns the number of slots in the ring of `level`: the size of the level. The last level has
  /// one slot more if slots are wider than a tick. Requires: level < level_count().
  std::size_t slot_count(std::size_t level) const noexcept { return levels().slot_count(level); }
  /// Returns the index of the slot that contains now(). Requires: level < level_count().
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

  /// Calls visit(const Slot&, const Timer&) for every timer in a slot. A timer that was already due
  /// when it was scheduled is in no slot. O(slots + timers).
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

// What keeps the timers of a queue made of slots: lists of timers that are due at the same tick, or
// soon after one another.
//
//     schedule ──► waiting ──► admitted ──► place ──► sorted (overdue) ──► on_fire
//          └────────► slots ──┬─────────────►┘                                │
//                             └── a slot of one number ──────────────────────►┘
//
// Time is cut into spans of slot_width ticks, numbered from 0. Number k is due at tick
// k × slot_width, so a deadline belongs to the first number that is not before it. `Slots` knows
// numbers only: which slot one belongs to, and which slot comes next (slot_levels.h, ring_slots.h).
// This is the rest: what waits for the next pass, what was due before a pass began or is passed by
// a long jump, and the batch in hand. Read first: queue_passes.h (who calls this).
#pragma once

#include <algorithm>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <utility>
#include <vector>

#include "detent/check.h"
#include "detent/internal/link_levels.h"
#include "detent/internal/link_list.h"
#include "detent/internal/linked_timer.h"
#include "detent/internal/queue_passes.h"
#include "detent/tick.h"

namespace detent::internal {

/// Counts slot widths since tick 0.
using SlotNumber = std::uint64_t;

/// How ticks are numbered. The last number of all may be due before its multiple of the width, at
/// the last tick, so that no deadline is without one. A value.
class SlotWidth {
 public:
  /// Requires: ticks > 0.
  explicit constexpr SlotWidth(Tick ticks) noexcept : ticks_(ticks) {}

  constexpr Tick ticks() const noexcept { return ticks_; }

  /// The first number that is due at or after `deadline`.
  constexpr SlotNumber number_of(Tick deadline) const noexcept {
    if (ticks_ == 1) return deadline;
    return deadline / ticks_ + (deadline % ticks_ == 0 ? 0 : 1);
  }
  /// The tick at which `number` is due.
  constexpr Tick due_at(SlotNumber number) const noexcept {
    return number > kLastTick / ticks_ ? kLastTick : number * ticks_;
  }
  /// The last number that is due at or before `tick`.
  constexpr SlotNumber last_number(Tick tick) const noexcept {
    return tick == kLastTick ? number_of(tick) : tick / ticks_;
  }

 private:
  static constexpr Tick kLastTick = std::numeric_limits<Tick>::max();

  Tick ticks_;
};

/// What a SlotStore keeps its future timers in. Its slots hold numbers above reached().
///
///   reached(), set_reached(n)   set_reached: every number held is above n, or nothing is held
///   insert(link, n)             puts a link into the slot of n, which is above reached()
///   note_emptied(sentinel)      unlinking left that list empty; it need not be a slot's
///   nothing_within(n)           whether no batch starts at or before n
///   next_start()                the number at which the next batch starts, or an earlier one
///   seek(n)                     whether a batch starts at or before n; may move reached() up to it
///   take(n, into)               moves that batch to `into`: its start, and what for. Batches that
///                               start at or before n may be taken as one, to be placed. Called
///                               only after seek(n) said yes
///   for_each(visit)             calls visit(Link&) for every link, in no order
///   check_invariants(number_of) number_of(link) tells a link's number
template <class S>
concept TimerSlots = requires(S& slots, const S& unchanged, Link& link, LinkList& list,
                              SlotNumber number) {
  { unchanged.reached() } -> std::same_as<SlotNumber>;
  { unchanged.nothing_within(number) } -> std::same_as<bool>;
  { unchanged.next_start() } -> std::same_as<std::optional<SlotNumber>>;
  { slots.seek(number) } -> std::same_as<bool>;
  { slots.take(number, list).start } -> std::convertible_to<SlotNumber>;
  { slots.take(number, list).batch } -> std::convertible_to<Batch>;
  slots.set_reached(number);
  slots.insert(link, number);
  slots.note_emptied(&list.sentinel());
  unchanged.for_each([](Link&) {});
  unchanged.check_invariants([](const Link&) { return SlotNumber{}; });
};

/// Returns: which of `slots` has the list of `sentinel` as its first member; slots.size() or more
/// when none has.
template <class Slot>
std::size_t index_of_list(const std::vector<Slot>& slots, const Link* sentinel) noexcept {
  // Integers, because comparing pointers into different arrays with < has no meaning in C++.
  const auto offset =
      reinterpret_cast<std::uintptr_t>(sentinel) - reinterpret_cast<std::uintptr_t>(slots.data());
  return offset / sizeof(Slot);
}

/// A PassStore of slots. Owns no timer. Not movable. Thread-compatible. Every operation is O(1)
/// besides what it hands out and what the slots cost.
///
/// Invariants:
///  1. What the slots hold has numbers above reached(), each in its slot.
///  2. Outside a pass sorted_, the batch and what is admitted are empty, and reached() is the last
///     number that is due at or before base().
template <class Slots>
class SlotStore {
 public:
  using Timer = LinkedTimer<SlotStore>;
  /// `deadline` is when the timer is due: its own deadline, rounded up to a slot.
  struct Entry {
    Tick deadline;
    Timer* timer;
  };

  /// `span`: the longest delay that is accepted. The slots are made of `for_slots`.
  template <class... Arguments>
  SlotStore(Tick now, SlotWidth width, Tick span, Arguments&&... for_slots)
      : width_(width), span_(span), slots_(std::forward<Arguments>(for_slots)...), base_(now) {
    static_assert(TimerSlots<Slots>);
    slots_.set_reached(width_.last_number(now));
  }
  /// Cancels every timer. O(timers + slots).
  ~SlotStore() {
    for_each([](Timer& timer) { timer.queue_ = nullptr; });
  }
  SlotStore(const SlotStore&) = delete;
  SlotStore& operator=(const SlotStore&) = delete;

  const Slots& slots() const noexcept { return slots_; }
  SlotWidth width() const noexcept { return width_; }
  /// The timer whose link this is, for what walks the slots.
  static const Timer& timer_of(const Link& link) noexcept { return Timer::of(link); }

  // ---- For the queue; QueueStore says what each does.

  Tick span() const noexcept { return span_; }
  std::size_t size() const noexcept { return size_; }
  bool nothing_waits() const noexcept { return waiting_.empty(); }

  bool accepts(Tick now, Tick deadline) const noexcept {
    return deadline <= now || deadline - now <= span_;
  }

  void schedule(Timer& timer, Tick deadline, Tick pass_end) noexcept {
    if (timer.queue_ != nullptr) {
      DETENT_CHECK(timer.queue_ == this);
      take_out(timer);
    } else {
      timer.queue_ = this;
      ++size_;
    }
    timer.deadline_ = deadline;
    const SlotNumber number = width_.number_of(deadline);
    if (width_.due_at(number) > pass_end) {
      slots_.insert(timer.link_, number);
    } else {
      waiting_.push_back(timer.link_);
    }
  }

  bool cancel(Timer& timer) noexcept {
    if (timer.queue_ == nullptr) return false;
    DETENT_CHECK(timer.queue_ == this);
    take_out(timer);
    timer.queue_ = nullptr;
    --size_;
    return true;
  }

  Tick next_wakeup() const noexcept { return *next_start(); }

  void check_invariants() const noexcept {
    sorted_.check_invariants();
    slots_.check_invariants([this](const Link& link) { return number_of(Timer::of(link)); });
    std::size_t count = 0;
    for_each([this, &count](const Timer& timer) {
      DETENT_CHECK(timer.queue_ == this);
      ++count;
    });
    DETENT_CHECK(count == size_);
  }
  void check_no_pass() const noexcept {
    DETENT_CHECK(sorted_.empty() && batch_list_.empty() && admitted_.empty());
    DETENT_CHECK(slots_.reached() == width_.last_number(base_));
  }

  // ---- For QueuePasses; PassStore says what each does.

  Tick base() const noexcept { return base_; }
  void set_base(Tick base) noexcept {
    base_ = base;
    slots_.set_reached(width_.last_number(base));
  }

  void admit() noexcept { admitted_.append(waiting_); }
  void begin_pass() noexcept {
    sorted_.reset();
    batch_list_.append(admitted_);
    batch_ = Batch::to_place;
  }

  Batch batch() const noexcept { return batch_; }
  bool batch_empty() const noexcept { return batch_list_.empty(); }

  template <class Visit>
  std::size_t drain(std::size_t limit, Visit&& visit) {
    std::size_t count = 0;
    for (; count < limit && !batch_empty(); ++count) {
      Timer& timer = Timer::of(batch_list_.pop_front());
      visit(Entry{due_at(timer), &timer});
    }
    return count;
  }

  std::size_t place_batch(std::size_t limit) {
    return drain(limit, [this](const Entry& entry) { place(entry); });
  }

  void place(const Entry& entry) noexcept {
    const SlotNumber number = number_of(*entry.timer);
    if (number > slots_.reached()) {
      slots_.insert(entry.timer->link_, number);
    } else {
      sorted_.insert(entry.timer->link_, entry.deadline);
    }
  }

  Timer& release(const Entry& entry) noexcept {
    --size_;
    entry.timer->queue_ = nullptr;
    return *entry.timer;
  }

  std::optional<Tick> next_start() const noexcept {
    // What is sorted coarsely may start before the base, but hold what is due at it.
    if (!sorted_.empty()) return std::max(sorted_.next_start(), base_);
    const std::optional<SlotNumber> number = slots_.next_start();
    return number ? std::optional(width_.due_at(*number)) : std::nullopt;
  }

  bool nothing_due(Tick end) const noexcept {
    return nothing_waits() && slots_.nothing_within(width_.last_number(end));
  }
  bool has_next(Tick end) noexcept {
    return !sorted_.empty() || slots_.seek(width_.last_number(end));
  }

  void take_next(Tick end) noexcept {
    if (!sorted_.empty()) return take_sorted();
    const auto taken = slots_.take(width_.last_number(end), batch_list_);
    base_ = std::max(base_, width_.due_at(taken.start));
    batch_ = taken.batch;
  }

 private:
  SlotNumber number_of(const Timer& timer) const noexcept {
    return width_.number_of(timer.deadline_);
  }
  Tick due_at(const Timer& timer) const noexcept { return width_.due_at(number_of(timer)); }

  // A slot of one tick fires, a coarser one is sorted further. If it holds one timer only, that one
  // fires at once: nothing else is due before it.
  void take_sorted() noexcept {
    const LinkLevels::Slot slot = sorted_.take(batch_list_);
    const Link& list = batch_list_.sentinel();
    const bool is_alone = list.next == list.prev;
    const Tick start = is_alone ? due_at(Timer::of(*list.next)) : slot.start;
    batch_ = is_alone || slot.level == 0 ? Batch::to_fire : Batch::to_place;
    base_ = std::max(base_, start);  // what was overdue leaves it where the pass began
  }

  void take_out(Timer& timer) noexcept {
    const Link* const emptied = unlink(timer.link_);
    if (emptied == nullptr) return;
    sorted_.note_emptied(emptied);
    slots_.note_emptied(emptied);
  }

  template <class Visit>
  void for_each(const Visit& visit) const {
    const auto visit_link = [&visit](Link& link) { visit(Timer::of(link)); };
    slots_.for_each(visit_link);
    sorted_.for_each(visit_link);
    for (const LinkList* list : {&batch_list_, &waiting_, &admitted_}) {
      for_each_link(*list, visit_link);
    }
  }

  // Constant after construction.
  SlotWidth width_;
  Tick span_;

  Slots slots_;
  LinkLevels sorted_;    // in a pass: overdue before it began, or passed by a long jump
  LinkList batch_list_;  // the batch that is worked on
  LinkList waiting_;     // due when scheduled, since the last call began
  LinkList admitted_;    // the same, from before the last call
  Batch batch_ = Batch::to_place;

  std::size_t size_ = 0;
  Tick base_;
};

}  // namespace detent::internal

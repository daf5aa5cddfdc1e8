// What keeps the timers of a wheel of one ring: SimpleWheel and HashedWheel.
//
// Time is cut into spans of slot_width ticks, numbered from 0. Number k is due at tick
// k × slot_width, so a deadline belongs to the first number that is not before it. The ring has a
// list for each number modulo slot_count: one slot holds the timers of many turns. For each slot
// the ring keeps the earliest number in it, so that a slot is visited only when something in it is
// due:
//
//     slot_count 8   slot 3: timers of the numbers 11, 19 and 75, earliest 11;
//                            visited at 11, 19 and 75
//
// A pass of at most one turn visits the slots in the order of the ring, which is that of time. A
// longer one takes out all slots that have something to fire and sorts what is in them, once, so
// that it costs no more however many turns it goes. Read first: queue_passes.h (who calls this).
#pragma once

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <limits>
#include <optional>
#include <string>
#include <vector>

#include "detent/check.h"
#include "detent/internal/link_levels.h"
#include "detent/internal/link_list.h"
#include "detent/internal/linked_timer.h"
#include "detent/internal/queue_passes.h"
#include "detent/tick.h"

namespace detent::internal {

/// The measures of a wheel of one ring.
struct RingOptions {
  std::size_t slot_count = 0;  ///< at least 1, at most 2^28; a slot takes 24 bytes
  Tick slot_width = 1;         ///< ticks a slot, at least 1
  Tick now = 0;                ///< where time starts

  /// Returns: why no wheel can be made so; empty when one can.
  std::optional<std::string> fault() const {
    constexpr std::size_t kMostSlots = std::size_t{1} << 28;
    if (slot_count == 0) return "slot_count is 0: a wheel has at least one slot";
    if (slot_count > kMostSlots) {
      return "slot_count is " + std::to_string(slot_count) + ": a wheel has at most " +
             std::to_string(kMostSlots) + " slots";
    }
    if (slot_width == 0) return "slot_width is 0: a slot is at least one tick wide";
    if (slot_width > std::numeric_limits<Tick>::max() / slot_count) {
      return "slot_width × slot_count is " + std::to_string(slot_width) + " × " +
             std::to_string(slot_count) + " ticks: more than 64 bits hold";
    }
    return std::nullopt;
  }

  /// One turn of the ring, in ticks.
  Tick turn() const noexcept { return slot_width * slot_count; }
};

/// A PassStore of one ring. Owns no timer. Not movable. Thread-compatible. Every operation is O(1)
/// besides what it hands out, unless it says otherwise.
///
/// Invariants:
///  1. A timer in the ring is in the slot of its number, which is above reached_.
///  2. A slot's bit in occupied_ is set exactly when its list is not empty. Its earliest is then a
///     number of its, above reached_, and not above that of any timer in it (it is below all of
///     them after the earliest was cancelled).
///  3. Outside a pass sorted_, the batch and what is admitted are empty, and reached_ is the last
///     number that is due at or before base().
class RingStore {
 public:
  using Timer = LinkedTimer<RingStore>;
  /// `deadline` is when the timer is due: its own deadline, rounded up to a slot.
  struct Entry {
    Tick deadline;
    Timer* timer;
  };

  /// Requires: !options.fault(). `span`: the longest delay that is accepted.
  RingStore(Tick now, const RingOptions& options, Tick span)
      : width_(options.slot_width),
        span_(span),
        slots_(options.slot_count),
        occupied_((options.slot_count + kWordBits - 1) / kWordBits),
        base_(now),
        reached_(last_number(now)) {}
  /// Cancels every timer. O(timers + slots).
  ~RingStore() {
    for_each([](Timer& timer) { timer.queue_ = nullptr; });
  }
  RingStore(const RingStore&) = delete;
  RingStore& operator=(const RingStore&) = delete;

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
    const std::uint64_t number = number_of(deadline);
    if (due_at(number) > pass_end) {
      insert(timer, number);
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

  /// O(slots), and O(slots / 64) when they are empty.
  Tick next_wakeup() const noexcept { return *next_visit(); }

  void check_invariants() const noexcept;
  void check_no_pass() const noexcept {
    DETENT_CHECK(sorted_.empty() && batch_list_.empty() && admitted_.empty());
    DETENT_CHECK(reached_ == last_number(base_));
  }

  // ---- For QueuePasses; PassStore says what each does.

  Tick base() const noexcept { return base_; }
  void set_base(Tick base) noexcept {
    base_ = base;
    reached_ = last_number(base);
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
    for (; count < limit && !batch_empty(); ++count) visit(pop());
    return count;
  }

  void place(const Entry& entry) noexcept {
    const std::uint64_t number = number_of(entry.deadline);
    if (number > reached_) {
      insert(*entry.timer, number);
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
    return sorted_.empty() ? next_visit() : sorted_.next_start();
  }
  /// O(slots passed), at most one turn of them.
  bool nothing_due(Tick end) const noexcept {
    return nothing_waits() && !first_within(last_number(end) - reached_);
  }
  bool has_next(Tick end) const noexcept {
    return !sorted_.empty() || first_within(last_number(end) - reached_).has_value();
  }

  void take_next(Tick end) noexcept {
    const std::uint64_t count = last_number(end) - reached_;
    if (!sorted_.empty()) {
      take_sorted();
    } else if (count <= slots_.size()) {
      reached_ += 1 + *first_within(count);
      base_ = due_at(reached_);
      take_slot(reached_ % slots_.size());
      batch_ = Batch::to_fire;
    } else {
      take_all_within(count);
      reached_ += count;
      batch_ = Batch::to_place;
    }
  }

 private:
  static constexpr Tick kLastTick = std::numeric_limits<Tick>::max();
  static constexpr std::size_t kWordBits = 64;

  struct Slot {
    LinkList timers;
    std::uint64_t earliest = 0;  // a number; means nothing when there are no timers
  };

  // ---- Numbers. The last one may be due before its multiple of the width, at the last tick.

  std::uint64_t number_of(Tick deadline) const noexcept {
    if (width_ == 1) return deadline;
    return deadline / width_ + (deadline % width_ == 0 ? 0 : 1);
  }
  Tick due_at(std::uint64_t number) const noexcept {
    return number > kLastTick / width_ ? kLastTick : number * width_;
  }
  // The last number that is due at or before `tick`.
  std::uint64_t last_number(Tick tick) const noexcept {
    return tick == kLastTick ? number_of(tick) : tick / width_;
  }

  // ---- The ring.

  void insert(Timer& timer, std::uint64_t number) noexcept {
    const std::size_t index = number % slots_.size();
    Slot& slot = slots_[index];
    slot.earliest = slot.timers.empty() ? number : std::min(slot.earliest, number);
    slot.timers.push_back(timer.link_);
    occupied_[index / kWordBits] |= std::uint64_t{1} << (index % kWordBits);
  }

  bool is_occupied(std::size_t index) const noexcept {
    return (occupied_[index / kWordBits] >> (index % kWordBits) & 1) != 0;
  }
  void clear_occupied(std::size_t index) noexcept {
    occupied_[index / kWordBits] &= ~(std::uint64_t{1} << (index % kWordBits));
  }

  // Returns: the first occupied slot at or behind `index`; slots_.size() when there is none.
  std::size_t next_occupied(std::size_t index) const noexcept {
    std::uint64_t mask = ~std::uint64_t{0} << (index % kWordBits);
    for (std::size_t word = index / kWordBits; word < occupied_.size(); ++word) {
      const std::uint64_t bits = occupied_[word] & mask;
      if (bits != 0) return word * kWordBits + static_cast<std::size_t>(std::countr_zero(bits));
      mask = ~std::uint64_t{0};
    }
    return slots_.size();
  }

  // Looks at the next `count` numbers. Returns: how many of them pass before the first one that is
  // some slot's earliest; empty when none is. Slots are met in the order of their next turn, so the
  // search ends where no later slot can have an earlier number.
  std::optional<std::uint64_t> first_within(std::uint64_t count) const noexcept {
    if (count == 0) return std::nullopt;
    const std::size_t start = (reached_ + 1) % slots_.size();
    std::uint64_t best = count;
    for (std::size_t passed = 0; passed < std::min<std::uint64_t>(best, slots_.size());) {
      const std::size_t index = (start + passed) % slots_.size();
      const std::size_t found = next_occupied(index);
      passed += found - index;
      if (found == slots_.size()) continue;  // on to the ring's first slot, or past its end
      best = std::min(best, slots_[found].earliest - reached_ - 1);
      ++passed;
    }
    return best < count ? std::optional(best) : std::nullopt;
  }

  std::optional<Tick> next_visit() const noexcept {
    const auto passed = first_within(last_number(kLastTick) - reached_);
    return passed ? std::optional(due_at(reached_ + 1 + *passed)) : std::nullopt;
  }

  void take_slot(std::size_t index) noexcept {
    batch_list_.append(slots_[index].timers);
    clear_occupied(index);
  }

  // O(slots).
  void take_all_within(std::uint64_t count) noexcept {
    for (std::size_t index = next_occupied(0); index < slots_.size();
         index = next_occupied(index + 1)) {
      if (slots_[index].earliest - reached_ <= count) take_slot(index);
    }
  }

  Entry pop() noexcept {
    Timer& timer = Timer::of(batch_list_.pop_front());
    return {due_at(number_of(timer.deadline_)), &timer};
  }

  // A slot of one tick fires, a coarser one is sorted further. If it holds one timer only, that one
  // fires at once: nothing else is due before it.
  void take_sorted() noexcept {
    const LinkLevels::Slot slot = sorted_.take(batch_list_);
    const Link& list = batch_list_.sentinel();
    const bool is_alone = list.next == list.prev;
    const Tick start = is_alone ? due_at(number_of(Timer::of(*list.next).deadline_)) : slot.start;
    batch_ = is_alone || slot.level == 0 ? Batch::to_fire : Batch::to_place;
    base_ = std::max(base_, start);  // what was overdue leaves it where the pass began
  }

  void take_out(Timer& timer) noexcept {
    const Link* const emptied = unlink(timer.link_);
    if (emptied == nullptr) return;
    sorted_.note_emptied(emptied);
    // Integers, because comparing pointers into different arrays with < has no meaning in C++.
    const auto offset =
        reinterpret_cast<std::uintptr_t>(emptied) - reinterpret_cast<std::uintptr_t>(slots_.data());
    if (offset < slots_.size() * sizeof(Slot)) clear_occupied(offset / sizeof(Slot));
  }

  template <class Visit>
  void for_each(const Visit& visit) const {
    const auto visit_link = [&visit](Link& link) { visit(Timer::of(link)); };
    for (const Slot& slot : slots_) for_each_link(slot.timers, visit_link);
    sorted_.for_each(visit_link);
    for (const LinkList* list : {&batch_list_, &waiting_, &admitted_}) {
      for_each_link(*list, visit_link);
    }
  }

  // Constant after construction.
  Tick width_;
  Tick span_;

  std::vector<Slot> slots_;
  std::vector<std::uint64_t> occupied_;  // a bit a slot
  LinkLevels sorted_;    // in a pass: overdue before it began, or passed by a long jump
  LinkList batch_list_;  // the batch that is worked on
  LinkList waiting_;     // due when scheduled, since the last call began
  LinkList admitted_;    // the same, from before the last call
  Batch batch_ = Batch::to_place;

  std::size_t size_ = 0;
  Tick base_;
  std::uint64_t reached_;  // the ring holds what has a number above this
};

inline void RingStore::check_invariants() const noexcept {
  sorted_.check_invariants();
  std::size_t count = 0;
  for_each([this, &count](const Timer& timer) {
    DETENT_CHECK(timer.queue_ == this);
    ++count;
  });
  DETENT_CHECK(count == size_);
  for (std::size_t index = 0; index < slots_.size(); ++index) {
    const Slot& slot = slots_[index];
    DETENT_CHECK(is_occupied(index) == !slot.timers.empty());
    if (slot.timers.empty()) continue;
    DETENT_CHECK(slot.earliest > reached_ && slot.earliest % slots_.size() == index);
    for_each_link(slot.timers, [this, &slot, index](const Link& link) {
      const std::uint64_t number = number_of(Timer::of(link).deadline_);
      DETENT_CHECK(number >= slot.earliest && number % slots_.size() == index);
    });
  }
}

}  // namespace detent::internal

// SlotLevels: levels of slots with any sizes, and two ways to find the next slot.
//
// Level 0 has one slot per number. A slot of level 1 covers as many numbers as level 0 has slots,
// and so on. With 60, 60 and 24 slots the levels are seconds, minutes and hours. On each level a
// *hand* points to the slot that contains the reached number. This slot is empty, because its
// timers moved to finer levels when the hand reached it. A level of n slots thus holds the n slots
// after its hand. A timer is on the finest level that reaches its number:
//
//     sizes 60, 60, 24   reached 00:00:58   00:01:57  level 0, slot 57 (59 numbers ahead)
//                                           00:01:59  level 1, slot 1  (its hand is at slot 0)
//                                           01:00:00  level 1, slot 0  (60 slots ahead: next round)
//                                           01:01:00  level 2, slot 1
//
// *Tickless* (from Kafka's purgatory): when a slot gets its first timer, it enters a heap, sorted
// by its start. It leaves the heap when it is taken or emptied. The next slot is the top of the
// heap. *Tick by tick* (Varghese and Lauck, scheme 7): the hand of level 0 moves from number to
// number. The hand of a coarser level moves when the finer hand has completed a round. Slots and
// contents are the same in both; only the search differs.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <vector>

#include "detent/check.h"
#include "detent/internal/indexed_heap.h"
#include "detent/internal/link_list.h"
#include "detent/internal/queue_passes.h"
#include "detent/internal/slot_store.h"
#include "detent/tick.h"

namespace detent::internal {

/// The way in which a wheel of levels finds its next slot.
enum class WheelDrive {
  tickless,      ///< jumps between slots that are not empty, without wake-ups in between
  tick_by_tick,  ///< steps by one slot width while a timer is pending
};

/// The sizes of a wheel of levels. Set either level_sizes or slots_per_level.
struct LevelOptions {
  Tick slot_width = 1;                  ///< ticks per slot of the finest level, at least 1
  std::vector<unsigned> level_sizes{};  ///< slots of each level, the finest first; each at least 2
  unsigned slots_per_level = 0;         ///< slots of each level that is made on demand; at least 2
  WheelDrive drive = WheelDrive::tickless;
  Tick now = 0;  ///< initial time

  /// The largest number of slots (of 32 bytes): for one level on demand, or for all listed levels
  /// together.
  static constexpr std::uint64_t kMostSlots = std::uint64_t{1} << 28;

  bool on_demand() const noexcept { return level_sizes.empty(); }

  /// Returns the longest delay that a wheel with these options accepts, in ticks. Returns
  /// std::nullopt if it does not fit into 64 bits.
  std::optional<Tick> span() const noexcept {
    constexpr Tick kLast = std::numeric_limits<Tick>::max();
    if (on_demand()) return kLast;
    Tick ticks = slot_width;
    for (const unsigned size : level_sizes) {
      if (ticks > kLast / size) return std::nullopt;
      ticks *= size;
    }
    return ticks;
  }

  /// Returns an error message if no wheel can be made from these options; otherwise std::nullopt.
  std::optional<std::string> fault() const;
};

inline std::optional<std::string> LevelOptions::fault() const {
  const auto few = [](const std::string& name, unsigned size) {
    return name + " is " + std::to_string(size) + ": a level has at least 2 slots";
  };
  if (slot_width == 0) return "slot_width is 0: a slot is at least one tick wide";
  if (level_sizes.empty() && slots_per_level == 0) {
    return "neither level_sizes nor slots_per_level is given: a wheel has at least one level";
  }
  if (!level_sizes.empty() && slots_per_level != 0) {
    return "both level_sizes and slots_per_level are given: levels are listed or made on demand";
  }
  if (slots_per_level == 1) return few("slots_per_level", slots_per_level);
  std::uint64_t slots = slots_per_level;
  for (std::size_t i = 0; i < level_sizes.size(); ++i) {
    if (level_sizes[i] < 2) return few("level_sizes[" + std::to_string(i) + ']', level_sizes[i]);
    slots += level_sizes[i];
  }
  if (slots > kMostSlots) {
    return "there are " + std::to_string(slots) + " slots: a wheel has at most " +
           std::to_string(kMostSlots);
  }
  if (!span()) return "slot_width × level_sizes is more ticks than 64 bits hold";
  return std::nullopt;
}

/// Levels of slots for a SlotStore. Owns no link. Not movable. Thread-compatible. `insert` and
/// `note_emptied` are O(levels). Tickless, they add O(log slots) when a slot gets its first link or
/// loses its last. Tick by tick, `seek` is O(numbers passed). If there is no memory for a level on
/// demand, the process ends.
///
/// Invariants, with h(l) = reached() / unit of level l:
///
/// - A slot that holds links starts at a multiple s of its level's unit. It holds only numbers from
///   s to s + unit - 1. Also h(l) < s / unit <= h(l) + reach, so no two slots of time share a list.
/// - Tickless: the heap has one offer for each slot that holds links. Tick by tick: the heap is
///   empty.
/// - Outside a pass beyond_ is empty.
class SlotLevels {
 public:
  /// The data of a slot for drawings of a wheel.
  struct SlotView {
    std::size_t level;
    std::size_t index;  ///< position on the level's ring
    SlotNumber start;   ///< first number of the slot
  };
  struct Taken {
    SlotNumber start;
    Batch batch;
  };

  /// Requires: !options.fault().
  explicit SlotLevels(const LevelOptions& options)
      : drive_(options.drive), slots_per_level_(options.slots_per_level) {
    if (options.on_demand()) add_level(slots_per_level_);
    for (const unsigned size : options.level_sizes) add_level(size);
    // If time is not a multiple of the width, the whole span reaches one number further, into the
    // slot that the hand reaches next.
    if (!options.on_demand() && options.slot_width > 1) {
      levels_.back() = Level(levels_.back().unit, levels_.back().slots.size() + 1);
    }
  }
  SlotLevels(const SlotLevels&) = delete;
  SlotLevels& operator=(const SlotLevels&) = delete;

  std::size_t level_count() const noexcept { return levels_.size(); }
  std::size_t slot_count(std::size_t level) const noexcept { return levels_[level].slots.size(); }
  /// Returns the number of numbers that a slot of `level` covers.
  SlotNumber unit(std::size_t level) const noexcept { return levels_[level].unit; }
  /// Returns the slot to which the hand of `level` points.
  std::size_t hand(std::size_t level) const noexcept {
    return levels_[level].index_of(reached_ / levels_[level].unit);
  }

  /// Calls visit(const SlotView&, const LinkList&) for every slot that holds links.
  template <class Visit>
  void for_each_slot(const Visit& visit) const {
    for (std::size_t level = 0; level < levels_.size(); ++level) {
      const std::vector<Slot>& slots = levels_[level].slots;
      for (std::size_t i = 0; i < slots.size(); ++i) {
        if (!slots[i].links.empty()) visit(SlotView{level, i, slots[i].start}, slots[i].links);
      }
    }
  }

  // ---- TimerSlots documents each function.

  SlotNumber reached() const noexcept { return reached_; }
  void set_reached(SlotNumber number) noexcept { reached_ = number; }

  void insert(Link& link, SlotNumber number) noexcept {
    const std::size_t level = level_for(number);
    if (level == levels_.size()) return beyond_.push_back(link);
    Slot& slot = levels_[level].slot_of(number);
    if (slot.links.empty()) {
      slot.start = number - number % levels_[level].unit;
      ++occupied_;
      if (drive_ == WheelDrive::tickless) offers_.push({slot.start, level, &slot});
    }
    slot.links.push_back(link);
  }

  void note_emptied(const Link* sentinel) noexcept {
    for (Level& level : levels_) {
      const std::size_t index = index_of_list(level.slots, sentinel);
      if (index < level.slots.size()) return vacate(level.slots[index]);
    }
  }

  bool nothing_within(SlotNumber last) const noexcept {
    const std::optional<SlotNumber> start = next_start();
    return !start || *start > last;
  }
  /// Tick by tick, returns the next number.
  std::optional<SlotNumber> next_start() const noexcept {
    if (occupied_ == 0) return std::nullopt;
    return drive_ == WheelDrive::tickless ? offers_.top().start : reached_ + 1;
  }

  bool seek(SlotNumber last) noexcept {
    found_ = drive_ == WheelDrive::tickless ? first_offer(last) : move_hands(last);
    return found_.slot != nullptr || !beyond_.empty();
  }

  // The links of a one-number slot fire, and a coarser slot cascades. The first number of the
  // coarser slot is then not reached yet.
  Taken take(SlotNumber last, LinkList& into) noexcept {
    if (found_.slot == nullptr) {
      reached_ = last;
      into.append(beyond_);
      return {last, Batch::to_place};
    }
    into.append(found_.slot->links);
    vacate(*found_.slot);
    if (found_.level == 0) {
      reached_ = found_.start;
      return {found_.start, Batch::to_fire};
    }
    reached_ = found_.start - 1;
    return {found_.start, Batch::to_place};
  }

  template <class Visit>
  void for_each(const Visit& visit) const {
    for_each_slot(
        [&visit](const SlotView&, const LinkList& links) { for_each_link(links, visit); });
    for_each_link(beyond_, visit);
  }

  template <class NumberOf>
  void check_invariants(const NumberOf& number_of) const noexcept;

 private:
  struct Slot {
    LinkList links;  // first, so that a list and its slot have the same address
    SlotNumber start = 0;
    std::size_t offer = 0;  // index in the heap
  };

  struct Level {
    Level(SlotNumber its_unit, std::size_t size) : unit(its_unit), reach(size), slots(size) {}

    std::size_t index_of(SlotNumber round) const noexcept { return round % slots.size(); }
    Slot& slot_of(SlotNumber number) noexcept { return slots[index_of(number / unit)]; }

    SlotNumber unit;      // number of numbers per slot
    std::uint64_t reach;  // number of slots after the hand that hold links: all slots
    std::vector<Slot> slots;
  };

  /// A slot that holds links. If several slots start at the same number, the coarsest is first,
  /// because it cascades into the others.
  struct Offer {
    SlotNumber start = 0;
    std::size_t level = 0;
    Slot* slot = nullptr;

    bool is_before(const Offer& other) const noexcept {
      return start < other.start || (start == other.start && level > other.level);
    }
    void moved_to(std::size_t index) const noexcept { slot->offer = index; }
  };

  static constexpr SlotNumber kLastNumber = std::numeric_limits<SlotNumber>::max();

  // Never called if the slots of the last level cover every number, so the unit does not overflow.
  void add_level(std::uint64_t size) {
    const SlotNumber unit = levels_.empty() ? 1 : levels_.back().unit * levels_.back().slots.size();
    // A level has at most as many slots as there are numbers for them.
    const SlotNumber last = kLastNumber / unit;
    levels_.emplace_back(unit, last < size ? last + 1 : size);
  }

  // Returns the finest level that reaches `number`, or level_count().
  std::size_t level_for(SlotNumber number) noexcept {
    for (std::size_t i = 0;; ++i) {
      if (i == levels_.size()) {
        if (slots_per_level_ == 0) return i;
        add_level(slots_per_level_);
      }
      const Level& level = levels_[i];
      if (number / level.unit - reached_ / level.unit <= level.reach) return i;
    }
  }

  void vacate(Slot& slot) noexcept {
    --occupied_;
    if (drive_ == WheelDrive::tickless) offers_.erase(slot.offer);
  }

  Offer first_offer(SlotNumber last) const noexcept {
    return offers_.empty() || offers_.top().start > last ? Offer{} : offers_.top();
  }

  // Moves the hands until one of them reaches a slot that holds links, or until `last`. The hands
  // stop one number before that slot.
  Offer move_hands(SlotNumber last) noexcept {
    for (; occupied_ != 0 && reached_ < last; ++reached_) {
      const Offer found = coarsest_at(reached_ + 1);
      if (found.slot != nullptr) return found;
    }
    return {};
  }

  // Returns the coarsest slot with links among the slots that hands reach at `number`.
  Offer coarsest_at(SlotNumber number) noexcept {
    Offer found;
    for (std::size_t i = 0; i < levels_.size(); ++i) {
      if (number % levels_[i].unit != 0) break;  // the finer level has not completed its round
      Slot& slot = levels_[i].slot_of(number);
      if (!slot.links.empty()) found = {number, i, &slot};
    }
    return found;
  }

  // Constant after construction.
  WheelDrive drive_;
  unsigned slots_per_level_;  // for levels on demand; 0: all levels are listed

  std::vector<Level> levels_;  // the finest first
  IndexedHeap<Offer> offers_;  // tickless: the slots that hold links
  std::size_t occupied_ = 0;   // number of slots that hold links
  SlotNumber reached_ = 0;     // all links have numbers above this
  Offer found_;                // result of seek(); without a slot, the links in beyond_
  // Links that no level reaches yet. They were scheduled inside a pass, while the hands were still
  // behind now(). They are placed when the pass ends.
  LinkList beyond_;
};

template <class NumberOf>
void SlotLevels::check_invariants(const NumberOf& number_of) const noexcept {
  offers_.check_invariants();
  std::size_t count = 0;
  for_each_slot([&](const SlotView& view, const LinkList& links) {
    ++count;
    const Level& level = levels_[view.level];
    const SlotNumber round = view.start / level.unit;
    const SlotNumber hand = reached_ / level.unit;
    DETENT_CHECK(view.start % level.unit == 0 && level.index_of(round) == view.index);
    DETENT_CHECK(round > hand && round - hand <= level.reach);
    for_each_link(links,
                  [&](const Link& link) { DETENT_CHECK(number_of(link) / level.unit == round); });
    if (drive_ == WheelDrive::tick_by_tick) return;
    const Offer& offer = offers_.elements()[level.slots[view.index].offer];
    DETENT_CHECK(offer.slot == &level.slots[view.index] && offer.start == view.start);
    DETENT_CHECK(offer.level == view.level);
  });
  DETENT_CHECK(count == occupied_);
  DETENT_CHECK(offers_.size() == (drive_ == WheelDrive::tickless ? occupied_ : 0));
}

}  // namespace detent::internal

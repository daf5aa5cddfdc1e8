// Levels of slots of any size, and the two ways to find the slot that comes next.
//
// Level 0 has a slot for each number, a slot of level 1 covers as many numbers as level 0 has
// slots, and so on: with 60, 60 and 24 slots they are seconds, minutes and hours. On each level a
// *hand* points at the slot that covers the number reached. That slot is empty: what it held went
// to finer levels when the hand came to it. So a level of n slots holds the n slots after its hand,
// and a timer lives on the finest level that reaches it:
//
//     sizes 60, 60, 24   reached 00:00:58   00:01:57  level 0, slot 57 (59 numbers ahead)
//                                           00:01:59  level 1, slot 1  (its hand is at slot 0)
//                                           01:00:00  level 1, slot 0  (60 slots ahead: next turn)
//                                           01:01:00  level 2, slot 1
//
// *Tickless* (Kafka's purgatory): a slot enters a heap when it becomes non-empty, by the number at
// which it starts, and leaves it when it is taken or emptied. The next slot is the heap's top.
// *Tick by tick* (Varghese and Lauck, scheme 7): level 0's hand moves number by number, and the
// hand of a coarser level when the finer one has gone round. The slots and what is in them are the
// same; only the search differs.
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

/// How a wheel of levels finds its next slot.
enum class WheelDrive {
  tickless,      ///< from non-empty slot to non-empty slot; nothing wakes when nothing is due
  tick_by_tick,  ///< slot width by slot width, as long as any timer is pending
};

/// The measures of a wheel of levels: either level_sizes or slots_per_level.
struct LevelOptions {
  Tick slot_width = 1;                  ///< ticks a slot of the finest level, at least 1
  std::vector<unsigned> level_sizes{};  ///< slots of each level, the finest first; each at least 2
  unsigned slots_per_level = 0;         ///< of levels that are made on demand; at least 2
  WheelDrive drive = WheelDrive::tickless;
  Tick now = 0;  ///< where time starts

  /// A level, or all that are listed, has at most so many slots (of 32 bytes).
  static constexpr std::uint64_t kMostSlots = std::uint64_t{1} << 28;

  bool on_demand() const noexcept { return level_sizes.empty(); }

  /// Returns: the longest delay that a wheel made so accepts, in ticks; empty when 64 bits do not
  /// hold it.
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

  /// Returns: why no wheel can be made so; empty when one can.
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

/// Levels of slots, as SlotStore wants them. Owns no link. Not movable. Thread-compatible.
/// `insert` and `note_emptied` are O(levels), and O(log slots) besides when a slot becomes
/// non-empty or empty; tick by tick, `seek` is O(numbers passed). Running out of memory for a level
/// that is made on demand ends the process.
///
/// Invariants, with h(l) = reached() / unit of level l:
///  1. A slot that holds links starts at a multiple s of its level's unit, holds numbers from s to
///     s + unit - 1 only, and h(l) < s / unit <= h(l) + reach: no two slots of time share a list.
///  2. Tickless, the heap has one offer for each slot that holds links; else it is empty.
///  3. Outside a pass beyond_ is empty.
class SlotLevels {
 public:
  /// What the picture of a wheel needs to know of a slot.
  struct SlotView {
    std::size_t level;
    std::size_t index;  ///< on the level's ring
    SlotNumber start;   ///< the first number it covers
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
    // Off a multiple of the width, the whole span reaches one number further: into the slot that
    // the hand comes to next.
    if (!options.on_demand() && options.slot_width > 1) {
      levels_.back() = Level(levels_.back().unit, levels_.back().reach + 1);
    }
  }
  SlotLevels(const SlotLevels&) = delete;
  SlotLevels& operator=(const SlotLevels&) = delete;

  std::size_t level_count() const noexcept { return levels_.size(); }
  std::size_t slot_count(std::size_t level) const noexcept { return levels_[level].slots.size(); }
  /// How many numbers a slot of `level` covers.
  SlotNumber unit(std::size_t level) const noexcept { return levels_[level].unit; }
  /// The slot that the hand of `level` points at.
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

  // ---- TimerSlots says what each of these does.

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
  /// Tick by tick it is the next number.
  std::optional<SlotNumber> next_start() const noexcept {
    if (occupied_ == 0) return std::nullopt;
    return drive_ == WheelDrive::tickless ? offers_.top().start : reached_ + 1;
  }

  bool seek(SlotNumber last) noexcept {
    found_ = drive_ == WheelDrive::tickless ? first_offer(last) : move_hands(last);
    return found_.slot != nullptr || !beyond_.empty();
  }

  // A slot of one number fires, a coarser one cascades. Its first number is then still to come.
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
    LinkList links;  // first, so that its address is the slot's
    SlotNumber start = 0;
    std::size_t offer = 0;  // where it is in the heap
  };

  struct Level {
    Level(SlotNumber its_unit, std::uint64_t size) : unit(its_unit), reach(size), slots(size) {}

    std::size_t index_of(SlotNumber turn) const noexcept { return turn % slots.size(); }
    Slot& slot_of(SlotNumber number) noexcept { return slots[index_of(number / unit)]; }

    SlotNumber unit;      // how many numbers a slot covers
    std::uint64_t reach;  // how many slots after the hand's hold links: all
    std::vector<Slot> slots;
  };

  /// A slot that holds links. Of those that start together the coarsest comes first: it cascades
  /// into the others.
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

  // Never called when the last level's slots cover every number, so the unit does not overflow.
  void add_level(std::uint64_t size) {
    const SlotNumber unit = levels_.empty() ? 1 : levels_.back().unit * levels_.back().slots.size();
    // No more slots than there are numbers for.
    const SlotNumber last = kLastNumber / unit;
    levels_.emplace_back(unit, last < size ? last + 1 : size);
  }

  // The finest level that reaches `number`; level_count() when none does.
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

  // Moves the hands until one comes to a slot that holds links, or to `last`. They stop one number
  // before that slot.
  Offer move_hands(SlotNumber last) noexcept {
    for (; occupied_ != 0 && reached_ < last; ++reached_) {
      const Offer found = coarsest_at(reached_ + 1);
      if (found.slot != nullptr) return found;
    }
    return {};
  }

  // Of the slots that hands come to at `number`, the coarsest one that holds links.
  Offer coarsest_at(SlotNumber number) noexcept {
    Offer found;
    for (std::size_t i = 0; i < levels_.size(); ++i) {
      if (number % levels_[i].unit != 0) break;  // the finer level has not gone round
      Slot& slot = levels_[i].slot_of(number);
      if (!slot.links.empty()) found = {number, i, &slot};
    }
    return found;
  }

  // Constant after construction.
  WheelDrive drive_;
  unsigned slots_per_level_;  // of levels made on demand; 0: there are no others

  std::vector<Level> levels_;  // the finest first
  IndexedHeap<Offer> offers_;  // tickless: the slots that hold links
  std::size_t occupied_ = 0;   // how many slots hold links
  SlotNumber reached_ = 0;     // the slots hold what has a number above this
  Offer found_;                // by seek(); no slot: what is in beyond_
  // What no level reaches yet: scheduled from inside a pass, when the hands are still behind now().
  // It is placed when the pass ends.
  LinkList beyond_;
};

template <class NumberOf>
void SlotLevels::check_invariants(const NumberOf& number_of) const noexcept {
  offers_.check_invariants();
  std::size_t count = 0;
  for_each_slot([&](const SlotView& view, const LinkList& links) {
    ++count;
    const Level& level = levels_[view.level];
    const SlotNumber turn = view.start / level.unit;
    const SlotNumber hand = reached_ / level.unit;
    DETENT_CHECK(view.start % level.unit == 0 && level.index_of(turn) == view.index);
    DETENT_CHECK(turn > hand && turn - hand <= level.reach);
    for_each_link(links,
                  [&](const Link& link) { DETENT_CHECK(number_of(link) / level.unit == turn); });
    if (drive_ == WheelDrive::tick_by_tick) return;
    const Offer& offer = offers_.elements()[level.slots[view.index].offer];
    DETENT_CHECK(offer.slot == &level.slots[view.index] && offer.start == view.start);
    DETENT_CHECK(offer.level == view.level);
  });
  DETENT_CHECK(count == occupied_);
  DETENT_CHECK(offers_.size() == (drive_ == WheelDrive::tickless ? occupied_ : 0));
}

}  // namespace detent::internal

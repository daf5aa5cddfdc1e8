// The baseline most programs would write: an indexed heap, four children to a node.
//
// Four children make the tree half as deep as two, and lie in one cache line of 16-byte entries. A
// table from timer to heap position makes cancel and move O(log n) instead of leaving garbage.
// 20 bytes a timer.
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <vector>

#include "detent/tick.h"

namespace detent::bench {

/// Timers named 0 … capacity − 1. Thread-compatible. schedule, cancel: O(log n).
class IndexedHeap {
 public:
  explicit IndexedHeap(std::uint32_t capacity) : positions_(capacity, kAbsent) {
    entries_.resize(capacity);  // touches the memory
    entries_.clear();
  }

  void schedule(std::uint32_t id, Tick deadline) {
    std::uint32_t position = positions_[id];
    if (position == kAbsent) {
      position = static_cast<std::uint32_t>(entries_.size());
      entries_.emplace_back();
    }
    settle(position, {deadline, id});
  }

  void cancel(std::uint32_t id) {
    const std::uint32_t position = positions_[id];
    if (position == kAbsent) return;
    positions_[id] = kAbsent;
    const Entry last = entries_.back();
    entries_.pop_back();
    if (position < entries_.size()) settle(position, last);
  }

  /// Calls on_fire(id) for what is due, earliest first.
  template <class OnFire>
  void advance(Tick now, OnFire&& on_fire) {
    while (!entries_.empty() && entries_.front().deadline <= now) {
      const std::uint32_t id = entries_.front().id;
      cancel(id);
      on_fire(id);
    }
  }

  std::optional<Tick> next() const {
    return entries_.empty() ? std::nullopt : std::optional(entries_.front().deadline);
  }

 private:
  struct Entry {
    Tick deadline;
    std::uint32_t id;
  };
  static constexpr std::uint32_t kAbsent = std::numeric_limits<std::uint32_t>::max();
  static constexpr std::size_t kChildren = 4;

  void put(std::size_t position, Entry entry) {
    entries_[position] = entry;
    positions_[entry.id] = static_cast<std::uint32_t>(position);
  }

  // Puts `entry` into the hole at `position`, or where it belongs above or below.
  void settle(std::size_t position, Entry entry) {
    while (position > 0) {
      const std::size_t parent = (position - 1) / kChildren;
      if (entries_[parent].deadline <= entry.deadline) break;
      put(position, entries_[parent]);
      position = parent;
    }
    for (;;) {
      const std::size_t child = earliest_child(position);
      if (child == 0 || entries_[child].deadline >= entry.deadline) break;
      put(position, entries_[child]);
      position = child;
    }
    put(position, entry);
  }

  // 0 when there is none.
  std::size_t earliest_child(std::size_t position) const {
    const std::size_t first = position * kChildren + 1;
    if (first >= entries_.size()) return 0;
    std::size_t earliest = first;
    for (std::size_t child = first + 1; child < first + kChildren && child < entries_.size();
         ++child) {
      if (entries_[child].deadline < entries_[earliest].deadline) earliest = child;
    }
    return earliest;
  }

  std::vector<Entry> entries_;
  std::vector<std::uint32_t> positions_;
};

}  // namespace detent::bench

// TimerNumbers: the numbers of the timers on a wheel, with the data of each timer.
//
// A DenseWheel wants small numbers, which are used again. A C program keeps an id, perhaps longer
// than the timer lives. So an id has two halves: the number of the timer, and a count of the uses
// of this number. When the count of a number has reached its end, the number is retired. An id is
// therefore never given out twice. A Slab (base/slab.h) cannot do this, because it keeps nothing of
// an erased value.
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <new>
#include <optional>
#include <vector>

namespace detent::c {

/// Thread-compatible. Each operation is O(1), amortised. Tests set a small `kLastUse`.
template <std::uint32_t kLastUse = std::numeric_limits<std::uint32_t>::max()>
class TimerNumbers {
 public:
  /// Returns the number that the next `take` uses. Throws std::bad_alloc.
  std::uint32_t next() {
    if (first_free_ == kNone) {
      if (entries_.size() >= kNone) throw std::bad_alloc();
      entries_.emplace_back();
      first_free_ = static_cast<std::uint32_t>(entries_.size() - 1);
    }
    return first_free_;
  }

  /// Takes the number that `next` returned. Returns the id of the timer.
  std::uint64_t take(std::uint64_t data) noexcept {
    const std::uint32_t number = first_free_;
    Entry& entry = entries_[number];
    first_free_ = entry.next_free;
    entry.data = data;
    ++entry.use;
    return id_of(number);
  }

  /// Returns the number of the timer, or std::nullopt if no timer ever had this id, or if another
  /// timer has its number now. The timer may have ended.
  std::optional<std::uint32_t> find(std::uint64_t id) const noexcept {
    const auto number = static_cast<std::uint32_t>(id);
    if (number >= entries_.size() || id_of(number) != id) return std::nullopt;
    return number;
  }

  std::uint64_t id_of(std::uint32_t number) const noexcept {
    return std::uint64_t{entries_[number].use} << 32 | number;
  }
  std::uint64_t data_of(std::uint32_t number) const noexcept { return entries_[number].data; }

  /// Frees the number of a timer that has ended.
  void give_back(std::uint32_t number) noexcept {
    if (entries_[number].use == kLastUse) return;
    entries_[number].next_free = first_free_;
    first_free_ = number;
  }

 private:
  static constexpr std::uint32_t kNone = std::numeric_limits<std::uint32_t>::max();

  struct Entry {
    std::uint64_t data = 0;
    std::uint32_t use = 0;  // 0: never used, so no id is 0
    std::uint32_t next_free = kNone;
  };

  std::vector<Entry> entries_;
  std::uint32_t first_free_ = kNone;
};

}  // namespace detent::c

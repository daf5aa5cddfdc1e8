// DenseWheel with levels so small that a few hundred ticks go round several of them: what it takes
// to try every case. The levels, cells and passes are DenseWheel's own; only the face is made here.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "detent/advance.h"
#include "detent/internal/cell_lists.h"
#include "detent/internal/level_store.h"
#include "detent/internal/queue_passes.h"
#include "detent/tick.h"

namespace detent {

/// Where the cell of each number is. Numbers not seen yet have none.
class SmallWheelOwners {
 public:
  using Name = std::uint32_t;

  internal::CellNumber& cell_of(Name index) noexcept {
    if (index >= cells_.size()) cells_.resize(index + 1, internal::kNoCell);
    return cells_[index];
  }
  internal::CellNumber find(Name index) const noexcept {
    return index < cells_.size() ? cells_[index] : internal::kNoCell;
  }
  Name release(Name index, Tick) noexcept {
    cells_[index] = internal::kNoCell;
    return index;
  }

 private:
  std::vector<internal::CellNumber> cells_;
};

/// A wheel of numbers with `1 << kDigitBits` slots a level. dense_wheel.h says what it does.
template <unsigned kDigitBits>
class SmallWheel {
 public:
  explicit SmallWheel(Tick now) : passes_(now), store_(now) {}

  bool schedule(std::uint32_t index, Tick deadline) noexcept {
    cancel(index);
    store_.add({deadline, index}, passes_.end());
    return true;
  }

  bool postpone(std::uint32_t index, Tick deadline) noexcept {
    if (is_pending(index) && deadline > passes_.end() &&
        store_.move_in_place(cell_of(index), deadline)) {
      return true;
    }
    return schedule(index, deadline);
  }

  bool cancel(std::uint32_t index) noexcept {
    if (!is_pending(index)) return false;
    const internal::CellNumber cell = cell_of(index);
    store_.lists().owners().release(index, 0);
    return store_.remove(cell);
  }

  bool is_pending(std::uint32_t index) const noexcept {
    return cell_of(index) != internal::kNoCell;
  }
  Tick deadline_of(std::uint32_t index) const noexcept {
    return store_.lists().at(cell_of(index)).deadline;
  }

  template <class OnFire>
  AdvanceResult advance(Tick now, OnFire&& on_fire, std::size_t limit = kNoLimit) noexcept {
    return passes_.advance(store_, now, on_fire, limit);
  }

  std::optional<Tick> next_wakeup() const noexcept { return passes_.next_wakeup(store_); }
  Tick now() const noexcept { return passes_.now(); }
  std::size_t size() const noexcept { return store_.size(); }
  bool empty() const noexcept { return size() == 0; }
  void check_invariants() const noexcept { passes_.check_invariants(store_); }

 private:
  template <unsigned kListCount>
  using Lists = internal::CellLists<SmallWheelOwners, kListCount>;

  internal::CellNumber cell_of(std::uint32_t index) const noexcept {
    return store_.lists().owners().find(index);
  }

  internal::QueuePasses passes_;
  internal::LevelStore<Lists, kDigitBits> store_;
};

}  // namespace detent

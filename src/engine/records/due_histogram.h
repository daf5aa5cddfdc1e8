// Counts the live tasks that are due in each bin (task/due_bin.h). The forecast uses these counts,
// so it is exact and needs no scan.
//
// Each change of a task's due time is counted here immediately. The net changes of a turn go to the
// store in the same batch as the tasks, so the counts are exact after a crash too. Counters are in
// groups of 60 neighbours (the minutes of an hour, or 60 days), which a hash table finds. A batch
// of tasks that are due together finds its group once. A changed group keeps a copy of its state at
// the last batch. So counting is one addition, and the changes are the differences from the copy.
#pragma once

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <span>
#include <unordered_map>
#include <vector>

#include "detent/clock.h"
#include "store/store.h"
#include "task/due_bin.h"
#include "task/forecast.h"

namespace detent {

// Invariants, tested by check_invariants():
//  1. A group is in the map under the key of its first bin.
//  2. `changed_` has each group that is marked as changed, exactly once, and no other group.
//  3. A group that is not marked has a counter that is not 0, so empty groups take no memory.
//  4. `last_` is null or a group that is marked.
/// Thread-compatible. Memory: 0.5 KiB for each hour in which a minute bin is not empty (a year of
/// them is 4.5 MB). Also 0.5 KiB for each 60 days in which a day bin is not empty, and for each
/// group that the present batch changes.
class DueHistogram {
 public:
  DueHistogram() = default;
  DueHistogram(const DueHistogram&) = delete;
  DueHistogram& operator=(const DueHistogram&) = delete;

  /// Adds `change` live tasks with these times (removes tasks if negative). Both times are clamped
  /// to 1970 … 9999. Requires: removed tasks were added with the same times. If restore() left
  /// their count out, the bin is now below 0 and counts as empty.
  /// Cost: a few ns; a group's first change since take_changes() copies its 480 bytes.
  void add(WallTime due_at, WallTime created_at, std::int64_t change);

  /// The net change of each bin since the last call or restore(), sorted by bin, without zeros.
  /// Cost: 60 comparisons for each changed group, and sorting the answer.
  std::vector<DueCount> take_changes();

  /// Replaces all counts by these sums, which do not count as changes. Leaves out impossible sums:
  /// a sum outside 1 … 2^53, or a bin outside 1970 … 9999.
  /// Returns: the number of sums left out. More than 0 means that the store is damaged.
  std::size_t restore(std::span<const DueCount> sums);

  /// The counts in bins of at least span / `bins`, rounded up to whole minutes. The first bin
  /// begins with the minute of `from` (clamped to 1970 … 9999). The answer has as many bins as the
  /// span needs, so it may have fewer than `bins`. Requires: validate_forecast(span, bins). Cost:
  /// O(groups + bins), the memory above read once.
  Forecast forecast(WallTime from, std::chrono::milliseconds span, std::size_t bins) const;

  /// The number of groups in memory.
  std::size_t group_count() const noexcept { return groups_.size(); }
  /// Stops the process if an invariant is broken. O(groups).
  void check_invariants() const;

 private:
  static constexpr std::int64_t kGroupBins = 60;
  using Counters = std::array<std::int64_t, kGroupBins>;

  struct Group {
    DueBin first;  // the bin of counts[0]
    bool is_changed = false;
    Counters counts{};
  };
  struct Changed {
    Group* group;  // points into groups_, whose elements never move
    Counters before;
  };

  static std::int64_t key_of(DueBin bin) noexcept;
  Group& group_of(DueBin bin);
  void mark(Group& group);

  std::unordered_map<std::int64_t, Group> groups_;
  std::vector<Changed> changed_;
  Group* last_ = nullptr;  // the group of the last add()
};

}  // namespace detent

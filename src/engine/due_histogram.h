// How many live tasks are due in each bin (task/due_bin.h): the forecast, exact and without a scan.
//
// Every change of a task's due time is counted here at once, and the net changes of a turn go to
// the store in the batch that changes the tasks, so the sums read back after a crash are exact too.
// Counters lie in groups of 60 neighbours (an hour of minutes; 60 days), found by hashing; a batch
// of tasks due together finds its group once. A group changed since the last batch has a copy of
// itself as it was, so counting is one addition and the changes are the differences.
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
//  2. `changed_` names each group that is marked as changed, once, and no other.
//  3. A group that is not marked has a counter that is not 0: what is empty takes no memory.
//  4. `last_` is null or a group that is marked.
/// Thread-compatible. Memory: 0.5 KiB for each hour in which a minute bin is not empty (a year of
/// them is 4.5 MB), the same for 60 days of day bins; another for each group a batch changes.
class DueHistogram {
 public:
  DueHistogram() = default;
  DueHistogram(const DueHistogram&) = delete;
  DueHistogram& operator=(const DueHistogram&) = delete;

  /// Counts `change` more live tasks (fewer, when negative) with these times; both are read as if
  /// within 1970 … 9999. Requires: what is taken away was added with the same times (if restore()
  /// left it out, its bin is below 0 then, and counts as empty).
  /// Cost: a few ns; a group's first change since take_changes() copies its 480 bytes.
  void add(WallTime due_at, WallTime created_at, std::int64_t change);

  /// The net change of each bin since the last call, or since restore(); none that is 0; by bin.
  /// Cost: 60 comparisons for each group that was changed, and sorting the answer.
  std::vector<DueCount> take_changes();

  /// Makes these the counts, whatever was there; they are no changes. Leaves out a count that no
  /// number of tasks can be (not 1 … 2^53), or in a bin outside 1970 … 9999.
  /// Returns: how many it left out; more than 0 means that the store is damaged.
  std::size_t restore(std::span<const DueCount> sums);

  /// Counts by bins of at least span / `bins`, in whole minutes, from the minute that `from` is in
  /// (read as if within 1970 … 9999); as many bins as reach the end of the span, so maybe fewer.
  /// Requires: validate_forecast(span, bins). Cost: O(groups + bins), the memory above read once.
  Forecast forecast(WallTime from, std::chrono::milliseconds span, std::size_t bins) const;

  /// Groups in memory.
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
    Group* group;  // in groups_, whose elements stay where they are
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

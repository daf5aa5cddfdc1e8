// The changes of one turn, which are then written as one batch.
//
// A task that changes several times in a turn is written once, in its last state. A task that is
// created and removed in the same turn is not written. Its id is not used again nevertheless
// (TaskRecords). Reads of the turn look here first, so each verb sees the changes of the verbs
// before it.
// Thread-compatible.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "store/store.h"

namespace detent {

class Staging {
 public:
  /// A task gets this record at this place. `from` is the place that it leaves (empty for a new
  /// task): where this turn has put it last, or else where the store has it.
  void put(std::optional<Place> from, StoredTask to);
  /// The task at `place` is removed.
  void erase(Place place);

  /// The change of a task in this turn: null if the turn has not changed it.
  struct Change {
    std::optional<Place> from;     // where the store has it now
    std::optional<StoredTask> to;  // empty: removed
  };
  const Change* find(TaskId id) const noexcept;
  /// The tasks of a queue that this turn put and has not removed. O(changes of the turn).
  std::vector<TaskId> tasks_of(std::string_view queue) const;

  const std::vector<Change>& changes() const noexcept { return changes_; }

  bool empty() const noexcept { return changes_.empty(); }
  /// Returns the batch of all changes and empties this object. The tasks are in the order of their
  /// first change.
  WriteBatch take();
  /// Whether the last batch that was taken changes this task.
  bool was_taken(TaskId id) const noexcept { return taken_.contains(id.value); }

 private:
  Change& change_of(TaskId id, std::optional<Place> from);

  std::vector<Change> changes_;
  std::unordered_map<std::uint64_t, std::size_t> index_by_id_;
  std::unordered_map<std::uint64_t, std::size_t> taken_;  // the same for the last batch taken
};

}  // namespace detent

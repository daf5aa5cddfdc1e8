// Where the tasks are that have no entry in the due order on disk yet: by id, and in the order of
// their lanes.
//
// New tasks come by rising id, so a vector in that order is the index by id: an id is guessed at
// where it would be if there were no gaps, else found by binary search. The due order over it is
// kept as a log-structured merge does (O'Neil et al. 1996): what comes goes to a tail, a tail is
// sorted into a run, and runs of like size are merged. Nothing is removed from a run when a task
// moves or ends: an entry counts only if it is where the task is now. When most don't, the runs are
// cleaned. Those of other lanes are in a sorted set, 160 bytes each: a ready backlog, until the
// next settle.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <vector>

#include "store/store.h"

namespace detent {

/// About 32 bytes a task. put() and erase() are O(log n) amortised for an id above all others, O(n)
/// for a new one below. Thread-compatible.
///
/// Invariants:
///  1. slots_ is sorted by id, without repeats; `at` is an instant >= 0, kGone or kElsewhere.
///  2. The tasks in kElsewhere are those of elsewhere_ and, by place, of other_lanes_.
///  3. Each run is sorted; every task in the due lane has an entry of its instant in a run or the
///     tail.
class AcceptedIndex {
 public:
  /// Adds the task, or moves it.
  void put(const Place& place);
  /// Does nothing when it is not there.
  void erase(TaskId id);
  /// Forgets all ids up to `id`. O(n).
  void drop_through(TaskId id);

  std::optional<Place> find(TaskId id) const;
  /// The places after `after`, up to and with `until`, at most `limit`. Requires: one lane (and
  /// queue). Not const, because what came since is sorted here.
  std::vector<Place> read(const Place& after, const Place& until, std::size_t limit);
  /// The places of ids above `after`, by id, at most `limit`.
  std::vector<Place> read_by_id(TaskId after, std::size_t limit) const;

  std::size_t size() const noexcept { return due_count_ + elsewhere_.size(); }
  /// For tests: stops the process unless every invariant holds.
  void check_invariants() const;
  /// For tests: entries in the due order, live or not.
  std::size_t entry_count() const noexcept;

 private:
  struct Slot {
    TaskId id;
    std::int64_t at = kGone;
  };
  struct Entry {
    std::int64_t at = 0;
    TaskId id;
    friend auto operator<=>(const Entry&, const Entry&) = default;
  };
  struct Run {
    std::vector<Entry> entries;
    std::size_t first = 0;  // what lies before counts no more: it is passed as tasks go

    const Entry* begin() const noexcept { return entries.data() + first; }
    const Entry* end() const noexcept { return entries.data() + entries.size(); }
    std::size_t left() const noexcept { return entries.size() - first; }
  };
  static constexpr std::int64_t kGone = -1;
  static constexpr std::int64_t kElsewhere = -2;

  Slot* slot_of(TaskId id) noexcept;
  const Slot* slot_of(TaskId id) const noexcept;
  Slot& slot_for(TaskId id);
  void leave(Slot& slot);
  void pass_gone();
  bool counts(const Entry& entry) const noexcept;
  void clean();
  void sort_tail();
  void merge_last_two();
  std::vector<Place> read_due(const Entry& after, const Entry& until, std::size_t limit);

  std::vector<Slot> slots_;
  std::size_t due_count_ = 0;
  std::vector<Entry> tail_;
  std::vector<Run> runs_;  // each at least twice as long as the next
  std::map<TaskId, Place> elsewhere_;
  std::set<Place> other_lanes_;
};

}  // namespace detent

// The places of all accepted tasks, in memory: by id, and in the order of their lanes. Tasks that
// were settled have their place in the due family or the lanes family on disk instead.
//
// *By id:* new tasks come with rising ids, so a vector in the order of arrival is sorted by id. A
// lookup guesses the position of an id as if there were no gaps. If the guess is wrong, it
// searches.
//
// *Due order:* works like a log-structured merge tree (O'Neil et al. 1996). New entries go to an
// unsorted tail. A full tail is sorted into a run, and runs of similar length are merged. When a
// task moves or ends, its entry stays in its run. An entry counts only if it has the present due
// time of its task. When most entries do not count, the runs are cleaned.
//
// *Other lanes:* their places are in a sorted set, at 160 bytes each. This set has the ready
// backlog of accepted tasks, until the next settle.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <vector>

#include "store/store.h"

namespace detent {

/// Takes about 32 bytes for each task in the due lane. put() and erase() take O(log n) amortised,
/// and put() takes O(n) for a new id that is not above all others. Thread-compatible.
///
/// Invariants:
///  1. slots_ is sorted by id and has each id once. `at` is an instant >= 0, kGone or kElsewhere.
///  2. The tasks whose slot is kElsewhere are exactly the tasks in elsewhere_ and in other_lanes_.
///  3. Each run is sorted. Every task in the due lane has an entry with its instant in a run or in
///     the tail.
class AcceptedIndex {
 public:
  /// Adds the task, or moves it to `place`.
  void put(const Place& place);
  /// Removes the task, if it is there.
  void erase(TaskId id);
  /// Removes all tasks with ids up to and including `id`. O(n).
  void drop_through(TaskId id);

  std::optional<Place> find(TaskId id) const;
  /// Returns the first `limit` places after `after`, up to and including `until`. Requires: both
  /// are in one lane (and queue). Not const, because it sorts the tail.
  std::vector<Place> read(const Place& after, const Place& until, std::size_t limit);
  /// Returns the places of the first `limit` tasks with ids above `after`, sorted by id.
  std::vector<Place> read_by_id(TaskId after, std::size_t limit) const;

  std::size_t size() const noexcept { return due_count_ + elsewhere_.size(); }
  /// For tests: stops the process unless every invariant holds.
  void check_invariants() const;
  /// For tests: the number of entries in the due order, including entries that do not count.
  std::size_t entry_count() const noexcept;

 private:
  /// The present due time of a task.
  struct Slot {
    TaskId id;
    std::int64_t at = kGone;
  };
  /// A place in the due lane.
  struct Entry {
    std::int64_t at = 0;
    TaskId id;
    friend auto operator<=>(const Entry&, const Entry&) = default;
  };
  struct Run {
    std::vector<Entry> entries;
    std::size_t first = 0;  // entries before this index do not count

    const Entry* begin() const noexcept { return entries.data() + first; }
    const Entry* end() const noexcept { return entries.data() + entries.size(); }
    std::size_t left() const noexcept { return entries.size() - first; }
  };
  static constexpr std::int64_t kGone = -1;       // the task was removed
  static constexpr std::int64_t kElsewhere = -2;  // the task is in another lane

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
  std::vector<Run> runs_;  // each is at least twice as long as the next
  std::map<TaskId, Place> elsewhere_;
  std::set<Place> other_lanes_;
};

}  // namespace detent

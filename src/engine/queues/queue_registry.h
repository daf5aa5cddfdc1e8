// The queues of an engine by name, and the sums of their records.
//
// Invariants, tested by check_invariants():
//  1. The record of a queue with a number is the record that the store will have after the next
//     commit. If it differs from the last commit, the queue is marked, and it is in `changed_`
//     once.
//  2. `counted_` is the sum of Queue::counted over all queues. This is the record of the queue,
//     unless the record has changed since the last commit.
//  3. Each queue is in `sizes_` once, at its index, with the tasks that were counted last.
//  4. Each queue is in `by_name_` once, under its name.
//
// So the sum over all queues costs only a look at the queues that changed in this turn. The largest
// queues are found in `sizes_`, which is contiguous. The queue objects are spread over the memory,
// so a walk over 100 000 of them would cost 100 000 cache misses. If workers ask for a queue that
// never had a task, the queue has no number and is not stored. Thread-compatible.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "base/result.h"
#include "engine/queues/queue.h"
#include "store/store.h"

namespace detent {

/// The not_found error for this queue. It repeats only a valid name, because another text may be
/// long and may have any bytes.
Error no_queue(std::string_view name);

class QueueRegistry {
 public:
  using ByName = std::unordered_map<std::string, std::unique_ptr<Queue>>;

  /// `last_number` is the highest that was ever given to a queue.
  explicit QueueRegistry(std::uint32_t last_number) noexcept : last_number_(last_number) {}

  /// Null if there is no such queue.
  Queue* find(const std::string& name) const noexcept;
  /// Errors: not_found if the queue is not stored and has no staged record.
  Result<Queue*> known(const std::string& name) const;
  /// Returns the queue, and creates it if necessary.
  Queue& queue_of(const std::string& name);
  /// Adds a stored queue.
  Queue& restore(const QueueRecord& record);
  ByName::const_iterator begin() const noexcept { return queues_.begin(); }
  ByName::const_iterator end() const noexcept { return queues_.end(); }
  std::size_t size() const noexcept { return queues_.size(); }
  /// Calls `visit` with each queue after the name `after`, by name, until it returns false.
  /// O(log queues), and O(1) for each visited queue.
  template <class Visit>
  void visit_by_name(std::string_view after, Visit&& visit) const {
    for (auto it = by_name_.upper_bound(after); it != by_name_.end() && visit(*it->second); ++it) {
    }
  }

  /// Puts the record of the queue into the next commit. Gives the queue a number if it has none.
  void note_change(Queue& queue);
  /// Removes the record of the queue with the next commit. Requires: the queue has no tasks.
  void remove(Queue& queue);
  /// Removes the queue unless it is stored or a worker waits for it. Otherwise clients could fill
  /// the memory with invented names.
  void forget_if_unused(Queue& queue);
  /// Adds the changes since the last call to a batch.
  void take_changes(WriteBatch& batch);

  /// The sums over all queues, with the staged changes. O(changes).
  QueueCounts counts() const;
  /// The at most `most` queues with the most tasks, dead tasks included, in any order. O(queues).
  /// Only the sizes of the other queues are read.
  std::vector<const Queue*> largest(std::size_t most) const;

  /// Stops the process if an invariant is broken. O(queues).
  void check_invariants() const;

 private:
  struct Sized {
    std::uint64_t tasks = 0;
    Queue* queue = nullptr;
  };

  static void recount(const Queue& queue, QueueCounts& sums) noexcept;
  void note_counts(Queue& queue) noexcept;

  ByName queues_;
  QueueCounts counted_;
  std::uint32_t last_number_;
  std::vector<Queue*> changed_;
  std::vector<std::string> removed_;
  std::map<std::string_view, const Queue*> by_name_;  // the names are in the queues
  std::vector<Sized> sizes_;                          // the index of a queue is Queue::size_place
};

}  // namespace detent

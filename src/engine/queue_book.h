// The queues of an engine by name, and what their records add up to.
//
// Invariants, tested by check_invariants():
//  1. The record of every queue that has a number is that of the store after the next commit;
//     those that differ from the last one are in `changed_`, once each, and marked.
//  2. `counted_` is the sum of what each queue was counted as last (Queue::counted): its record,
//     unless it has changed since the last commit.
//  3. Each queue is in `sizes_` once, at its place there, with the tasks it was counted with last.
//
// So what all queues hold together costs a look at those of one turn. And which of them are the
// largest: a queue lies wherever it was made, so a walk over 100 000 of them is as many waits for
// memory; their sizes lie side by side. A queue that workers ask for and that never had a task has
// no number, and is not stored. Thread-compatible.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include "base/result.h"
#include "engine/queue.h"
#include "store/store.h"

namespace detent {

class QueueBook {
 public:
  using ByName = std::unordered_map<std::string, std::unique_ptr<Queue>>;

  /// `last_number` is the highest that was ever given to a queue.
  explicit QueueBook(std::uint32_t last_number) noexcept : last_number_(last_number) {}

  /// Null when there is none.
  Queue* find(const std::string& name) const noexcept;
  /// Errors: not_found when nothing of it is stored, nor will be.
  Result<Queue*> known(const std::string& name) const;
  /// Makes it if it is not there.
  Queue& queue_of(const std::string& name);
  /// Takes over what was stored.
  Queue& restore(const QueueRecord& record);
  ByName::const_iterator begin() const noexcept { return queues_.begin(); }
  ByName::const_iterator end() const noexcept { return queues_.end(); }
  std::size_t size() const noexcept { return queues_.size(); }

  /// Its record goes into the next commit, with a number.
  void note_change(Queue& queue);
  /// Its record leaves the store with the next commit. Requires: it has no tasks.
  void remove(Queue& queue);
  /// Forgets it unless it is stored or somebody waits for it: names cost nothing to make up.
  void forget_if_unused(Queue& queue);
  /// Adds to a batch what has changed since the last call.
  void take_changes(WriteBatch& batch);

  /// Of all queues, as they are now. O(changes).
  QueueCounts counts() const;
  /// At most `most` queues, in no order: none that is left out has more tasks, dead ones among
  /// them. O(queues), but of those that are left out only their sizes are read.
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
  std::vector<Sized> sizes_;  // at Queue::size_place
};

}  // namespace detent

// Carries changes of tasks from the engine's thread to one watcher on another thread.
//
// The engine notes each change, and publishes the notes once the commit has made them durable. So
// the watcher never sees a change that a crash could undo. While no watcher is connected, a note
// costs one branch. Both sides are bounded: a watcher that takes too seldom gets the first changes,
// and the number of changes that had no room.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "base/mutex.h"
#include "detent/clock.h"
#include "task/task_change.h"

namespace detent {

class ChangeFeed {
 public:
  /// The most changes that wait for the watcher, and the most changes noted in one turn.
  static constexpr std::size_t kMaxChanges = 4'096;

  // For the engine, on its thread.

  bool is_watched() const noexcept { return is_watched_.load(std::memory_order_relaxed); }
  /// Keeps a change until it is published or dropped.
  void note(TaskChange change);
  /// The noted changes are durable: makes them visible to the watcher. Rings the bell if there were
  /// no visible changes before.
  void publish() DETENT_EXCLUDES(mutex_);
  /// The noted changes may not be durable: removes them.
  void drop() noexcept;

  // Called by the watcher, on its thread.

  /// From now on, the engine notes changes.
  void watch() noexcept { is_watched_.store(true, std::memory_order_relaxed); }
  /// Ends watch(), and drops the changes that were not taken.
  void unwatch() DETENT_EXCLUDES(mutex_);
  struct Taken {
    std::vector<TaskChange> changes;  // oldest first
    std::uint64_t missed = 0;  // changes that had no room, between these changes and the next
  };
  Taken take() DETENT_EXCLUDES(mutex_);
  /// The bell on which the watcher waits. Others may ring it too.
  Doorbell& bell() noexcept { return bell_; }

 private:
  // Synchronises itself.
  Doorbell bell_;
  // Written by the watcher, read by the engine. Relaxed is sufficient: no other data depends on the
  // order, and it does not matter if notes start or end a moment later.
  std::atomic<bool> is_watched_{false};

  // Guarded by mutex_.
  Mutex mutex_;
  Taken waiting_ DETENT_GUARDED_BY(mutex_);

  // Touched only by the engine's thread.
  Taken noted_;
};

}  // namespace detent

// The way of changes from the engine's thread to the one who watches.
//
// The engine notes what happens to tasks while it happens, and publishes it once the commit has
// made it durable: nobody is told what a crash could take back. While nobody watches, a note is one
// branch. Both sides are bounded: who takes too seldom gets the first changes, and the number of
// those that found no room.
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
  /// Most changes that wait to be taken, and most of one turn.
  static constexpr std::size_t kMaxChanges = 4'096;

  // For the engine, on its thread.

  bool is_watched() const noexcept { return is_watched_.load(std::memory_order_relaxed); }
  /// Keeps a change until it is published or dropped.
  void note(TaskChange change);
  /// What was noted has become durable. Rings, if there is something and was nothing before.
  void publish() DETENT_EXCLUDES(mutex_);
  /// What was noted may not have become durable.
  void drop() noexcept;

  // For the one that watches, on its thread.

  /// Changes are told from now on.
  void watch() noexcept { is_watched_.store(true, std::memory_order_relaxed); }
  /// No more; those that wait are forgotten.
  void unwatch() DETENT_EXCLUDES(mutex_);
  struct Taken {
    std::vector<TaskChange> changes;  // in the order in which they happened
    std::uint64_t missed = 0;         // after those, and before what is taken next
  };
  Taken take() DETENT_EXCLUDES(mutex_);
  /// What the one that watches waits on, and others may ring for it.
  Doorbell& bell() noexcept { return bell_; }

 private:
  // Synchronises itself.
  Doorbell bell_;
  // Written by who watches, read by the engine. Relaxed: it orders nothing, and a change that is
  // noted a moment longer or later does no harm.
  std::atomic<bool> is_watched_{false};

  // Guarded by mutex_.
  Mutex mutex_;
  Taken waiting_ DETENT_GUARDED_BY(mutex_);

  // Touched only by the engine's thread.
  Taken noted_;
};

}  // namespace detent

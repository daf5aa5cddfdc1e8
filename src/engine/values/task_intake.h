// The switch with which the owner of an engine makes it refuse new tasks, for example while the
// disk is nearly full. All other verbs continue.
#pragma once

#include <atomic>
#include <utility>

#include "base/mutex.h"
#include "base/result.h"

namespace detent {

/// Thread-safe.
class TaskIntake {
 public:
  /// New tasks are refused with this error from now on.
  void close(Error why) DETENT_EXCLUDES(mutex_) {
    const MutexLock lock(mutex_);
    why_ = std::move(why);
    is_open_.store(false, std::memory_order_release);
  }
  void open() noexcept { is_open_.store(true, std::memory_order_release); }
  bool is_open() const noexcept { return is_open_.load(std::memory_order_acquire); }
  /// Errors: the error of close(), while the intake is closed. An open intake costs one load.
  Result<void> check() const DETENT_EXCLUDES(mutex_) {
    if (is_open()) return ok();
    const MutexLock lock(mutex_);
    return why_;
  }

 private:
  /// Written by the owner of the engine, read by the engine for each new task. Release and acquire,
  /// because `why_` must be set first.
  std::atomic<bool> is_open_ = true;
  mutable Mutex mutex_;
  Error why_ DETENT_GUARDED_BY(mutex_);
};

}  // namespace detent

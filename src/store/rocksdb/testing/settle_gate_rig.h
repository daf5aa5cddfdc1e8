// For tests: holds a settle at a step (StoreStep in open_db.h), so that a test can act at this
// moment.
#pragma once

#include <functional>

#include "base/mutex.h"
#include "store/rocksdb/database/open_db.h"

namespace detent {

/// Holds the settle's thread at `step` until open().
class Gate {
 public:
  explicit Gate(StoreStep step) : step_(step) {}

  /// Returns the function for StoreSeams::at_step.
  std::function<void(StoreStep, rocksdb::DB&)> hook() {
    return [this](StoreStep step, rocksdb::DB&) {
      if (step == StoreStep::settle_done) ++done_;
      if (step != step_) return;
      const MutexLock lock(mu_);
      is_there_ = true;
      moved_.notify_all();
      while (!is_open_) moved_.wait(mu_);
    };
  }
  /// Waits until the settle is at the step.
  void await() {
    const MutexLock lock(mu_);
    while (!is_there_) moved_.wait(mu_);
  }
  void open() {
    const MutexLock lock(mu_);
    is_open_ = true;
    moved_.notify_all();
  }
  int settles_done() const { return done_; }

 private:
  const StoreStep step_;
  int done_ = 0;  // touched by the store's thread only
  Mutex mu_;
  CondVar moved_;
  bool is_there_ DETENT_GUARDED_BY(mu_) = false;
  bool is_open_ DETENT_GUARDED_BY(mu_) = false;
};

}  // namespace detent

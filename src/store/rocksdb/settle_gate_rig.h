// Holds a settle at a step, while a test does what may happen then. For tests.
//
// See StoreStep in open_db.h for the steps.
#pragma once

#include <functional>

#include "base/mutex.h"
#include "store/rocksdb/open_db.h"

namespace detent {

/// Holds the settle's thread at a step while the test changes things.
class Gate {
 public:
  explicit Gate(StoreStep step) : step_(step) {}

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
  int done_ = 0;  // by the store's thread
  Mutex mu_;
  CondVar moved_;
  bool is_there_ DETENT_GUARDED_BY(mu_) = false;
  bool is_open_ DETENT_GUARDED_BY(mu_) = false;
};

}  // namespace detent

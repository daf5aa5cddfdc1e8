// A thread that writes while who asked for it does something else.
#pragma once

#include <rocksdb/status.h>

#include <functional>

#include "base/mutex.h"
#include "base/thread.h"
#include "detent/clock.h"
#include "store/store.h"

namespace detent {

/// Confined to the store's thread. The thread is made with the first write.
class WriteThread {
 public:
  using Write = std::function<rocksdb::Status()>;

  WriteThread() = default;
  ~WriteThread();
  WriteThread(const WriteThread&) = delete;
  WriteThread& operator=(const WriteThread&) = delete;

  /// Runs `write` there and `meanwhile` here; returns when both are over. Where no thread can be
  /// made `write` runs here and `meanwhile` not at all.
  rocksdb::Status run(const Write& write, const WhileWriting& meanwhile);

 private:
  void work();

  // Synchronises itself.
  Doorbell written_{Doorbell::Ringer::work};

  // Guarded by mutex_.
  Mutex mutex_;
  CondVar asked_;
  const Write* write_ DETENT_GUARDED_BY(mutex_) = nullptr;  // null: nothing is to be written
  rocksdb::Status status_ DETENT_GUARDED_BY(mutex_);
  bool is_ending_ DETENT_GUARDED_BY(mutex_) = false;

  // Touched by the store's thread only.
  bool is_started_ = false;
  Thread thread_;  // last: it uses all of the above
};

}  // namespace detent

// A thread that writes to the database while the store's thread does other work.
#pragma once

#include <rocksdb/status.h>

#include <functional>

#include "base/mutex.h"
#include "base/thread.h"
#include "detent/clock.h"
#include "store/store.h"

namespace detent {

/// Confined to the store's thread. The first write starts the thread.
class WriteThread {
 public:
  using Write = std::function<rocksdb::Status()>;

  WriteThread() = default;
  ~WriteThread();
  WriteThread(const WriteThread&) = delete;
  WriteThread& operator=(const WriteThread&) = delete;

  /// Runs `write` on the thread and `meanwhile` on the caller's thread. `meanwhile` gets the bell
  /// that rings when the write is done, and must wait for it. Returns the status of the write. If
  /// no thread can be started, runs `write` on the caller's thread and does not call `meanwhile`.
  rocksdb::Status run(const Write& write, const WhileWriting& meanwhile);

 private:
  void work();

  // Synchronises itself.
  Doorbell written_{Doorbell::Ringer::work};

  // Guarded by mutex_.
  Mutex mutex_;
  CondVar asked_;
  const Write* write_ DETENT_GUARDED_BY(mutex_) = nullptr;  // null: no write is waiting or running
  rocksdb::Status status_ DETENT_GUARDED_BY(mutex_);
  bool is_ending_ DETENT_GUARDED_BY(mutex_) = false;

  // Touched by the store's thread only.
  bool is_started_ = false;
  Thread thread_;  // last: it uses all of the above
};

}  // namespace detent

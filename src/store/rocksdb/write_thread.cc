#include "store/rocksdb/write_thread.h"

#include <system_error>
#include <utility>

#include "detent/check.h"

namespace detent {

WriteThread::~WriteThread() {
  {
    const MutexLock lock(mutex_);
    is_ending_ = true;
    asked_.notify_one();
  }
  thread_.join();
}

rocksdb::Status WriteThread::run(const Write& write, const WhileWriting& meanwhile) {
  try {
    if (!is_started_) thread_ = Thread([this] { work(); });
    is_started_ = true;
  } catch (const std::system_error&) {
    return write();
  }
  {
    const MutexLock lock(mutex_);
    DETENT_CHECK(write_ == nullptr && !is_ending_);
    write_ = &write;
    asked_.notify_one();
  }
  meanwhile(written_);
  const MutexLock lock(mutex_);
  DETENT_CHECK(write_ == nullptr);  // otherwise `write` would be used after it is destroyed
  return status_;
}

/// Stores the status before it rings the bell, because run() reads the status after the bell.
void WriteThread::work() {
  for (;;) {
    const Write* write = nullptr;
    {
      const MutexLock lock(mutex_);
      while (write_ == nullptr && !is_ending_) asked_.wait(mutex_);
      if (write_ == nullptr) return;
      write = write_;
    }
    rocksdb::Status status = (*write)();
    {
      const MutexLock lock(mutex_);
      write_ = nullptr;
      status_ = std::move(status);
    }
    written_.ring();
  }
}

}  // namespace detent

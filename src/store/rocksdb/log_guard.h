// Keeps failures of the write-ahead log from RocksDB, and tells the store of them instead.
//
// RocksDB 7.8 with its assertions on, as Debian builds it, stops the process when a log in which an
// append or a sync has failed is touched once more, and a flush on a thread of RocksDB's may do so
// at any moment. But the store closes the database after a failed write anyway (contract 2). So the
// first failure of a log is kept here. From then on nothing more gets into any log, though RocksDB
// is told that all is well; and the manifest takes nothing more, so that nothing on disk can build
// on what never got into the log, and no file is removed: the folder stays what a crash at that
// moment leaves. Whoever writes asks status() before believing that a write is there.
//
// It also syncs a log before another is begun. RocksDB begins one when it flushes, on whatever
// thread, and leaves what was not synced in the old one to the power, while what is written to the
// new one may survive: a gap between two logs, which neither of them shows.
//
// And it has a log reserved in such a way that it grows at once: to sync what is written into zeros
// takes less than to sync a new size too, as it is with RocksDB's own way. So a log may end in
// zeros after a crash (wal_check.h); closing cuts them off. Where a file system reserves nothing, a
// log grows as it is written.
#pragma once

#include <rocksdb/env.h>

#include <memory>
#include <string>

namespace detent {

/// Thread-safe. What RocksDB gets for the system. Cost: an uncontended lock an operation on a log.
class LogGuard final : public rocksdb::EnvWrapper {
 public:
  /// `target` must outlive it, and it the database.
  explicit LogGuard(rocksdb::Env& target);
  ~LogGuard() override;
  const char* Name() const override { return "LogGuard"; }

  /// Ok, or the first failure.
  rocksdb::Status status() const;
  /// From now on it is as if a log had failed.
  void fail(const std::string& why);

 private:
  class Latch;
  class Log;
  class Manifest;
  class Files;

  const std::shared_ptr<Latch> latch_;  // shared with the files, which RocksDB owns
};

}  // namespace detent

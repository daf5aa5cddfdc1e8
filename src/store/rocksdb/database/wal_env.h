// A layer between RocksDB and the file system that changes how write-ahead logs are written. It
// does three things.
//
// *It hides failures of a log from RocksDB.* RocksDB 7.8 with assertions, as Debian builds it,
// stops the process if a log is used again after a failed append or sync. A flush on one of
// RocksDB's threads can do so at any time. The store closes the database after a failed write
// anyway (contract 2 in store/store.h). So the guard keeps the first failure, and RocksDB sees only
// successes. After a failure:
//  - Nothing more is written to any log.
//  - Appends to the manifest fail, so no file on disk depends on a write that the log does not
//    have.
//  - Files are not deleted, so the folder stays as a crash at this moment would leave it.
// The writing code must check status() before it reports success.
//
// *It syncs a log before the next log is created.* RocksDB creates a log when it flushes, on any
// thread. It does not sync the rest of the old log. After a power loss, the old log could miss its
// last writes while the new log has later ones. Such a gap would be visible in neither log.
//
// *It reserves the disk space of a log so that the file grows at once.* Appends then overwrite
// zeros. Syncing them is faster than syncing a new file size too, as with RocksDB's own way to
// reserve space. So after a crash a log may end in zeros (wal_check.h). Closing a log cuts them
// off. If a file system cannot reserve space, the file grows with each write.
//
// A checkpoint of the database is written through this layer too. Its files are ordinary files: a
// full disk must fail the checkpoint and not the store.
#pragma once

#include <rocksdb/env.h>

#include <memory>
#include <string>

namespace detent {

/// RocksDB uses it in place of the system's Env. Thread-safe. Each operation on a log takes an
/// uncontended lock.
class WalEnv final : public rocksdb::EnvWrapper {
 public:
  /// `target` must outlive this object, and this object must outlive the database. The names of all
  /// files of checkpoints begin with `checkpoints`; empty: there are none.
  explicit WalEnv(rocksdb::Env& target, std::string checkpoints = {});
  ~WalEnv() override;
  const char* Name() const override { return "WalEnv"; }

  /// Returns ok, or the first failure.
  rocksdb::Status status() const;
  /// From now on behaves as if a log had failed.
  void fail(const std::string& why);

 private:
  class Latch;
  class Log;
  class Manifest;
  class Files;

  const std::shared_ptr<Latch> latch_;  // shared with the files, which RocksDB owns
};

}  // namespace detent

// The server's part of `detent backup`: it makes a checkpoint of its store, and the command copies
// the checkpoint. So no request names a folder, and nobody can make the server write elsewhere than
// into its data folder.
//
// A checkpoint that the command has locked is never removed. Others are removed when a backup ends,
// when the next backup begins, and when the store is opened.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "base/mutex.h"
#include "base/result.h"
#include "base/thread.h"
#include "detent/clock.h"
#include "detent/unique_function.h"
#include "protocol/json/backup_codec.h"
#include "server/operate/process_figures.h"
#include "store/checkpoints.h"

namespace detent::server {

class DiskWatch;

/// The file in the data folder with the figures of the last backup, so that a restart of the server
/// does not lose them.
inline constexpr const char* kLastBackupFile = "last-backup";
/// Writes the file. Errors: unavailable.
Result<void> note_backup(const std::string& data, const BackupFigures& figures);

struct BackupsOptions {
  std::string data;                          // the path of the store
  std::shared_ptr<Checkpoints> checkpoints;  // of this store
  const DiskWatch* disk = nullptr;           // must outlive this; null: the disk is not checked
};

/// Works on a thread of its own, because a flush can take seconds. Thread-safe.
class Backups {
 public:
  /// A checkpoint first flushes the write buffers. With less free space, none is made.
  static constexpr std::uint64_t kLeastFree = std::uint64_t{128} << 20;

  /// `clock` must outlive it.
  Backups(BackupsOptions options, const Clock& clock);
  /// Waits for the running step.
  ~Backups() = default;
  Backups(const Backups&) = delete;
  Backups& operator=(const Backups&) = delete;

  /// Makes a checkpoint. `done` runs on a thread of this object
  /// or on the calling thread, and calls no function of this object. Errors: conflict while another
  /// backup runs; unavailable if the store has failed or its disk is nearly full.
  void begin(UniqueFunction<void(Result<json::BackupBegun>)> done) DETENT_EXCLUDES(mutex_);
  /// Removes the checkpoint, and notes the figures of a complete backup. `done` is as in begin().
  void end(const json::BackupEnd& end, UniqueFunction<void(Result<void>)> done)
      DETENT_EXCLUDES(mutex_);
  /// The last complete backup, also of an earlier run of the server.
  std::optional<BackupFigures> last() const DETENT_EXCLUDES(mutex_);

 private:
  void start(UniqueFunction<void()> step, UniqueFunction<void(Error)> refuse)
      DETENT_EXCLUDES(mutex_);
  void ended() DETENT_EXCLUDES(mutex_);
  Result<json::BackupBegun> make();
  Result<void> finish(const json::BackupEnd& end) DETENT_EXCLUDES(mutex_);
  Result<void> expect_space() const;

  // Constant after construction.
  const BackupsOptions options_;
  const Clock& clock_;

  mutable Mutex mutex_;
  bool is_busy_ DETENT_GUARDED_BY(mutex_) = false;
  std::optional<BackupFigures> last_ DETENT_GUARDED_BY(mutex_);
  Thread thread_ DETENT_GUARDED_BY(mutex_);
};

}  // namespace detent::server

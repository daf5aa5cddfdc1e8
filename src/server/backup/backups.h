// The server's part of `detent backup`: it makes a checkpoint of its store, and the command copies
// the checkpoint. So no request names a folder, and nobody can make the server write elsewhere than
// into its data folder.
//
// A checkpoint that the command has locked is never removed. Others are removed when a backup ends,
// when the next backup begins, and when the store is opened.
#pragma once

#include <chrono>
#include <cstdint>
#include <deque>
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
  /// A command locks its checkpoint in this time. Until then, no other backup begins.
  static constexpr std::chrono::minutes kTimeToLock{1};

  /// `clock` must outlive it.
  Backups(BackupsOptions options, const Clock& clock);
  /// As stop().
  ~Backups() = default;
  Backups(const Backups&) = delete;
  Backups& operator=(const Backups&) = delete;

  /// Makes a checkpoint. `done` runs on a thread of this object or on the calling thread, and calls
  /// no function of this object. Errors: conflict while another backup runs; unavailable if the
  /// store has failed, if its disk is nearly full, or after stop().
  void begin(UniqueFunction<void(Result<json::BackupBegun>)> done) DETENT_EXCLUDES(mutex_);
  /// Notes the figures of a complete backup, and removes the checkpoint if `made_at` is missing or
  /// the time of the last begin. So a late end does not disturb the backup that has begun since.
  /// Waits for running steps. `done` is as in begin(). Errors: invalid_argument if `made_at` is in
  /// the future; unavailable if the data folder cannot be written, or after stop().
  void end(const json::BackupEnd& end, UniqueFunction<void(Result<void>)> done)
      DETENT_EXCLUDES(mutex_);
  /// Waits for the running steps and their answers, and refuses others.
  void stop() DETENT_EXCLUDES(mutex_);
  /// The last complete backup, also of an earlier run of the server.
  std::optional<BackupFigures> last() const DETENT_EXCLUDES(mutex_);

 private:
  /// Works, and returns what gives the answer.
  using Step = UniqueFunction<UniqueFunction<void()>()>;
  /// What to do with a step while another step runs.
  enum class Busy : std::uint8_t { refuse, wait };
  struct Begun {
    WallTime made_at{};
    MonotonicTime at{};
  };

  void start(Step step, Busy busy, UniqueFunction<void(Error)> refuse) DETENT_EXCLUDES(mutex_);
  void run_steps() DETENT_EXCLUDES(mutex_);
  Result<json::BackupBegun> make();
  Result<void> finish(const json::BackupEnd& end) DETENT_EXCLUDES(mutex_);
  Result<void> note(const json::BackupEnd& end) DETENT_EXCLUDES(mutex_);
  Result<void> expect_space() const;

  // Constant after construction.
  const BackupsOptions options_;
  const Clock& clock_;

  // Used only by steps, which run one after another. Empty: no backup of this run has begun, or it
  // has ended.
  std::optional<Begun> begun_;

  mutable Mutex mutex_;
  bool is_busy_ DETENT_GUARDED_BY(mutex_) = false;
  bool is_stopped_ DETENT_GUARDED_BY(mutex_) = false;
  std::deque<Step> steps_ DETENT_GUARDED_BY(mutex_);  // that have not begun
  std::optional<BackupFigures> last_ DETENT_GUARDED_BY(mutex_);
  Thread thread_ DETENT_GUARDED_BY(mutex_);
};

}  // namespace detent::server

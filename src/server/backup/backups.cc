#include "server/backup/backups.h"

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <system_error>
#include <utility>

#include "base/log/log.h"
#include "base/wall_time.h"
#include "server/operate/disk_watch.h"

namespace detent::server {
namespace {

namespace fs = std::filesystem;

std::optional<BackupFigures> read_last(const std::string& data) {
  std::ifstream file(data + "/" + kLastBackupFile);
  std::int64_t made_at = 0;
  BackupFigures last;
  if (!(file >> made_at >> last.bytes >> last.copied_bytes)) return std::nullopt;
  last.made_at = WallTime{std::chrono::milliseconds{made_at}};
  return last;
}

}  // namespace

Result<void> note_backup(const std::string& data, const BackupFigures& figures) {
  const std::string file = data + "/" + kLastBackupFile;
  const std::string part = file + ".part";
  {
    std::ofstream out(part, std::ios::trunc);
    out << figures.made_at.time_since_epoch().count() << ' ' << figures.bytes << ' '
        << figures.copied_bytes << '\n';
  }
  std::error_code error;
  fs::rename(part, file, error);
  if (!error) return ok();
  return Error{ErrorCode::unavailable, "write '" + file + "': " + error.message(), ""};
}

Backups::Backups(BackupsOptions options, const Clock& clock)
    : options_(std::move(options)), clock_(clock), last_(read_last(options_.data)) {}

void Backups::begin(UniqueFunction<void(Result<json::BackupBegun>)> done) {
  auto shared = std::make_shared<UniqueFunction<void(Result<json::BackupBegun>)>>(std::move(done));
  start(
      [this, shared] {
        Result<json::BackupBegun> begun = make();
        ended();
        (*shared)(std::move(begun));
      },
      [shared](Error error) { (*shared)(std::move(error)); });
}

void Backups::end(const json::BackupEnd& end, UniqueFunction<void(Result<void>)> done) {
  auto shared = std::make_shared<UniqueFunction<void(Result<void>)>>(std::move(done));
  start(
      [this, shared, end] {
        const Result<void> outcome = finish(end);
        ended();
        (*shared)(outcome);
      },
      [shared](Error error) { (*shared)(std::move(error)); });
}

std::optional<BackupFigures> Backups::last() const {
  const MutexLock lock(mutex_);
  return last_;
}

/// Runs one step at a time.
void Backups::start(UniqueFunction<void()> step, UniqueFunction<void(Error)> refuse) {
  {
    const MutexLock lock(mutex_);
    if (!is_busy_) {
      is_busy_ = true;
      // The previous thread at most gives its answer, so replacing it waits for no work.
      thread_ = Thread([step = std::move(step)]() mutable { step(); });
      return;
    }
  }
  refuse({ErrorCode::conflict, "another backup has begun: retry when it has ended", ""});
}

/// A step ends before its answer is given, so the answer can be followed by the next step.
void Backups::ended() {
  const MutexLock lock(mutex_);
  is_busy_ = false;
}

Result<json::BackupBegun> Backups::make() {
  ASSIGN_OR_RETURN(const std::size_t in_use, remove_checkpoints(options_.data));
  if (in_use > 0) {
    return Error{ErrorCode::conflict, "another backup is being copied: retry when it has ended",
                 ""};
  }
  TRY(expect_space());
  json::BackupBegun begun;
  begun.made_at = std::chrono::floor<std::chrono::milliseconds>(clock_.wall_now());
  ASSIGN_OR_RETURN(const std::string path, options_.checkpoints->make(options_.data));
  begun.folder = fs::absolute(path).string();
  begun.data = fs::absolute(options_.data).string();
  return begun;
}

Result<void> Backups::finish(const json::BackupEnd& end) {
  TRY(remove_checkpoints(options_.data));
  if (!end.is_complete()) {
    log_warning("a backup failed; earlier backups stay as they are",
                {{"action", "correct the cause that the command has printed, and repeat it"}});
    return ok();
  }
  const BackupFigures figures{
      .made_at = end.made_at, .bytes = end.bytes, .copied_bytes = end.copied_bytes};
  log_info("a backup is complete", {{"made_at", format_rfc3339(end.made_at)},
                                    {"bytes", end.bytes},
                                    {"copied_bytes", end.copied_bytes}});
  {
    const MutexLock lock(mutex_);
    last_ = figures;
  }
  return note_backup(options_.data, figures);
}

Result<void> Backups::expect_space() const {
  const std::optional<DiskFigures> disk =
      options_.disk != nullptr ? options_.disk->figures() : std::nullopt;
  if (!disk) return ok();
  const std::uint64_t least = std::max(disk->min_free_bytes, kLeastFree);
  if (disk->free_bytes >= least) return ok();
  return Error{ErrorCode::unavailable,
               "the disk of the data folder is nearly full: " +
                   std::to_string(disk->free_bytes >> 20) + " MiB are free, a backup needs " +
                   std::to_string(least >> 20) + " MiB; free space on this disk, and retry",
               ""};
}

}  // namespace detent::server

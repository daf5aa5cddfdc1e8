#include "server/backup/backups.h"

#include <algorithm>
#include <cerrno>
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

Error another_has_begun() {
  return {ErrorCode::conflict, "another backup has begun: retry when it has ended, or in a minute",
          ""};
}

}  // namespace

Result<void> note_backup(const std::string& data, const BackupFigures& figures) {
  const std::string file = data + "/" + kLastBackupFile;
  const std::string part = file + ".part";
  {
    std::ofstream out(part, std::ios::trunc);
    out << figures.made_at.time_since_epoch().count() << ' ' << figures.bytes << ' '
        << figures.copied_bytes << '\n';
    out.close();
    if (!out) {
      return Error{ErrorCode::unavailable,
                   "write '" + part + "': " + std::generic_category().message(errno), ""};
    }
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
      [this, shared]() -> UniqueFunction<void()> {
        return [shared, begun = make()] { (*shared)(begun); };
      },
      Busy::refuse, [shared](Error error) { (*shared)(std::move(error)); });
}

void Backups::end(const json::BackupEnd& end, UniqueFunction<void(Result<void>)> done) {
  auto shared = std::make_shared<UniqueFunction<void(Result<void>)>>(std::move(done));
  start(
      [this, shared, end]() -> UniqueFunction<void()> {
        return [shared, outcome = finish(end)] { (*shared)(outcome); };
      },
      Busy::wait, [shared](Error error) { (*shared)(std::move(error)); });
}

void Backups::stop() {
  Thread running;
  {
    const MutexLock lock(mutex_);
    is_stopped_ = true;
    running = std::move(thread_);
  }
  running.join();
}

std::optional<BackupFigures> Backups::last() const {
  const MutexLock lock(mutex_);
  return last_;
}

void Backups::start(Step step, Busy busy, UniqueFunction<void(Error)> refuse) {
  Error refusal = another_has_begun();
  {
    const MutexLock lock(mutex_);
    if (is_stopped_) {
      refusal = {ErrorCode::unavailable, "the server is stopping", ""};
    } else if (!is_busy_ || busy == Busy::wait) {
      steps_.push_back(std::move(step));
      if (is_busy_) return;
      is_busy_ = true;
      // The previous thread at most gives its answer, so replacing it waits for no work.
      thread_ = Thread([this] { run_steps(); });
      return;
    }
  }
  refuse(std::move(refusal));
}

/// A step ends before its answer is given, so the answer can be followed by the next step.
void Backups::run_steps() {
  for (bool is_last = false; !is_last;) {
    Step step;
    {
      const MutexLock lock(mutex_);
      step = std::move(steps_.front());
      steps_.pop_front();
    }
    UniqueFunction<void()> answer = step();
    {
      const MutexLock lock(mutex_);
      is_last = steps_.empty();
      is_busy_ = !is_last;
    }
    answer();
  }
}

Result<json::BackupBegun> Backups::make() {
  if (begun_ && clock_.now() - begun_->at < kTimeToLock) return another_has_begun();
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
  begun_ = {.made_at = begun.made_at, .at = clock_.now()};
  return begun;
}

Result<void> Backups::finish(const json::BackupEnd& end) {
  const bool is_of_begun = begun_ && end.made_at == begun_->made_at;
  // In milliseconds, because a distant time in nanoseconds overflows.
  const WallTime now = std::chrono::floor<std::chrono::milliseconds>(clock_.wall_now());
  if (!is_of_begun && end.made_at > now) {
    return Error{ErrorCode::invalid_argument,
                 "made_at must not be in the future, got " + format_rfc3339(end.made_at),
                 "made_at"};
  }
  Result<void> noted = note(end);
  if (begun_ && !is_of_begun && end.made_at != WallTime{}) return noted;
  begun_.reset();
  const Result<std::size_t> removed = remove_checkpoints(options_.data);
  TRY(noted);
  if (!removed) return removed.error();
  return ok();
}

Result<void> Backups::note(const json::BackupEnd& end) {
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

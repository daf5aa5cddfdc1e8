// Restores a backup: backup_folder.h describes it.
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <cstdio>
#include <filesystem>
#include <iterator>
#include <memory>
#include <string_view>
#include <system_error>

#include "base/open_file.h"
#include "base/rng.h"
#include "base/wall_time.h"
#include "store/meta_format.h"
#include "store/rocksdb/backup_folder.h"
#include "store/rocksdb/changes.h"
#include "store/rocksdb/database/data_folder.h"
#include "store/rocksdb/database/meta_keys.h"
#include "store/rocksdb/database/open_db.h"
#include "store/rocksdb/opened_backups.h"

namespace detent {

namespace {

namespace fs = std::filesystem;

Error file_error(const char* verb, const std::string& path, const std::error_code& error) {
  return {ErrorCode::unavailable, std::string(verb) + " '" + path + "': " + error.message(), ""};
}

/// Of the folder's store, the numbers that must not be used again.
struct Fresh {
  std::uint64_t epoch = 0;
  std::uint64_t last_id = 0;
};

/// The backed-up store may have gone on after the backup, and other folders may have been restored
/// from it. The time since 2020 separates them. A second has 16 384 ids, so ids of a folder that
/// was restored before stay lower if its server accepted fewer tasks per second, on average. The
/// fixed steps cover a clock that is behind.
Fresh above(std::uint64_t epoch, TaskId last_id, WallTime now) {
  constexpr WallTime kStart{std::chrono::sys_days{std::chrono::year{2020} / 1 / 1}};
  constexpr std::uint64_t kEpochs = std::uint64_t{1} << 16;
  constexpr std::uint64_t kIds = std::uint64_t{1} << 32;
  constexpr int kIdsPerSecondBits = 14;
  const auto seconds = static_cast<std::uint64_t>(
      std::max<std::int64_t>(0, std::chrono::floor<std::chrono::seconds>(now - kStart).count()));
  const std::uint64_t count = last_id.value >> TaskId::kShardBits;
  const std::uint64_t next = std::max(count + kIds, seconds << kIdsPerSecondBits);
  const std::uint64_t most = (TaskId::kEnd >> TaskId::kShardBits) - 1;
  return {.epoch = std::max(epoch + kEpochs, seconds),
          .last_id = std::max(count, std::min(next, most)) << TaskId::kShardBits};
}

std::string new_identity() {
  std::array<char, 34> text{};
  std::snprintf(text.data(), text.size(), "%016llx-%016llx",
                static_cast<unsigned long long>(random_seed()),
                static_cast<unsigned long long>(random_seed()));
  return text.data();
}

/// Opens the copy, which also checks that this program can read it, and writes the new numbers.
Result<void> make_fresh(const std::string& folder, WallTime now) {
  constexpr std::size_t kOpenFiles = 64;
  ASSIGN_OR_RETURN(const std::unique_ptr<OpenDb> db,
                   OpenDb::open({.path = folder,
                                 .folder = DataFolderIs::there,
                                 .cache_bytes = std::size_t{8} << 20,
                                 .open_files = kOpenFiles}));
  ASSIGN_OR_RETURN(const std::uint64_t epoch, db->read_number(kEpochKey));
  ASSIGN_OR_RETURN(const std::uint64_t last_id, db->read_number(kLastIdKey));
  const Fresh fresh = above(epoch, TaskId{last_id}, now);
  Changes changes(*db);
  changes.set_meta(kEpochKey, number_bytes(fresh.epoch));
  changes.set_meta(kLastIdKey, number_bytes(fresh.last_id));
  changes.set_meta(kIdentityKey, new_identity());
  const rocksdb::Status status = changes.write(Durability::synced);
  if (!status.ok()) return to_error("write data folder '" + folder + "'", status);
  return ok();
}

Result<void> expect_empty(const std::string& data) {
  std::error_code error;
  std::string other;
  for (fs::directory_iterator entry(data, error); !error && entry != fs::directory_iterator();
       entry.increment(error)) {
    const std::string name = entry->path().filename().string();
    if (name != "detent.lock" && name != "lost+found") other = name;
  }
  if (error) return file_error("list", data, error);
  if (other.empty()) return ok();
  return Error{ErrorCode::conflict,
               "data folder '" + data + "' is not empty: it has '" + other +
                   "'; name a new or an empty folder with --data",
               "data"};
}

/// Writes a file that only its owner can read, and syncs it.
Result<void> write_file(const std::string& path, std::string_view text) {
  const OpenFile file(path, O_WRONLY | O_CREAT | O_TRUNC, 0600);
  const auto size = static_cast<ssize_t>(text.size());
  const bool is_written =
      file.is_open() && ::write(file.descriptor(), text.data(), text.size()) == size && file.sync();
  if (is_written) return ok();
  return file_error("write", path, std::error_code(errno, std::generic_category()));
}

/// Moves the files of `from` up into `data`, CURRENT last, and removes `from`.
Result<void> move_up(const std::string& from, const std::string& data) {
  std::error_code error;
  for (const char* name : {"LOCK", "detent.lock", "settle"})
    fs::remove_all(from + "/" + name, error);
  std::vector<std::string> names;
  for (fs::directory_iterator entry(from, error); !error && entry != fs::directory_iterator();
       entry.increment(error)) {
    names.push_back(entry->path().filename().string());
  }
  std::stable_partition(names.begin(), names.end(),
                        [](const std::string& name) { return name != "CURRENT"; });
  for (const std::string& name : names) {
    if (!error) fs::rename(fs::path(from) / name, fs::path(data) / name, error);
  }
  static_cast<void>(sync_folder(data));
  if (!error) fs::remove(from, error);
  static_cast<void>(sync_folder(data));
  if (error) return file_error("move the restored files of", from, error);
  return ok();
}

/// root may restore a folder for the user of a service. The files then get the owner of the folder.
Result<void> give_to_owner(const std::string& data) {
  struct stat status {};
  if (::geteuid() != 0 || ::stat(data.c_str(), &status) != 0) return ok();
  std::error_code error;
  for (fs::directory_iterator entry(data, error); !error && entry != fs::directory_iterator();
       entry.increment(error)) {
    if (::lchown(entry->path().c_str(), status.st_uid, status.st_gid) != 0) {
      return file_error("set the owner of", entry->path().string(),
                        std::error_code(errno, std::generic_category()));
    }
  }
  return ok();
}

std::string numbers_of(const std::vector<StoredBackup>& all) {
  std::string text;
  for (const StoredBackup& backup : all) {
    if (!backup.damage.empty()) continue;
    text += (text.empty() ? "" : ", ") + std::to_string(backup.number);
  }
  return text.empty() ? "none" : text;
}

/// The chosen backup. A damaged newest backup is not replaced by an older one without being asked.
Result<StoredBackup> choose(const BackupRestore& restore, const std::vector<StoredBackup>& all) {
  if (all.empty()) {
    return backup_folder_error(ErrorCode::not_found, restore.folder,
                               "has no complete backup: run `detent backup` first");
  }
  const auto found = restore.number ? std::ranges::find(all, *restore.number, &StoredBackup::number)
                                    : std::prev(all.end());
  if (found != all.end()) return *found;
  return backup_folder_error(
      ErrorCode::not_found, restore.folder,
      "has no backup " + std::to_string(*restore.number) + "; it has: " + numbers_of(all));
}

Error damaged(const BackupRestore& restore, const StoredBackup& chosen, const std::string& what) {
  return backup_folder_error(ErrorCode::data_loss, restore.folder,
                             "cannot be used: backup " + std::to_string(chosen.number) +
                                 " is damaged: " + what +
                                 "; restore an earlier backup with --backup N (`detent backup " +
                                 restore.folder + " --check` shows which backups are whole)");
}

}  // namespace

Result<StoredBackup> restore_backup(const BackupRestore& restore) {
  ASSIGN_OR_RETURN(const LockedBackups lock,
                   LockedBackups::open(restore.folder, LockedBackups::Use::read));
  ASSIGN_OR_RETURN(const auto engine,
                   open_backup_engine<rocksdb::BackupEngineReadOnly>(restore.folder));
  ASSIGN_OR_RETURN(StoredBackup chosen, choose(restore, backups_in(*engine, BackupCheck::sizes)));
  const rocksdb::Status sound = engine->VerifyBackup(chosen.number, true);
  if (!sound.ok()) return damaged(restore, chosen, sound.ToString());
  rocksdb::BackupInfo info;
  static_cast<void>(engine->GetBackupInfo(chosen.number, &info));
  const Result<BackupDescription> described = parse_backup_description(info.app_metadata);
  if (!described && described.error().code != ErrorCode::data_loss) {
    return backup_folder_error(
        described.error().code, restore.folder,
        "has backup " + std::to_string(chosen.number) + ": " + described.error().message);
  }
  if (!described) return damaged(restore, chosen, described.error().message);
  // Checked before the folder is locked, because locking creates a file.
  std::error_code error;
  const bool is_there = fs::exists(restore.data, error);
  if (error) return file_error("open", restore.data, error);
  if (is_there) TRY(expect_empty(restore.data));
  ASSIGN_OR_RETURN(const DataFolder data, DataFolder::open(restore.data));
  TRY(expect_empty(restore.data));
  const std::string copy = restore.data + "/" + kRestoring;
  if (::mkdir(copy.c_str(), 0700) != 0) {
    return file_error("create", copy, std::error_code(errno, std::generic_category()));
  }
  const rocksdb::Status copied = engine->RestoreDBFromBackup(chosen.number, copy, copy);
  if (!copied.ok()) {
    return to_error("copy backup " + std::to_string(chosen.number) + " to '" + copy + "'", copied);
  }
  TRY(make_fresh(copy, restore.now));
  if (!described->webhook_key.empty()) {
    TRY(write_file(restore.data + "/" + kWebhookKeyFile, described->webhook_key));
  }
  TRY(write_file(restore.data + "/" + kRestoredFile,
                 "backup=" + std::to_string(chosen.number) +
                     "\nmade_at=" + format_rfc3339(chosen.made_at) + "\nof=" + chosen.folder +
                     "\nbackup_folder=" + restore.folder +
                     "\nrestored_at=" + format_rfc3339(restore.now) + "\n"));
  TRY(move_up(copy, restore.data));
  TRY(give_to_owner(restore.data));
  return chosen;
}

}  // namespace detent

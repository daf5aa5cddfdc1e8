#include "store/rocksdb/opened_backups.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <cstdio>
#include <filesystem>
#include <system_error>

#include "base/crc32c.h"
#include "store/rocksdb/backup_folder.h"

namespace detent {

namespace {

namespace fs = std::filesystem;

constexpr std::string_view kDescriptionVersion = "detent-backup 1 ";

std::string reason(int error) { return std::generic_category().message(error); }

std::string hex_of(std::uint32_t number) {
  std::array<char, 9> text{};
  std::snprintf(text.data(), text.size(), "%08x", number);
  return text.data();
}

std::string take_line(std::string_view& text) {
  const std::size_t end = std::min(text.find('\n'), text.size());
  std::string line(text.substr(0, end));
  text.remove_prefix(std::min(end + 1, text.size()));
  return line;
}

/// Refuses a folder with other files, so that a wrong path does no harm.
Result<void> make(const std::string& path) {
  if (::mkdir(path.c_str(), 0700) != 0 && errno != EEXIST) {
    return backup_folder_error(ErrorCode::unavailable, path, "cannot be created: " + reason(errno));
  }
  std::error_code error;
  if (fs::exists(path + "/" + kBackupMark, error)) return ok();
  fs::directory_iterator entry(path, error);
  if (error) {
    return backup_folder_error(ErrorCode::unavailable, path,
                               "cannot be listed: " + error.message());
  }
  for (; !error && entry != fs::directory_iterator(); entry.increment(error)) {
    const std::string name = entry->path().filename().string();
    if (name == "lost+found") continue;
    return backup_folder_error(
        ErrorCode::conflict, path,
        "has other files, such as '" + name +
            "': name an empty folder, or a folder that `detent backup` wrote");
  }
  return ok();
}

}  // namespace

Error backup_folder_error(ErrorCode code, const std::string& folder, const std::string& problem) {
  return {code, "backup folder '" + folder + "' " + problem, ""};
}

/// The lines of a description: its version with a checksum, then one value each. The contents of
/// the key file are the rest.
std::string to_text(const BackupDescription& described) {
  std::string data = described.data;
  std::ranges::replace(data, '\n', ' ');  // only shown to people
  const std::string body = std::to_string(described.made_at.time_since_epoch().count()) + "\n" +
                           described.store + "\n" + data + "\n" + described.program + "\n" +
                           described.webhook_key;
  return std::string(kDescriptionVersion) + hex_of(crc32c(body)) + "\n" + body;
}

Result<BackupDescription> parse_backup_description(std::string_view text) {
  const std::string first = take_line(text);
  if (!first.starts_with("detent-backup ")) {
    return Error{ErrorCode::data_loss, "its description is missing or damaged", ""};
  }
  if (!first.starts_with(kDescriptionVersion)) {
    return Error{ErrorCode::invalid_argument,
                 "a newer version of Detent made it: use that version, or a later one", ""};
  }
  if (first.substr(kDescriptionVersion.size()) != hex_of(crc32c(text))) {
    return Error{ErrorCode::data_loss, "its description has a wrong checksum", ""};
  }
  BackupDescription described;
  const std::string made_at = take_line(text);
  std::int64_t ms = 0;
  std::from_chars(made_at.data(), made_at.data() + made_at.size(), ms);
  described.made_at = WallTime{std::chrono::milliseconds{ms}};
  described.store = take_line(text);
  described.data = take_line(text);
  described.program = take_line(text);
  described.webhook_key = text;
  return described;
}

Result<LockedBackups> LockedBackups::open(const std::string& path, Use use) {
  if (use == Use::write) TRY(make(path));
  const std::string mark = path + "/" + kBackupMark;
  const int file =
      ::open(mark.c_str(), O_RDONLY | O_CLOEXEC | (use == Use::write ? O_CREAT : 0), 0600);
  if (file < 0 && errno == ENOENT) {
    return backup_folder_error(ErrorCode::not_found, path,
                               "has no backups: name a folder that `detent backup` wrote");
  }
  if (file < 0) {
    return backup_folder_error(ErrorCode::unavailable, path, "cannot be opened: " + reason(errno));
  }
  LockedBackups folder(file);
  if (::flock(file, (use == Use::write ? LOCK_EX : LOCK_SH) | LOCK_NB) != 0) {
    return backup_folder_error(
        ErrorCode::unavailable, path,
        errno == EWOULDBLOCK ? "is in use by another detent backup or restore; wait for its end"
                             : "cannot be locked: " + reason(errno));
  }
  return folder;
}

LockedBackups::~LockedBackups() {
  if (file_ >= 0) ::close(file_);
}

StoredBackup stored_backup(const rocksdb::BackupInfo& info) {
  StoredBackup backup{.number = info.backup_id, .bytes = info.size, .files = info.number_files};
  Result<BackupDescription> described = parse_backup_description(info.app_metadata);
  if (!described) {
    backup.damage = described.error().message;
    return backup;
  }
  backup.made_at = described->made_at;
  backup.folder = std::move(described->data);
  backup.program = std::move(described->program);
  return backup;
}

/// All complete backups, oldest first.
std::vector<StoredBackup> backups_in(const rocksdb::BackupEngineReadOnlyBase& engine,
                                     BackupCheck check) {
  std::vector<rocksdb::BackupInfo> infos;
  engine.GetBackupInfo(&infos);
  std::vector<StoredBackup> all;
  for (const rocksdb::BackupInfo& info : infos) all.push_back(stored_backup(info));
  std::vector<rocksdb::BackupID> damaged;
  engine.GetCorruptedBackups(&damaged);
  for (const rocksdb::BackupID id : damaged) all.push_back({.number = id});
  std::ranges::sort(all, {}, &StoredBackup::number);
  for (StoredBackup& backup : all) {
    const rocksdb::Status found =
        engine.VerifyBackup(backup.number, check == BackupCheck::checksums);
    if (!found.ok()) backup.damage = found.ToString();
  }
  return all;
}

}  // namespace detent

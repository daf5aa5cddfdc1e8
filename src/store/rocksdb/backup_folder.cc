#include "store/rocksdb/backup_folder.h"

#include <fcntl.h>
#include <rocksdb/db.h>
#include <rocksdb/utilities/backup_engine.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <filesystem>
#include <memory>
#include <set>
#include <system_error>
#include <utility>

#include "base/open_file.h"
#include "base/read_file.h"
#include "store/rocksdb/opened_backups.h"

namespace detent {

namespace {

namespace fs = std::filesystem;

constexpr std::uint64_t kMiB = std::uint64_t{1} << 20;
/// A backup on the disk of the data folder leaves this much free for the server.
constexpr std::uint64_t kLeftToServer = 256 * kMiB;
constexpr std::uint64_t kLeftFree = 16 * kMiB;
constexpr std::size_t kMostKeyFile = std::size_t{64} << 10;

/// A database that is open for reading, with all its families.
class OpenCheckpoint {
 public:
  static Result<OpenCheckpoint> open(const std::string& path) {
    const rocksdb::DBOptions options;
    std::vector<std::string> names;
    rocksdb::Status status = rocksdb::DB::ListColumnFamilies(options, path, &names);
    std::vector<rocksdb::ColumnFamilyDescriptor> families;
    for (const std::string& name : names)
      families.emplace_back(name, rocksdb::ColumnFamilyOptions());
    OpenCheckpoint opened;
    rocksdb::DB* db = nullptr;
    if (status.ok()) {
      status = rocksdb::DB::OpenForReadOnly(options, path, families, &opened.families_, &db);
    }
    if (!status.ok()) return to_error("open checkpoint '" + path + "'", status);
    opened.db_.reset(db);
    return opened;
  }
  OpenCheckpoint(OpenCheckpoint&&) noexcept = default;
  OpenCheckpoint& operator=(OpenCheckpoint&&) = delete;
  ~OpenCheckpoint() {
    for (rocksdb::ColumnFamilyHandle* family : families_) {
      static_cast<void>(db_->DestroyColumnFamilyHandle(family));
    }
  }
  rocksdb::DB& db() noexcept { return *db_; }

 private:
  OpenCheckpoint() = default;
  std::unique_ptr<rocksdb::DB> db_;
  std::vector<rocksdb::ColumnFamilyHandle*> families_;  // owned by db_
};

/// The number of bytes of the checkpoint that no backup has. The names of shared tables are
/// NUMBER_…_SIZE.sst. So a table of another store can be mistaken for one that is there, which
/// makes the number too low but harms nothing.
std::uint64_t bytes_to_copy(const BackupRequest& request) {
  std::set<std::string> there;
  std::error_code ignored;
  for (fs::directory_iterator entry(request.folder + "/shared_checksum", ignored);
       !ignored && entry != fs::directory_iterator(); entry.increment(ignored)) {
    const std::string name = entry->path().filename().string();
    there.insert(name.substr(0, name.find('_')) +
                 name.substr(std::min(name.rfind('_'), name.size())));
  }
  std::uint64_t bytes = 0;
  for (fs::directory_iterator entry(request.checkpoint, ignored);
       !ignored && entry != fs::directory_iterator(); entry.increment(ignored)) {
    const std::uint64_t size = entry->file_size(ignored);
    const std::string name = entry->path().stem().string() + "_" + std::to_string(size) +
                             entry->path().extension().string();
    if (!there.contains(name)) bytes += size;
  }
  return bytes;
}

/// Refuses a backup that would fill its disk. The server shares this disk if the backup is on the
/// disk of the data folder.
Result<void> expect_space(const BackupRequest& request, std::uint64_t needed) {
  struct stat of_backups {};
  struct stat of_data {};
  const bool is_shared = ::stat(request.folder.c_str(), &of_backups) == 0 &&
                         ::stat(request.checkpoint.c_str(), &of_data) == 0 &&
                         of_backups.st_dev == of_data.st_dev;
  std::error_code error;
  const fs::space_info space = fs::space(request.folder, error);
  const std::uint64_t left = is_shared ? kLeftToServer : kLeftFree;
  if (error || space.available >= needed + left) return ok();
  return backup_folder_error(
      ErrorCode::resource_exhausted, request.folder,
      "has too little space: " + std::to_string(space.available / kMiB) +
          " MiB are free, the backup needs " + std::to_string(needed / kMiB) + " MiB and leaves " +
          std::to_string(left / kMiB) +
          " MiB free; free space, keep fewer backups (--keep), or use another disk");
}

/// The user of the server can write into the data folder, but the command may run as root. So this
/// reads no file that the owner of the folder could not read: a link, or the file of another user.
Result<std::string> webhook_key_of(const std::string& data) {
  const std::string path = data + "/" + kWebhookKeyFile;
  const auto failed = [&path](const std::string& problem) {
    return Error{ErrorCode::unavailable, "read " + path + ": " + problem, ""};
  };
  // Without O_NONBLOCK, a named pipe would block.
  const OpenFile file(path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK);
  if (!file.is_open() && errno == ENOENT) return std::string();
  if (!file.is_open() && errno != ELOOP) return failed(reason_for(errno, path));
  struct stat folder {};
  struct stat status {};
  if (!file.is_open() || ::stat(data.c_str(), &folder) != 0 ||
      ::fstat(file.descriptor(), &status) != 0 || !S_ISREG(status.st_mode) ||
      status.st_uid != folder.st_uid) {
    return failed("it must be a file, not a link, and have the owner of its folder");
  }
  std::string text;
  std::array<char, 4096> part{};
  ssize_t size = 0;
  while ((size = ::read(file.descriptor(), part.data(), part.size())) > 0) {
    text.append(part.data(), static_cast<std::size_t>(size));
    if (text.size() > kMostKeyFile) {
      return Error{ErrorCode::too_large,
                   path + " has more than " + std::to_string(kMostKeyFile) + " bytes", ""};
    }
  }
  if (size < 0) return failed(reason_for(errno, path));
  return text;
}

/// A mix of backups of two stores would let the retention of one remove the backups of the other.
Result<void> expect_same_store(const rocksdb::BackupEngine& engine, const BackupRequest& request,
                               const std::string& store) {
  rocksdb::BackupInfo latest;
  if (!engine.GetLatestBackupInfo(&latest).ok()) return ok();
  const Result<BackupDescription> described = parse_backup_description(latest.app_metadata);
  if (!described || described->store == store) return ok();
  return backup_folder_error(ErrorCode::conflict, request.folder,
                             "has backups of another store, of data folder '" + described->data +
                                 "': name another folder for the backups of '" + request.data +
                                 "'");
}

bool is_kept(const BackupRetention& retention, const StoredBackup& backup, std::size_t newer,
             WallTime now) {
  if (retention.keep && newer < *retention.keep) return true;
  return retention.keep_days && now - backup.made_at <= *retention.keep_days;
}

/// Removes the backups that no rule keeps. The newest backup always stays. Damaged backups do not
/// count, and are removed with the first older one. A failure is a warning in `made`.
void remove_old(rocksdb::BackupEngine& engine, const BackupRequest& request, NewBackup& made) {
  if (request.retention.keeps_all()) return;
  std::vector<StoredBackup> all = backups_in(engine, BackupCheck::sizes);
  std::ranges::reverse(all);
  std::size_t newer = 0;
  bool removes = false;
  for (const StoredBackup& backup : all) {
    if (!backup.damage.empty()) {
      if (!removes) continue;
    } else {
      removes = newer > 0 && !is_kept(request.retention, backup, newer, request.now);
      ++newer;
      if (!removes) continue;
    }
    const rocksdb::Status status = engine.DeleteBackup(backup.number);
    if (!status.ok()) {
      made.warning = to_error("remove backup " + std::to_string(backup.number), status).message;
      break;
    }
    made.removed.push_back(backup.number);
  }
  std::ranges::sort(made.removed);
}

std::uint64_t bytes_below(const std::string& folder) {
  std::uint64_t bytes = 0;
  std::error_code ignored;
  for (fs::recursive_directory_iterator entry(folder, ignored);
       !ignored && entry != fs::recursive_directory_iterator(); entry.increment(ignored)) {
    if (entry->is_regular_file(ignored)) bytes += entry->file_size(ignored);
  }
  return bytes;
}

}  // namespace

Result<NewBackup> add_backup(const BackupRequest& request) {
  ASSIGN_OR_RETURN(const LockedBackups lock,
                   LockedBackups::open(request.folder, LockedBackups::Use::write));
  ASSIGN_OR_RETURN(OpenCheckpoint checkpoint, OpenCheckpoint::open(request.checkpoint));
  ASSIGN_OR_RETURN(const std::unique_ptr<rocksdb::BackupEngine> engine,
                   open_backup_engine<rocksdb::BackupEngine>(request.folder));
  BackupDescription described{.made_at = request.made_at,
                              .store = {},
                              .data = request.data,
                              .program = request.program,
                              .webhook_key = {}};
  rocksdb::Status status = checkpoint.db().GetDbIdentity(described.store);
  if (!status.ok()) return to_error("read checkpoint '" + request.checkpoint + "'", status);
  TRY(expect_same_store(*engine, request, described.store));
  ASSIGN_OR_RETURN(described.webhook_key, webhook_key_of(request.data));
  status = engine->GarbageCollect();  // of a backup that did not end
  if (!status.ok()) return to_error("clean backup folder '" + request.folder + "'", status);
  TRY(expect_space(request, bytes_to_copy(request)));
  const std::uint64_t before = bytes_below(request.folder);
  rocksdb::BackupID number = 0;
  status = engine->CreateNewBackupWithMetadata(rocksdb::CreateBackupOptions(), &checkpoint.db(),
                                               to_text(described), &number);
  if (!status.ok()) {
    static_cast<void>(engine->GarbageCollect());
    return to_error("write backup into '" + request.folder + "'", status);
  }
  rocksdb::BackupInfo info;
  status = engine->GetBackupInfo(number, &info);
  if (!status.ok()) return to_error("read backup " + std::to_string(number), status);
  NewBackup made{.backup = stored_backup(info),
                 .copied_bytes = bytes_below(request.folder) - before};
  remove_old(*engine, request, made);
  return made;
}

Result<std::vector<StoredBackup>> list_backups(const std::string& folder, BackupCheck check) {
  ASSIGN_OR_RETURN(const LockedBackups lock, LockedBackups::open(folder, LockedBackups::Use::read));
  ASSIGN_OR_RETURN(const auto engine, open_backup_engine<rocksdb::BackupEngineReadOnly>(folder));
  return backups_in(*engine, check);
}

}  // namespace detent

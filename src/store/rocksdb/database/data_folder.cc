#include "store/rocksdb/database/data_folder.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <system_error>
#include <utility>

#include "base/open_file.h"
#include "base/read_file.h"
#include "detent/check.h"
#include "store/rocksdb/database/lock_holder.h"

namespace detent {

namespace {

namespace fs = std::filesystem;

Error folder_error(ErrorCode code, const std::string& path, std::string_view problem) {
  return {code, "data folder '" + path + "' " + std::string(problem), ""};
}

Error damaged_folder(const std::string& path, const std::string& what) {
  return folder_error(
      ErrorCode::data_loss, path,
      "is damaged: " + what + "; restore the folder from a backup, or a dump into an empty one");
}

std::string reason(int error) { return std::generic_category().message(error); }

/// Makes the new folder's entry in its parent durable. Without this, a power loss could remove the
/// whole folder, although every file in it was synced.
Result<void> sync_parent(const std::string& path) {
  const fs::path parent = fs::absolute(path).lexically_normal().parent_path();
  if (sync_folder(parent)) return ok();
  return folder_error(ErrorCode::unavailable, path, "cannot be synced to disk: " + reason(errno));
}

Result<void> make_folder(const std::string& path) {
  if (::mkdir(path.c_str(), 0700) == 0) return sync_parent(path);
  if (errno != EEXIST) {
    const int error = errno;
    const ErrorCode code = error == ENOTDIR ? ErrorCode::invalid_argument : ErrorCode::unavailable;
    const fs::path parent = fs::absolute(path).lexically_normal().parent_path();
    return folder_error(code, path,
                        "cannot be created (the folder above it must exist and be writable): " +
                            reason_for(error, parent));
  }
  struct stat status {};
  if (::stat(path.c_str(), &status) != 0) {
    return folder_error(ErrorCode::unavailable, path, "cannot be read: " + reason(errno));
  }
  if (!S_ISDIR(status.st_mode)) {
    return folder_error(ErrorCode::invalid_argument, path, "is not a folder");
  }
  if (::access(path.c_str(), R_OK | W_OK | X_OK) != 0) {
    return folder_error(
        ErrorCode::unavailable, path,
        "cannot be read and written by this user (chown it, or start the server as its owner): " +
            reason_for(errno, path));
  }
  return ok();
}

/// Whether this process has the same file or folder open a second time.
bool is_open_here(int file) {
  struct stat locked {};
  if (::fstat(file, &locked) != 0) return false;
  std::error_code error;
  fs::directory_iterator entry("/proc/self/fd", error);
  for (; !error && entry != fs::directory_iterator(); entry.increment(error)) {
    struct stat other {};
    const bool is_same = ::stat(entry->path().c_str(), &other) == 0 &&
                         other.st_dev == locked.st_dev && other.st_ino == locked.st_ino;
    if (is_same && entry->path().filename() != std::to_string(file)) return true;
  }
  return false;
}

/// `locked`: the file or folder that somebody else has locked; −1 if it is not known.
Error in_use(const std::string& path, int locked) {
  const std::optional<std::int64_t> process = lock_holder(locked);
  if (process ? *process == ::getpid() : is_open_here(locked)) {
    return folder_error(ErrorCode::unavailable, path, "is already open in this process");
  }
  return folder_error(
      ErrorCode::unavailable, path,
      "is in use by another process" + (process ? ", pid " + std::to_string(*process) : ""));
}

Error was_replaced(const std::string& path) {
  return folder_error(ErrorCode::unavailable, path,
                      "was moved, removed or replaced while it was in use; put it back, or restart "
                      "the server to use the folder that is there");
}

std::string lock_path(const std::string& path) { return path + "/detent.lock"; }

Error not_locked(const std::string& path, int error) {
  return folder_error(ErrorCode::unavailable, path,
                      "cannot be locked (this user must be able to write its file detent.lock): " +
                          reason_for(error, lock_path(path)));
}

/// Returns true if the open file or folder is the one at the path.
bool is_at(int file, const std::string& path) {
  struct stat open {};
  struct stat there {};
  return ::fstat(file, &open) == 0 && ::stat(path.c_str(), &there) == 0 &&
         open.st_dev == there.st_dev && open.st_ino == there.st_ino;
}

/// Returns true if the name is a number followed by `ending`, as RocksDB names its files. Other
/// files, such as the log of a program, must not be taken for RocksDB's logs, because they could be
/// cut off.
bool is_numbered(std::string_view name, std::string_view ending) {
  return name.ends_with(ending) && name.find_first_not_of("0123456789") == name.rfind(ending) &&
         name.size() > ending.size();
}

/// Returns true for files that an interrupted first start may have left, or that an operator may
/// have put into the folder before the first start.
bool is_of_a_beginning(std::string_view name) {
  constexpr std::array<std::string_view, 6> kNames{"detent.lock", "webhook.key", "LOCK",
                                                   "IDENTITY",    "settle",      "lost+found"};
  return name.starts_with('.') || name.starts_with("MANIFEST-") || name.starts_with("OPTIONS-") ||
         name.ends_with(".dbtmp") || std::find(kNames.begin(), kNames.end(), name) != kNames.end();
}

Result<std::vector<std::string>> list(const std::string& path) {
  std::error_code error;
  std::vector<std::string> names;
  fs::directory_iterator entry(path, error);
  while (!error && entry != fs::directory_iterator()) {
    names.push_back(entry->path().filename().string());
    entry.increment(error);
  }
  if (error) {
    return folder_error(ErrorCode::unavailable, path, "cannot be listed: " + error.message());
  }
  std::sort(names.begin(), names.end());
  return names;
}

}  // namespace

Result<DataFolder> DataFolder::open(std::string path, const DataFolderMark* mark) {
  if (path.empty()) {
    return Error{ErrorCode::invalid_argument, "the data folder's path is empty", ""};
  }
  TRY(make_folder(path));
  DataFolder folder(std::move(path));
  folder.folder_ = ::open(folder.path_.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (folder.folder_ < 0) return not_locked(folder.path_, errno);
  ASSIGN_OR_RETURN(const DataFolderMark here, folder.mark());
  const bool is_marked = mark != nullptr && !mark->identity.empty();
  if (is_marked && (here.device != mark->device || here.inode != mark->inode)) {
    return was_replaced(folder.path_);
  }
  // Other errors are ignored: some file systems, such as NFS, cannot lock folders. Then the lock
  // file is the only lock.
  if (::flock(folder.folder_, LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK) {
    return in_use(folder.path_, folder.folder_);
  }
  TRY(folder.lock_file());
  return folder;
}

Result<DataFolderMark> DataFolder::mark() const {
  struct stat status {};
  if (::fstat(folder_, &status) != 0) {
    return folder_error(ErrorCode::unavailable, path_, "cannot be read: " + reason(errno));
  }
  return DataFolderMark{.device = status.st_dev, .inode = status.st_ino};
}

Error DataFolder::replaced() const { return was_replaced(path_); }

Result<void> DataFolder::lock_file() {
  const int lock = ::open(lock_path(path_).c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
  if (lock < 0) return not_locked(path_, errno);
  const bool is_locked = ::flock(lock, LOCK_EX | LOCK_NB) == 0;
  const int error = errno;
  // Between the two calls another process may have removed this file, and locked a new file.
  if (!is_locked || !is_at(lock, lock_path(path_))) {
    const Error refused = is_locked || error == EWOULDBLOCK ? in_use(path_, is_locked ? -1 : lock)
                                                            : not_locked(path_, error);
    ::close(lock);
    return refused;
  }
  DETENT_CHECK(lock != lock_);
  if (lock_ >= 0) ::close(lock_);
  lock_ = lock;
  return ok();
}

Result<void> DataFolder::hold() {
  DETENT_CHECK(folder_ >= 0);  // not moved from
  if (!is_at(folder_, path_)) return was_replaced(path_);
  return is_at(lock_, lock_path(path_)) ? ok() : lock_file();
}

DataFolder::~DataFolder() {
  if (lock_ >= 0) ::close(lock_);
  if (folder_ >= 0) ::close(folder_);
}

DataFolder::DataFolder(DataFolder&& other) noexcept
    : path_(std::move(other.path_)),
      folder_(std::exchange(other.folder_, -1)),
      lock_(std::exchange(other.lock_, -1)) {}

Result<bool> DataFolder::holds_database(const std::string& path) {
  std::error_code error;
  const fs::file_status status = fs::status(path, error);
  if (!fs::status_known(status)) {
    return folder_error(ErrorCode::unavailable, path, "cannot be read: " + error.message());
  }
  if (!fs::is_directory(status)) return false;
  ASSIGN_OR_RETURN(const std::vector<std::string> names, list(path));
  if (std::binary_search(names.begin(), names.end(), kRestoring)) {
    return folder_error(ErrorCode::data_loss, path,
                        "has an incomplete restore of a backup: remove all its files, and run "
                        "`detent restore-backup` again");
  }
  if (std::binary_search(names.begin(), names.end(), "CURRENT")) return true;
  for (const std::string& name : names) {
    // An interrupted first start leaves a manifest, but no tables and no logs.
    if (is_numbered(name, ".sst") || is_numbered(name, ".log")) {
      return damaged_folder(path, "it holds tasks, but its file CURRENT is missing");
    }
  }
  return false;
}

Result<std::vector<std::string>> DataFolder::files_of_others(const std::string& path) {
  ASSIGN_OR_RETURN(std::vector<std::string> names, list(path));
  std::erase_if(names, is_of_a_beginning);
  return names;
}

Result<std::vector<std::string>> DataFolder::log_files() const {
  ASSIGN_OR_RETURN(std::vector<std::string> names, list(path_));
  std::erase_if(names, [](const std::string& name) { return !is_numbered(name, ".log"); });
  // The names are numbers of six or more digits, so a longer name is a higher number.
  std::sort(names.begin(), names.end(), [](const std::string& a, const std::string& b) {
    return std::pair(a.size(), std::string_view(a)) < std::pair(b.size(), std::string_view(b));
  });
  return names;
}

Result<std::optional<std::string>> DataFolder::manifest_file() const {
  std::ifstream file(path_ + "/CURRENT");
  if (!file) return std::optional<std::string>();
  std::string name;
  std::getline(file, name);
  constexpr std::string_view kManifest = "MANIFEST-";
  const bool is_one = name.starts_with(kManifest) && name.size() > kManifest.size();
  if (!is_one || name.find_first_not_of("0123456789", kManifest.size()) != std::string::npos) {
    return damaged("its file CURRENT does not name a manifest");
  }
  std::error_code error;
  if (!fs::exists(path_ + "/" + name, error) && !error) {
    return damaged("its file " + name + " is missing");
  }
  return std::optional<std::string>(std::move(name));
}

Error DataFolder::damaged(const std::string& what) const { return damaged_folder(path_, what); }

}  // namespace detent

// The data folder: creates it if it is missing, locks it while a store is open, and checks its
// files before RocksDB opens it.
//
// If the file CURRENT is missing, RocksDB creates a new, empty database and deletes the old files.
// One lost file must not delete all tasks, so this class refuses a folder that has tables or logs
// but no CURRENT.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "store/data_folder_is.h"

namespace detent {

/// The name of the folder in which a restore of a backup puts the files together. While a data
/// folder has it, nobody can open its store.
inline constexpr const char* kRestoring = "restoring";

/// Holds two locks until it is destroyed. The lock on the folder itself holds even if files in the
/// folder are removed. The lock on a file in the folder is for file systems that cannot lock
/// folders. Both are locks of the operating system (flock). They end with the process, however it
/// ends, and also exclude a second store in the same process. Thread-compatible.
class DataFolder {
 public:
  /// Locks the folder. Creates it if it is missing, with mode 0700 in an existing parent folder. If
  /// `mark` is not null and not empty, the folder must be the marked one. Errors: unavailable if
  /// another process or this process has the folder open, if it is not the marked folder, or if
  /// this user may not create, read or write it; invalid_argument if the path is not a folder.
  static Result<DataFolder> open(std::string path, const DataFolderMark* mark = nullptr);
  /// Returns the mark of this folder, without an identity.
  Result<DataFolderMark> mark() const;
  /// Checks that the path still leads to the locked folder. If the lock file was removed or
  /// replaced, creates it again and locks it. Takes a few system calls. Errors: unavailable if
  /// another folder or no folder is at the path, or if another process has locked the new lock
  /// file. Writing could then destroy the tasks of another server.
  Result<void> hold();
  ~DataFolder();
  DataFolder(DataFolder&& other) noexcept;
  DataFolder& operator=(DataFolder&&) = delete;

  const std::string& path() const noexcept { return path_; }
  /// Returns true if `path` is a folder with a database in it. Errors: data_loss if the folder has
  /// only a part of one; unavailable if it cannot be read.
  static Result<bool> holds_database(const std::string& path);
  Result<bool> holds_database() const { return holds_database(path_); }
  /// Returns the files that do not belong in a folder without a database. Hidden files, files of
  /// an interrupted first start and files of the file system are allowed.
  static Result<std::vector<std::string>> files_of_others(const std::string& path);
  /// Returns the names of the write-ahead logs, oldest first.
  Result<std::vector<std::string>> log_files() const;
  /// Returns the name of the current manifest, which the file CURRENT contains; nullopt if there is
  /// no CURRENT. Errors: data_loss if CURRENT does not name a manifest, or names a missing one.
  Result<std::optional<std::string>> manifest_file() const;
  /// Returns "data folder 'x'", for messages.
  std::string name() const { return "data folder '" + path_ + "'"; }
  /// Returns data_loss with the damage and advice to the operator. `what` is, for example, "its log
  /// 000007.log is damaged".
  Error damaged(const std::string& what) const;
  /// Returns unavailable: another folder, or no folder, is at the path.
  Error replaced() const;

 private:
  explicit DataFolder(std::string path) : path_(std::move(path)) {}
  Result<void> lock_file();

  std::string path_;
  // File descriptors; −1 if not open or moved from.
  int folder_ = -1;
  int lock_ = -1;
};

}  // namespace detent

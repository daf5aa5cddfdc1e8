// The data folder on disk: made when it is missing, locked while a store is open on it, and looked
// over before RocksDB is let near it.
//
// RocksDB makes a new, empty database where it finds no file CURRENT, and clears away what lies
// around it. A folder that has lost that one file must not be emptied without a word, so it is
// refused here.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "store/data_folder_is.h"

namespace detent {

/// Holds the folder's locks until it is destroyed: the folder itself, which stays locked whatever
/// is removed from it, and a file in it, for file systems that lock no folders. The locks are the
/// operating system's (flock), so they end with the process however that ends, and exclude a second
/// store in the same process too. Thread-compatible.
class DataFolder {
 public:
  /// Makes the folder (mode 0700, its parent must exist) if it is missing, and locks it. Errors:
  /// unavailable when another process holds it, or this user may not make, read or write it;
  /// invalid_argument when it is no folder.
  /// `mark`: the folder must be this one, else `unavailable`; null or empty: any.
  static Result<DataFolder> open(std::string path, const DataFolderMark* mark = nullptr);
  /// Of this folder, without an identity.
  Result<DataFolderMark> mark() const;
  /// Looks whether the folder is still the one that was locked. A lock file that was removed or
  /// replaced is made and locked again. Errors: unavailable when another folder, or none, is at its
  /// path, or another process holds the new lock file: writing could then destroy the tasks of
  /// others. A few system calls.
  Result<void> hold();
  ~DataFolder();
  DataFolder(DataFolder&& other) noexcept;
  DataFolder& operator=(DataFolder&&) = delete;

  const std::string& path() const noexcept { return path_; }
  /// Whether there is a database. Errors: data_loss when there are parts of one only.
  static Result<bool> holds_database(const std::string& path);
  Result<bool> holds_database() const { return holds_database(path_); }
  /// What is in a folder that holds no database and is not of a start that was interrupted, nor
  /// hidden, nor a file system's.
  static Result<std::vector<std::string>> files_of_others(const std::string& path);
  /// The write-ahead logs, oldest first.
  Result<std::vector<std::string>> log_files() const;
  /// The manifest in force: the one CURRENT names; none when there is no CURRENT. Errors: data_loss
  /// when it names none, or one that is not there.
  Result<std::optional<std::string>> manifest_file() const;
  /// "data folder 'x'", for messages.
  std::string name() const { return "data folder '" + path_ + "'"; }
  /// data_loss, with what the operator can do: "its log 000007.log …".
  Error damaged(const std::string& what) const;
  /// unavailable: another folder, or none, has taken its place.
  Error replaced() const;

 private:
  explicit DataFolder(std::string path) : path_(std::move(path)) {}
  Result<void> lock_file();

  std::string path_;
  // File descriptors; −1 when not open or moved from.
  int folder_ = -1;
  int lock_ = -1;
};

}  // namespace detent

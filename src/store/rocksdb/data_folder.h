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

namespace detent {

/// Holds the folder's lock until it is destroyed. The lock is the operating system's (flock), so it
/// ends with the process however that ends, and excludes a second store in the same process too.
class DataFolder {
 public:
  /// Makes the folder (mode 0700, its parent must exist) if it is missing, and locks it. Errors:
  /// unavailable when another process holds it, or this user may not make, read or write it;
  /// invalid_argument when it is no folder.
  static Result<DataFolder> open(std::string path);
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

 private:
  DataFolder(std::string path, int lock) : path_(std::move(path)), lock_(lock) {}

  std::string path_;
  int lock_;  // file descriptor; −1 when moved from
};

}  // namespace detent

// Checkpoints: consistent copies of an open store that other processes can read.
//
// A checkpoint is a folder in the data folder, such as checkpoint-0123456789abcdef. Its tables are
// hard links, so making it takes no space and little time. But it keeps tables on disk that the
// store would have removed, so it has to be removed after use. A reader locks it while it reads it
// (CheckpointLock). A checkpoint that nobody has locked was left by a reader that crashed.
#pragma once

#include <cstddef>
#include <functional>
#include <string>
#include <utility>

#include "base/mutex.h"
#include "base/result.h"

namespace detent {

/// All checkpoints of a data folder have names with this prefix.
inline constexpr const char* kCheckpointPrefix = "checkpoint-";

/// Lets other threads make checkpoints of a store that may be open or closed. The store fills it.
/// Thread-safe.
class Checkpoints {
 public:
  /// Makes a checkpoint at this path.
  using Make = std::function<Result<void>(const std::string& path)>;

  /// Makes a checkpoint with a random name in the data folder, and returns its path. Flushes the
  /// store first. Writes wait only for a second, small flush and for the hard links. Errors:
  /// unavailable if the store is not open; resource_exhausted if the disk is full.
  Result<std::string> make(const std::string& data) DETENT_EXCLUDES(mutex_);

  /// The store calls opened() when it is open, and closed() before it closes. closed() waits for a
  /// checkpoint that is being made.
  void opened(Make make) DETENT_EXCLUDES(mutex_);
  void closed() DETENT_EXCLUDES(mutex_);

 private:
  // Held while a checkpoint is made, so that the store stays open.
  Mutex mutex_;
  Make make_ DETENT_GUARDED_BY(mutex_);
};

/// Removes the checkpoints of a data folder that nobody has locked. Returns the number of the
/// others. Errors: unavailable if the folder cannot be read, or if a checkpoint cannot be removed;
/// the other checkpoints are still removed.
Result<std::size_t> remove_checkpoints(const std::string& data);

/// Locks a checkpoint for reading, until it is destroyed or the process ends. Thread-compatible.
class CheckpointLock {
 public:
  /// Errors: not_found if there is no checkpoint at the path; unavailable if this user may not read
  /// it.
  static Result<CheckpointLock> of(const std::string& path);
  ~CheckpointLock();
  CheckpointLock(CheckpointLock&& other) noexcept
      : descriptor_(std::exchange(other.descriptor_, -1)) {}
  CheckpointLock& operator=(CheckpointLock&&) = delete;

 private:
  explicit CheckpointLock(int descriptor) noexcept : descriptor_(descriptor) {}
  int descriptor_;
};

}  // namespace detent

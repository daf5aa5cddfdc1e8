#include "store/checkpoints.h"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdio>
#include <filesystem>
#include <optional>
#include <system_error>

#include "base/rng.h"

namespace detent {

namespace {

namespace fs = std::filesystem;

Error path_error(const char* verb, const std::string& path, int error) {
  const ErrorCode code = error == ENOENT ? ErrorCode::not_found : ErrorCode::unavailable;
  return {code, std::string(verb) + " '" + path + "': " + std::generic_category().message(error),
          ""};
}

/// The random name shows another process whether it sees the folder of this server.
std::string new_name() {
  std::array<char, 17> text{};
  std::snprintf(text.data(), text.size(), "%016llx",
                static_cast<unsigned long long>(random_seed()));
  return std::string(kCheckpointPrefix) + text.data();
}

/// Returns an open and locked folder; −1 if another process has locked it. errno tells other
/// errors.
int lock_folder(const std::string& path, int operation) {
  const int folder = ::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (folder < 0 || ::flock(folder, operation | LOCK_NB) == 0) return folder;
  const int error = errno;
  ::close(folder);
  errno = error;
  return -1;
}

}  // namespace

Result<std::string> Checkpoints::make(const std::string& data) {
  const MutexLock lock(mutex_);
  if (!make_) {
    return Error{ErrorCode::unavailable,
                 "the store is not open, so it cannot be backed up; retry when the server is ready",
                 ""};
  }
  std::string path = data + "/" + new_name();
  TRY(make_(path));
  return path;
}

void Checkpoints::opened(Make make) {
  const MutexLock lock(mutex_);
  make_ = std::move(make);
}

void Checkpoints::closed() {
  const MutexLock lock(mutex_);
  make_ = nullptr;
}

Result<std::size_t> remove_checkpoints(const std::string& data) {
  std::size_t in_use = 0;
  std::optional<Error> first;
  std::error_code error;
  for (fs::directory_iterator entry(data, error); !error && entry != fs::directory_iterator();
       entry.increment(error)) {
    const std::string path = entry->path().string();
    if (!entry->path().filename().string().starts_with(kCheckpointPrefix)) continue;
    const int folder = lock_folder(path, LOCK_EX);
    if (folder < 0 && errno == EWOULDBLOCK) {
      ++in_use;
      continue;
    }
    std::error_code failed(folder < 0 ? errno : 0, std::generic_category());
    if (folder >= 0) {
      fs::remove_all(path, failed);
      ::close(folder);
    }
    // A missing checkpoint was removed by another process.
    if (failed && failed != std::errc::no_such_file_or_directory && !first) {
      first = path_error("remove", path, failed.value());
    }
  }
  if (error) return path_error("list", data, error.value());
  if (first) return *first;
  return in_use;
}

Result<CheckpointLock> CheckpointLock::of(const std::string& path) {
  const int folder = lock_folder(path, LOCK_SH);
  if (folder >= 0) return CheckpointLock(folder);
  return path_error("open", path, errno);
}

CheckpointLock::~CheckpointLock() {
  if (descriptor_ >= 0) ::close(descriptor_);
}

}  // namespace detent

// A file or folder that is open for the calls of the system. errno tells why a call failed.
#pragma once

#include <fcntl.h>
#include <sys/types.h>
#include <unistd.h>

#include <filesystem>

namespace detent {

/// Closed at its end.
class OpenFile {
 public:
  /// Child processes do not get the file.
  OpenFile(const std::filesystem::path& path, int flags, mode_t mode = 0) noexcept
      : descriptor_(::open(path.c_str(), flags | O_CLOEXEC, mode)) {}
  ~OpenFile() {
    if (is_open()) ::close(descriptor_);
  }
  OpenFile(const OpenFile&) = delete;
  OpenFile& operator=(const OpenFile&) = delete;

  bool is_open() const noexcept { return descriptor_ >= 0; }
  int descriptor() const noexcept { return descriptor_; }
  /// Makes durable what was written. Returns false if it failed, or if the file is not open.
  bool sync() const noexcept { return is_open() && ::fsync(descriptor_) == 0; }

 private:
  const int descriptor_;
};

/// Makes new, renamed and removed entries of the folder durable. Returns false if it failed.
inline bool sync_folder(const std::filesystem::path& folder) noexcept {
  return OpenFile(folder, O_RDONLY | O_DIRECTORY).sync();
}

}  // namespace detent

#include "store/rocksdb/database/lock_holder.h"

#include <sys/sysmacros.h>

#include <array>
#include <cstdio>
#include <fstream>
#include <sstream>
#include <string>

namespace detent {

/// A line is "1: FLOCK  ADVISORY  WRITE 19409 fe:00:5334063 0 EOF". The device is in hexadecimal.
/// The line of a process that waits for a lock has "->" before "FLOCK".
std::optional<std::int64_t> lock_holder(std::istream& locks, const struct stat& file) {
  std::array<char, 64> name{};
  std::snprintf(name.data(), name.size(), "%02x:%02x:%llu", gnu_dev_major(file.st_dev),
                gnu_dev_minor(file.st_dev), static_cast<unsigned long long>(file.st_ino));
  for (std::string line; std::getline(locks, line);) {
    std::istringstream words(line);
    std::string number;
    std::string kind;
    std::string ignored;
    std::int64_t process = 0;
    std::string locked;
    words >> number >> kind >> ignored >> ignored >> process >> locked;
    if (kind == "FLOCK" && locked == name.data() && process > 0) return process;
  }
  return std::nullopt;
}

std::optional<std::int64_t> lock_holder(int file) {
  struct stat status {};
  if (::fstat(file, &status) != 0) return std::nullopt;
  std::ifstream locks("/proc/locks");
  return lock_holder(locks, status);
}

}  // namespace detent

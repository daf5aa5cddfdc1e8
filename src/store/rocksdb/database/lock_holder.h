// Finds the process that holds a lock, for an error message.
#pragma once

#include <sys/stat.h>

#include <cstdint>
#include <istream>
#include <optional>

namespace detent {

/// Returns the process that has locked this file with flock(), as a list in the format of
/// /proc/locks says. Empty if the list has no such lock.
std::optional<std::int64_t> lock_holder(std::istream& locks, const struct stat& file);

/// Returns the process that has locked this open file or folder with flock(). Empty if the system
/// does not say: the process is in another container or on another machine, or the file system has
/// other device numbers in /proc/locks.
std::optional<std::int64_t> lock_holder(int file);

}  // namespace detent

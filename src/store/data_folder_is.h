// What a store does about a data folder that is not there, for all that open one.
#pragma once

#include <cstdint>
#include <string>

namespace detent {

/// A folder that is missing or empty is made a data folder, or not: who had it open before would
/// begin anew beside tasks that were moved away or unmounted, and waits until it is back.
enum class DataFolderIs : std::uint8_t { made_if_missing, there };

/// The folder in which a process opened its store first. The process opens no other folder again:
/// another server's folder has other tasks, and a copy or a backup can give lease tokens twice.
struct DataFolderMark {
  std::uint64_t device = 0;
  std::uint64_t inode = 0;
  std::string identity = {};  // of the store; empty until it was opened
};

}  // namespace detent

// How a store opens a data folder that may be missing. All callers that open data folders use this.
#pragma once

#include <cstdint>
#include <string>

namespace detent {

/// `made_if_missing` makes a new data folder if the folder is missing or empty. With `there`,
/// opening such a folder fails. A process that had its folder open before uses `there`: if its
/// folder was moved away or unmounted, a new folder would start without its tasks. The process
/// waits until the folder is back.
enum class DataFolderIs : std::uint8_t { made_if_missing, there };

/// Identifies the folder that a process opened first. The process must not open another folder
/// later. The folder of another server has other tasks. A copy or a backup could give a lease token
/// twice.
struct DataFolderMark {
  std::uint64_t device = 0;
  std::uint64_t inode = 0;
  std::string identity = {};  // identity() of the store; empty until the store was opened
};

}  // namespace detent

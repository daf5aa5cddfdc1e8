// The bodies of POST /v1/backup and POST /v1/backup/end.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/result.h"
#include "detent/clock.h"

namespace detent::json {

/// A backup has begun: the server has made a checkpoint of its store.
struct BackupBegun {
  std::string folder;  // of the checkpoint, on the machine of the server
  std::string data;    // the data folder
  WallTime made_at{};  // every change that was acknowledged before is in the checkpoint
};
std::string render_backup_begun(const BackupBegun& begun);
Result<BackupBegun> parse_backup_begun(std::string_view body);

/// The end of a backup. Without bytes, the backup has failed.
struct BackupEnd {
  std::uint64_t bytes = 0;         // of the files of the backup
  std::uint64_t copied_bytes = 0;  // that were not in an earlier backup
  WallTime made_at{};              // as in BackupBegun; required with bytes

  bool is_complete() const noexcept { return bytes > 0; }
};
std::string render_backup_end(const BackupEnd& end);
Result<BackupEnd> parse_backup_end(std::string_view body);

}  // namespace detent::json

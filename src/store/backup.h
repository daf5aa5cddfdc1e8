// Values of backups. A backup is a copy of a store on disk, in a backup folder that can hold many
// of them. store/rocksdb/backup_folder.h makes and restores backups.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "detent/clock.h"

namespace detent {

/// A backup in a backup folder.
struct StoredBackup {
  std::uint32_t number = 0;  // from 1; a later backup has a higher number
  WallTime made_at{};        // the backup has the state of this instant
  std::uint64_t bytes = 0;   // of all its files, also of those that other backups share
  std::uint64_t files = 0;
  std::string folder = {};   // the data folder that it is of
  std::string program = {};  // the version of Detent that made it
  std::string damage = {};   // why it cannot be restored; empty: no damage was found
};

/// Which backups stay. A backup stays if one of the rules keeps it. Without a rule, all stay.
struct BackupRetention {
  std::optional<std::uint32_t> keep = {};           // the newest; at least 1
  std::optional<std::chrono::days> keep_days = {};  // backups that are at most this old

  bool keeps_all() const noexcept { return !keep && !keep_days; }
};

/// What to back up.
struct BackupRequest {
  std::string folder;      // the backup folder; created with mode 0700 if it is missing
  std::string checkpoint;  // a checkpoint (checkpoints.h) of the store
  std::string data;        // its data folder, which may have the key of webhooks
  std::string program;     // this version of Detent
  WallTime made_at{};      // when the checkpoint was made
  WallTime now{};
  BackupRetention retention = {};
};

struct NewBackup {
  StoredBackup backup;
  std::uint64_t copied_bytes = 0;           // the rest was in the folder already
  std::vector<std::uint32_t> removed = {};  // by the retention
  std::string warning = {};                 // what failed after the backup was complete
};

struct BackupRestore {
  std::string folder;                        // the backup folder
  std::optional<std::uint32_t> number = {};  // empty: the newest backup
  std::string data;                          // the new data folder: missing or empty
  WallTime now{};
};

/// Sizes: the files are there with the right sizes. Checksums: also reads all files.
enum class BackupCheck : std::uint8_t { sizes, checksums };

/// The file in a data folder that says from which backup the folder was restored. The first start
/// of a server logs its text and removes it.
inline constexpr const char* kRestoredFile = "restored-backup";

}  // namespace detent

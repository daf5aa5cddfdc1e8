// A folder with backups of one store, made by RocksDB's BackupEngine.
//
// Tables never change, so a backup copies only the tables that no earlier backup in the folder has:
// backups are incremental. Each backup is complete by itself, and any of them can be removed.
// RocksDB keeps a checksum of every file. A restore checks the checksums first.
//
// The folder has RocksDB's `meta`, `private` and `shared_checksum`, and the file kBackupMark, which
// marks it as ours and is locked while a command uses it. An interrupted backup is not listed, and
// the next backup removes its files.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/result.h"
#include "store/backup.h"

namespace detent {

/// The file that marks a folder as a backup folder.
inline constexpr const char* kBackupMark = "detent-backups";

/// Copies a checkpoint into the folder as a new backup, then removes old backups by the retention.
/// The checkpoint must not change during the call. A failed removal is a warning in the result.
/// Errors: conflict if the folder has other files or backups of another store; unavailable while
/// another process uses the folder, or if it cannot be written; resource_exhausted if its disk is
/// full. Earlier backups stay as they are.
Result<NewBackup> add_backup(const BackupRequest& request);

/// Returns all complete backups, oldest first. `damage` of a damaged backup names the file. Errors:
/// not_found if the folder has no backups; unavailable while another process changes it.
Result<std::vector<StoredBackup>> list_backups(const std::string& folder, BackupCheck check);

/// Makes a data folder from a backup, after a check of all checksums. Returns the backup. The store
/// of the new folder differs from the state of the backup in these points:
///  - Its epoch is above those of the backed-up store, so a lease token is never given out again.
///  - Its next task ids are above those that the backed-up store can have given out since.
///  - It has a new identity. So an external scheduler does not take it for the backed-up store.
/// A crash leaves a data folder that no store opens. Errors: not_found if there is no such backup;
/// data_loss if it is damaged, with the name of the file; conflict if the data folder is not empty;
/// unavailable if it is in use or cannot be written.
Result<StoredBackup> restore_backup(const BackupRestore& restore);

}  // namespace detent

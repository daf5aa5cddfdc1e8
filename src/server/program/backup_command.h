// `detent backup` and `detent restore-backup`.
#pragma once

#include <ostream>

#include "cli/options/backup_options.h"

namespace detent::server {

/// Makes a backup, or lists or checks the backups of a folder. Results go to `out`, errors to
/// `err`. Returns the program's exit code.
int run_backup(const cli::BackupOptions& options, std::ostream& out, std::ostream& err);
int run_restore_backup(const cli::RestoreBackupOptions& options, std::ostream& out,
                       std::ostream& err);

}  // namespace detent::server

// Describes `detent backup` and `detent restore-backup` to CLI11.
#pragma once

#include "cli/arguments/argument_options.h"
#include "cli/options/backup_options.h"

namespace detent::cli {

/// `call` gets the options of the server. All must outlive `app`.
void add_backup(CLI::App& app, ClientCall& call, BackupOptions& options);
void add_restore_backup(CLI::App& app, RestoreBackupOptions& options);

}  // namespace detent::cli

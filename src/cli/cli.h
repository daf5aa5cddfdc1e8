// Runs a command line. Some commands call functions of the caller, such as serve and check. The
// others call a server, or explain a cron expression.
//
// Start to read at arguments.h, which lists the commands. docs/reference/cli.md describes them.
#pragma once

#include <functional>

#include "cli/commands/commands.h"
#include "cli/options/backup_options.h"
#include "cli/options/check_options.h"
#include "cli/options/token_options.h"
#include "cli/settings/settings.h"

namespace detent::cli {

/// Commands that run in this process instead of on a server. Each function returns the exit code of
/// the program.
struct LocalCommands {
  /// Runs a server until a signal stops it. It calls the second function to reload its settings.
  std::function<int(const ServeCall&, const ReadAgain&)> serve;
  /// Checks the data of a stopped server.
  std::function<int(const CheckOptions&)> check;
  /// Backs up a data folder, or lists its backups.
  std::function<int(const BackupOptions&)> backup;
  /// Makes a data folder from a backup.
  std::function<int(const RestoreBackupOptions&)> restore_backup;
  /// Makes an access token and prints it.
  std::function<int(const TokenOptions&)> make_token;
};

/// Parses and runs the command line. main() calls it with the streams of the process.
/// Returns an ExitCode as a number, or the result of a local command.
int run(int argc, const char* const* argv, const Streams& streams, const LocalCommands& local);

}  // namespace detent::cli

#include "cli/arguments/backup_arguments.h"

#include "cli/arguments/serve_arguments.h"

namespace detent::cli {

namespace {

constexpr std::uint64_t kMostBackups = 100'000;

std::string expect_path(const std::string& name) {
  return name.empty() ? "must name a folder" : "";
}

}  // namespace

void add_backup(CLI::App& app, ClientCall& call, BackupOptions& options) {
  CLI::App* command =
      add_client_command(app, call, "backup", "Back up the server's data folder while it runs");
  command->add_option("DIR", options.folder, "Folder with the backups; created if it is missing")
      ->check(expect_path, "")
      ->required();
  CLI::Option* keep =
      add_number(*command, "--keep", options.keep, {1, kMostBackups})
          ->description("Number of backups to keep; then remove older ones (default: keep all)");
  CLI::Option* keep_days =
      add_number(*command, "--keep-days", options.keep_days, {1, kMostBackups})
          ->description("Also keep backups of this many days; remove older ones");
  CLI::Option* data = command
                          ->add_option("--data", options.data,
                                       "Back up the data folder of a stopped server instead")
                          ->check(expect_path, "")
                          ->type_name("DIR");
  CLI::Option* list = command->add_flag_function(
      "--list", [&options](std::int64_t) { options.act = BackupOptions::Act::list; },
      "List the backups, and make none");
  CLI::Option* check = command->add_flag_function(
      "--check", [&options](std::int64_t) { options.act = BackupOptions::Act::check; },
      "Read all files of the backups and check them, and make none");
  list->excludes(check)->excludes(data)->excludes(keep)->excludes(keep_days);
  check->excludes(data)->excludes(keep)->excludes(keep_days);
  command->get_option("--json")->description("Print JSON on one line");
  command->footer(
      "Run it on the machine of the server, as root or as the user of the server. A backup copies "
      "only the files that no earlier backup in DIR has.\n"
      "Examples:\n"
      "  detent backup /var/backups/detent --keep 14\n"
      "  detent backup /var/backups/detent --list\n"
      "  detent backup /var/backups/detent --data /var/lib/detent   # the server is stopped");
}

void add_restore_backup(CLI::App& app, RestoreBackupOptions& options) {
  CLI::App* command = app.add_subcommand("restore-backup", "Make a data folder from a backup");
  command->add_option("DIR", options.folder, "Folder with the backups")
      ->check(expect_path, "")
      ->required();
  add_data(*command, options.data, "New data folder: missing, or empty");
  add_number(*command, "--backup", options.number, {1, kMostBackups})
      ->description("Number of the backup, as in `detent backup DIR --list` (default: the newest)");
  command->add_flag_function(
      "--json", [&options](std::int64_t) { options.format = OutputFormat::json; },
      "Print JSON on one line");
  command->footer(
      "The restored server hands out again what ended after the backup, and has no later task.\n"
      "Examples:\n"
      "  detent restore-backup /var/backups/detent --data /var/lib/detent\n"
      "  detent restore-backup /var/backups/detent --data /tmp/drill --backup 7");
}

}  // namespace detent::cli

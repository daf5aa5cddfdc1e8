#include "cli/cli.h"

#include <variant>

#include "base/wall_time.h"
#include "cli/arguments/arguments.h"
#include "cli/commands/commands.h"
#include "cli/commands/cron_commands.h"

namespace detent::cli {

namespace {

ExitCode call_server(const ClientCall& call, const Streams& streams) {
  auto client =
      make_client_without_repeats(call.server, {.token = call.token, .ca_file = call.ca_file});
  if (!client) return fail_with(streams, client.error());
  return run_command(call, *client, streams);
}

ExitCode tell_cron(const CronCall& call, const Streams& streams) {
  return run_cron(call, ceil_to_ms(SystemClock().wall_now()), streams);
}

ExitCode say(const NothingToRun& nothing, const Streams& streams) {
  (nothing.exit_code == ExitCode::done ? streams.out : streams.err) << nothing.text;
  return nothing.exit_code;
}

/// Parses the command line of `serve` again, because the environment or a file may have changed. If
/// the settings are wrong, the result is an error.
Result<ServeCall> read_again(int argc, const char* const* argv) {
  Invocation invocation = parse_arguments(argc, argv);
  if (auto* call = std::get_if<ServeCall>(&invocation)) return std::move(*call);
  return Error{ErrorCode::invalid_argument, std::get<NothingToRun>(invocation).text, "config"};
}

}  // namespace

int run(int argc, const char* const* argv, const Streams& streams, const LocalCommands& local) {
  const Invocation invocation = parse_arguments(argc, argv);
  if (const auto* call = std::get_if<ServeCall>(&invocation)) {
    return local.serve(*call, [argc, argv] { return read_again(argc, argv); });
  }
  if (const auto* options = std::get_if<CheckOptions>(&invocation)) return local.check(*options);
  if (const auto* options = std::get_if<BackupOptions>(&invocation)) return local.backup(*options);
  if (const auto* options = std::get_if<RestoreBackupOptions>(&invocation)) {
    return local.restore_backup(*options);
  }
  if (const auto* options = std::get_if<TokenOptions>(&invocation)) {
    return local.make_token(*options);
  }
  ExitCode exit_code = ExitCode::done;
  if (const auto* call = std::get_if<ClientCall>(&invocation)) {
    exit_code = call_server(*call, streams);
  } else if (const auto* cron = std::get_if<CronCall>(&invocation)) {
    exit_code = tell_cron(*cron, streams);
  } else {
    exit_code = say(std::get<NothingToRun>(invocation), streams);
  }
  return static_cast<int>(exit_code);
}

}  // namespace detent::cli

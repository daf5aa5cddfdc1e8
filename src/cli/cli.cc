#include "cli/cli.h"

#include <variant>

#include "cli/arguments.h"
#include "cli/display.h"

namespace detent::cli {

namespace {

ExitCode call_server(const ClientCall& call, const Streams& streams) {
  auto client = Client::create(call.server);
  if (!client) {
    show_error(streams.err, client.error());
    return exit_code_of(client.error().code);
  }
  return run_command(call, *client, streams);
}

ExitCode say(const NothingToRun& nothing, const Streams& streams) {
  (nothing.exit_code == ExitCode::done ? streams.out : streams.err) << nothing.text;
  return nothing.exit_code;
}

}  // namespace

int run(int argc, const char* const* argv, const Streams& streams, const LocalCommands& local) {
  const Invocation invocation = parse_arguments(argc, argv);
  if (const auto* options = std::get_if<ServeOptions>(&invocation)) return local.serve(*options);
  if (const auto* options = std::get_if<CheckOptions>(&invocation)) return local.check(*options);
  const ExitCode exit_code = std::holds_alternative<ClientCall>(invocation)
                                 ? call_server(std::get<ClientCall>(invocation), streams)
                                 : say(std::get<NothingToRun>(invocation), streams);
  return static_cast<int>(exit_code);
}

}  // namespace detent::cli

// Runs the commands that call a server, and prints the answers.
#pragma once

#include <istream>
#include <optional>
#include <ostream>
#include <string>

#include "cli/arguments.h"
#include "cli/terminal.h"
#include "client/api_client.h"

namespace detent::cli {

/// The streams of a command. Results go to `out`; errors and progress go to `err`.
struct Streams {
  std::istream& in;
  std::ostream& out;
  std::ostream& err;
  Terminal terminal = {};
};

/// Runs the command of `call` with `client`, which is connected to call.server.
ExitCode run_command(const ClientCall& call, ApiClient& client, const Streams& streams);

/// Returns the payload of a command line. `typed` is the argument; "-" reads `in`, and none means
/// JSON null. Valid JSON becomes a JSON payload unless `kind` is bytes. All else becomes bytes.
Payload read_payload(const std::optional<std::string>& typed, Payload::Kind kind, std::istream& in);

/// The exit code of an error: `not_found`, `usage` for an invalid argument, else `failed`.
ExitCode exit_code_of(ErrorCode code) noexcept;

}  // namespace detent::cli

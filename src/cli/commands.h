// Carries out what the command line asks of a server, and shows the answer.
#pragma once

#include <istream>
#include <optional>
#include <ostream>
#include <string>

#include "cli/arguments.h"
#include "cli/terminal.h"
#include "client/api_client.h"

namespace detent::cli {

/// Where a command reads and writes. Results go to `out`, what went wrong to `err`.
struct Streams {
  std::istream& in;
  std::ostream& out;
  std::ostream& err;
  Terminal terminal = {};
};

/// Runs the command of `call` over `client`, which speaks to call.server.
ExitCode run_command(const ClientCall& call, ApiClient& client, const Streams& streams);

/// The payload of a command line: "-" reads `in`; none typed is null. JSON is JSON unless `kind` is
/// bytes.
Payload read_payload(const std::optional<std::string>& typed, Payload::Kind kind, std::istream& in);

/// not_found for what isn't there, usage for what the caller got wrong, failed for all else.
ExitCode exit_code_of(ErrorCode code) noexcept;

}  // namespace detent::cli

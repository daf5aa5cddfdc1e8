// Runs the commands that call a server, and prints the answers.
#pragma once

#include <istream>
#include <optional>
#include <ostream>
#include <string>
#include <type_traits>

#include "cli/arguments/arguments.h"
#include "cli/output/display.h"
#include "cli/output/terminal.h"
#include "client/client_impl.h"

namespace detent::cli {

/// The streams of a command. Results go to `out`; errors and progress go to `err`.
struct Streams {
  std::istream& in;
  std::ostream& out;
  std::ostream& err;
  Terminal terminal = {};
};

/// Runs the command of `call` with `client`, which calls call.server.
ExitCode run_command(const ClientCall& call, Client& client, const Streams& streams);

/// The exit code of an error: `not_found`, `usage` for an invalid argument, else `failed`.
ExitCode exit_code_of(ErrorCode code) noexcept;
/// Prints the error and returns its exit code.
ExitCode fail_with(const Streams& streams, const Error& error);

/// Prints the results of the calls of one command.
class ResultPrinter {
 public:
  ResultPrinter(OutputFormat format, Client& client, const Streams& streams)
      : format_(format), client_(client), streams_(streams) {}

 protected:
  /// With --json: prints the last answer of the server and returns true. Else returns false, and
  /// the caller prints the result for people.
  bool pass_on();

  ExitCode fail_with(const Error& error) { return cli::fail_with(streams_, error); }

  /// Prints the result with `show_people(out, value)`, or its error.
  template <class T, class Show>
  ExitCode show(const ClientResult<T>& result, const Show& show_people) {
    if (!result) return fail_with(to_error(result.error()));
    if (pass_on()) return ExitCode::done;
    if constexpr (std::is_void_v<T>) {
      show_people(streams_.out);
    } else {
      show_people(streams_.out, *result);
    }
    return ExitCode::done;
  }

  const OutputFormat format_;
  Client& client_;
  const Streams& streams_;
};

/// Returns the payload of a command line. `typed` is the argument; "-" reads `in`, and none means
/// JSON null. One JSON value becomes a JSON payload, without the white space around it, unless
/// `kind` is bytes. Other text becomes bytes. Errors: `invalid_argument` for text that begins like
/// JSON ({, [ or ") but is not one JSON value, unless `kind` is bytes.
Result<client::Payload> read_payload(const std::optional<std::string>& typed,
                                     client::Payload::Kind kind, std::istream& in);

}  // namespace detent::cli

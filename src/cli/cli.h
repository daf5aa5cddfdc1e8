// The command line: reads it, then serves or checks (the caller's functions), speaks to a server
// elsewhere, or tells what a cron expression means.
// Start reading at arguments.h, which lists the commands; docs/reference/cli.md describes them.
#pragma once

#include <functional>

#include "cli/check_options.h"
#include "cli/commands.h"
#include "cli/settings.h"
#include "cli/token_options.h"

namespace detent::cli {

/// What is done in this process and not by a server elsewhere. All return the program's exit code.
struct LocalCommands {
  /// Runs a server until it is told to stop. May read its settings again meanwhile.
  std::function<int(const ServeCall&, const ReadAgain&)> serve;
  /// Looks whether the data of a server that does not run is sound.
  std::function<int(const CheckOptions&)> check;
  /// Makes an access token and shows it.
  std::function<int(const TokenOptions&)> make_token;
};

/// The whole program but for these: `return run(argc, argv, {std::cin, std::cout, std::cerr},
/// {serve, check, make_token});`. Returns: an ExitCode as a number, or what one of them returned.
int run(int argc, const char* const* argv, const Streams& streams, const LocalCommands& local);

}  // namespace detent::cli

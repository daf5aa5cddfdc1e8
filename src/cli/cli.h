// The command line: reads it, then serves (the caller's function) or speaks to a server elsewhere.
// Start reading at arguments.h, which lists the commands; docs/reference/cli.md describes them.
#pragma once

#include <functional>

#include "cli/commands.h"
#include "cli/serve_options.h"

namespace detent::cli {

/// Runs a server until it is told to stop; returns the exit code of the program.
using ServeFunction = std::function<int(const ServeOptions&)>;

/// The whole program but for the server: `return run(argc, argv, {std::cin, std::cout, std::cerr},
/// serve);`. Returns: an ExitCode as a number, or what `serve` returned.
int run(int argc, const char* const* argv, const Streams& streams, const ServeFunction& serve);

}  // namespace detent::cli

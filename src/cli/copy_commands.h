// `detent dump` and `detent restore`: all queues and tasks of a server to a file, and back
// (client/dump_copy.h). Both tell on the error stream how far they are.
#pragma once

#include "cli/arguments.h"
#include "cli/commands.h"
#include "client/api_client.h"

namespace detent::cli {

/// Writes to a file of another name first, so that a dump that fails leaves an earlier one whole.
/// Fails, though all else is there, when the server has damaged tasks.
ExitCode dump(const DumpCommand& command, ApiClient& client, const Streams& streams);

/// Fails when a line is refused (the others are restored), or the dump is not whole; a file that is
/// not is refused before anything is sent, standard input when its end is met.
ExitCode restore(const RestoreCommand& command, OutputFormat format, ApiClient& client,
                 const Streams& streams);

}  // namespace detent::cli

// `detent dump` and `detent restore` copy all queues, tasks and schedules of a server to a file,
// and back (client/dump_copy.h). Both print their progress on the error stream.
#pragma once

#include "cli/arguments/arguments.h"
#include "cli/commands/commands.h"
#include "detent/client.h"

namespace detent::cli {

/// Writes a dump to FILE.part and renames it at the end, so a failed dump does not change an
/// earlier dump. If the server has damaged tasks, the dump has all other data, but the command
/// fails.
ExitCode dump(const DumpCommand& command, Client& client, const Streams& streams);

/// Restores a dump. Fails if the server refuses a line (the other lines are restored) or if the
/// dump is incomplete. A file without an end line is rejected before the first request. Standard
/// input can be checked only at its end.
ExitCode restore(const RestoreCommand& command, OutputFormat format, Client& client,
                 const Streams& streams);

}  // namespace detent::cli

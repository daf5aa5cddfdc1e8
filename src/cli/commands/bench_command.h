// `detent bench` measures how fast a server accepts, hands out and completes tasks, as seen by a
// client.
//
// Several connections put batches of tasks that are due immediately. Then the same connections
// lease and complete them. Each connection waits for its answer before it sends the next call. So
// the rates are those of a closed loop, and the latencies are those of whole calls. The queue must
// be empty at the start, because bench completes all tasks in it. The queue is empty at the end.
#pragma once

#include <functional>
#include <string>

#include "cli/arguments/arguments.h"
#include "cli/commands/commands.h"
#include "detent/client.h"
#include "detent/clock.h"

namespace detent::cli {

/// Opens a new connection to the server with each call.
using Connect = std::function<Result<Client>()>;

/// Runs the benchmark and prints its result. If the queue has tasks or is paused, it fails before
/// it changes the queue. If a call fails, or the server hands out no tasks, the tasks that were put
/// stay in the queue; `detent purge` removes them.
ExitCode run_bench(const BenchCommand& command, OutputFormat format, const Connect& connect,
                   const Clock& clock, const Streams& streams);

}  // namespace detent::cli

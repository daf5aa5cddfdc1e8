// `detent bench`: how fast a server takes, hands out and ends tasks, as seen from here.
//
// Tasks that are due at once are put in batches over several connections, each of which waits for
// its answer before it asks again; then the same connections lease and complete them. So the rates
// are those of a closed loop with that many callers, and the latencies those of whole calls. The
// queue must be empty, for the sake of whoever's tasks would be taken, and is empty afterwards.
#pragma once

#include <functional>
#include <string>

#include "cli/arguments.h"
#include "cli/commands.h"
#include "client/api_client.h"
#include "detent/clock.h"

namespace detent::cli {

/// A connection to the server, each time it is called.
using Connect = std::function<Result<ApiClient>()>;

/// Fails when the queue has tasks or is paused, before anything is changed; when a call fails or
/// tasks don't come back, after what it has put so far: `detent purge` removes that.
ExitCode run_bench(const BenchCommand& command, OutputFormat format, const Connect& connect,
                   const Clock& clock, const Streams& streams);

}  // namespace detent::cli

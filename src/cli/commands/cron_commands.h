// `detent cron next` and `detent cron explain`, which need no server.
#pragma once

#include "cli/arguments/arguments.h"
#include "cli/commands/commands.h"
#include "detent/clock.h"

namespace detent::cli {

/// Explains an expression, or prints its dates after `--after` (default: `now`). Returns `usage`
/// for a wrong expression or zone, with a caret under the wrong column. Returns `not_found` if
/// there are no more dates.
ExitCode run_cron(const CronCall& call, WallTime now, const Streams& streams);

}  // namespace detent::cli

// `detent cron next` and `detent cron explain`: what a cron expression means. No server is asked.
#pragma once

#include "cli/arguments.h"
#include "cli/commands.h"
#include "detent/clock.h"

namespace detent::cli {

/// Tells the times after `--after`, or else after `now`. A wrong expression is wrong usage, told
/// with a caret under the column; not_found when no time is left.
ExitCode run_cron(const CronCall& call, WallTime now, const Streams& streams);

}  // namespace detent::cli

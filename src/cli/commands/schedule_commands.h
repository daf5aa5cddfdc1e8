// `detent schedule`: create, show, change and remove recurring schedules.
#pragma once

#include "cli/arguments/arguments.h"
#include "cli/commands/commands.h"
#include "detent/client.h"

namespace detent::cli {

/// Runs a command with `client`. For an error in a cron expression, a caret points to the column.
ExitCode run_schedule_command(const ScheduleCommand& command, OutputFormat format, Client& client,
                              const Streams& streams);

}  // namespace detent::cli

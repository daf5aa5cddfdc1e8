// `detent schedule`: recurring schedules are made, shown, changed and removed.
#pragma once

#include "cli/arguments.h"
#include "cli/commands.h"
#include "client/api_client.h"

namespace detent::cli {

/// An error in a cron expression is shown under the expression, at its column.
ExitCode run_schedule_command(const ScheduleCommand& command, OutputFormat format,
                              ApiClient& client, const Streams& streams);

}  // namespace detent::cli

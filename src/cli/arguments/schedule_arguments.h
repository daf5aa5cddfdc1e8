// Describes `detent schedule` and its commands to CLI11.
#pragma once

#include "cli/arguments/argument_options.h"
#include "cli/options/schedule_options.h"

namespace detent::cli {

/// The values that the options write to. After the line was read, `chosen` is the chosen command.
struct ScheduleArguments {
  PutScheduleCommand put;  // without the next two values
  std::optional<WallTime> anchor = {};
  client::CalendarRule::MonthEnd month_end = client::CalendarRule::MonthEnd::clamp;
  GetScheduleCommand get;
  NextOccurrencesCommand next;
  ChangeScheduleCommand change;
  BackfillCommand backfill;
  ScheduleCommand chosen;
};

/// `parsed` must outlive `app`.
void add_schedule(CLI::App& app, ClientCall& call, ScheduleArguments& parsed);

}  // namespace detent::cli

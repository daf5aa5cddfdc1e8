// The command line of `detent schedule` and its commands, read by CLI11.
#pragma once

#include "cli/argument_options.h"
#include "cli/schedule_options.h"

namespace detent::cli {

/// What the options write to; `chosen` is the command once the line has been read.
struct ScheduleArguments {
  PutScheduleCommand put;  // but for these two
  std::optional<WallTime> anchor = {};
  CalendarRule::MonthEnd month_end = CalendarRule::MonthEnd::clamp;
  GetScheduleCommand get;
  NextOccurrencesCommand next;
  ChangeScheduleCommand change;
  BackfillCommand backfill;
  ScheduleCommand chosen;
};

/// `parsed` must outlive `app`.
void add_schedule(CLI::App& app, ClientCall& call, ScheduleArguments& parsed);

}  // namespace detent::cli

// Recurring schedules to bodies: answers of the server, and the requests of clients. What is
// written here schedule_parser.h reads back, value for value.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "protocol/json/json_writer.h"
#include "protocol/json/schedule_parser.h"
#include "task/recurring_schedule.h"

namespace detent::json {

/// The body of `PUT /v1/schedules/{name}`.
std::string render_schedule_rule(const RecurringSchedule& schedule);
/// The body of `POST /v1/schedules/{name}/backfill`.
std::string render_backfill(const BackfillRange& range);

/// `GET /v1/schedules/{name}`: all of the above, and where it stands.
std::string render_schedule_view(const ScheduleView& view);
/// `GET /v1/schedules`; `cursor` is where the list goes on, "" when it is over.
std::string render_schedule_list(std::span<const ScheduleView> views, std::string_view cursor);
/// `GET /v1/schedules/{name}/next`.
std::string render_next_occurrences(std::string_view name, std::span<const WallTime> next);
/// `POST /v1/occurrences`.
std::string render_schedule_preview(const SchedulePreview& preview);
/// `DELETE /v1/schedules/{name}`.
std::string render_removed_schedule(std::string_view name);
/// `POST /v1/schedules/{name}/backfill`.
std::string render_backfill_counts(const BackfillCounts& counts);

/// The members of a line of a dump, but for the payload.
void write_schedule_record(JsonWriter& writer, const ScheduleRecord& record);

}  // namespace detent::json

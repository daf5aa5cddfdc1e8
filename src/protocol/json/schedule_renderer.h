// Writes recurring schedules as JSON bodies: answers of the server, and requests of clients.
// schedule_parser.h reads these bodies back into equal values.
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

/// The answer of `GET /v1/schedules/{name}`: the schedule, its state and its progress.
std::string render_schedule_view(const ScheduleView& view);
/// The answer of `GET /v1/schedules`. `cursor` is the start of the next page; "" on the last page.
std::string render_schedule_list(std::span<const ScheduleView> views, std::string_view cursor);
/// The answer of `GET /v1/schedules/{name}/next`.
std::string render_next_occurrences(std::string_view name, std::span<const WallTime> next);
/// The answer of `POST /v1/occurrences`.
std::string render_schedule_preview(const SchedulePreview& preview);
/// The answer of `DELETE /v1/schedules/{name}`.
std::string render_removed_schedule(std::string_view name);
/// The answer of `POST /v1/schedules/{name}/backfill`.
std::string render_backfill_counts(const BackfillCounts& counts);

/// Writes the members of a schedule in a dump line, except the payload.
void write_schedule_record(JsonWriter& writer, const ScheduleRecord& record);

}  // namespace detent::json

// Writes and reads the bodies about recurring schedules. Requests are read strictly, as in
// request_codec.h. In answers, fields that a newer server adds are skipped, as in answer_codec.h.
// docs/reference/http.md describes each member.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "protocol/json/json_reader.h"
#include "protocol/json/json_writer.h"
#include "task/limits.h"
#include "task/recurring_schedule.h"

namespace detent::json {

/// The body of `PUT /v1/schedules/{name}`. Checks that each value fits its type. validate() checks
/// the limits, and the engine checks that it can read the rule.
Result<RecurringSchedule> parse_schedule_rule(std::string_view name, std::string_view body);
std::string render_schedule_rule(const RecurringSchedule& schedule);

/// The body of `POST /v1/schedules/{name}/backfill`.
struct BackfillRange {
  WallTime from{};
  WallTime to{};
  std::uint64_t limit = kMaxBackfill;  // the most occurrences that this request decides
};
Result<BackfillRange> parse_backfill(std::string_view body);
std::string render_backfill(const BackfillRange& range);

/// A schedule in a line of a dump, strictly.
Result<ScheduleRecord> parse_schedule_record(const JsonValue& json);
/// Writes the object of a schedule in a line of a dump.
void write_schedule_record(JsonWriter& writer, const ScheduleRecord& record);

/// The answer of every call that reads or changes one schedule: the schedule, its state and its
/// progress.
std::string render_schedule_view(const ScheduleView& view);
Result<ScheduleView> parse_schedule_view(std::string_view body);

/// The answer of `GET /v1/schedules`.
struct ScheduleList {
  std::vector<ScheduleView> schedules;
  std::string cursor;  // start of the next page; "" on the last page
};
std::string render_schedule_list(std::span<const ScheduleView> views, std::string_view cursor);
Result<ScheduleList> parse_schedule_list(std::string_view body);

/// The answer of `GET /v1/schedules/{name}/next`.
std::string render_next_occurrences(std::string_view name, std::span<const WallTime> next);
Result<std::vector<WallTime>> parse_next_occurrences(std::string_view body);
/// The answer of `POST /v1/occurrences`.
std::string render_schedule_preview(const SchedulePreview& preview);
/// The answer of `DELETE /v1/schedules/{name}`.
std::string render_removed_schedule(std::string_view name);

/// The answer of `POST /v1/schedules/{name}/backfill`.
struct BackfillCounts {
  std::uint64_t made = 0;
  std::uint64_t there = 0;            // occurrences that already had a task
  std::optional<WallTime> next = {};  // the first occurrence that is still undecided
};
std::string render_backfill_counts(const BackfillCounts& counts);
Result<BackfillCounts> parse_backfill_counts(std::string_view body);

}  // namespace detent::json

// Bodies about recurring schedules to values: requests, read as strictly as those of
// request_parser.h, and answers, read as those of answer_parser.h. docs/reference/http.md describes
// each member.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "protocol/json/json_fields.h"
#include "task/limits.h"
#include "task/recurring_schedule.h"

namespace detent::json {

/// Reads the body of `PUT /v1/schedules/{name}`. What the bounds are is checked by validate(), but
/// for what would not fit its type; whether the rule can be read, by the engine.
Result<RecurringSchedule> parse_schedule_rule(std::string_view name, std::string_view body);

/// The body of `POST /v1/schedules/{name}/backfill`.
struct BackfillRange {
  WallTime from{};
  WallTime to{};
  std::uint64_t limit = kMaxBackfill;  // occurrences of this request
};
Result<BackfillRange> parse_backfill(std::string_view body);

/// A line of a dump, strictly. `payload_text` is found, too, and left to the caller: there a
/// payload may stand in quotes.
Result<ScheduleRecord> parse_schedule_record(std::string_view json, JsonField& payload_text);

/// Answers: of all that reads or changes a schedule; of `GET /v1/schedules`; of `…/next`; of
/// `…/backfill`.
Result<ScheduleView> parse_schedule_view(std::string_view body);
struct ScheduleList {
  std::vector<ScheduleView> schedules;
  std::string cursor;  // where the list goes on; "" when it is over
};
Result<ScheduleList> parse_schedule_list(std::string_view body);
Result<std::vector<WallTime>> parse_next_occurrences(std::string_view body);
struct BackfillCounts {
  std::uint64_t made = 0;
  std::uint64_t there = 0;
  std::optional<WallTime> next = {};  // the first occurrence that is left
};
Result<BackfillCounts> parse_backfill_counts(std::string_view body);

}  // namespace detent::json

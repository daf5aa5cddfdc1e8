// Reads bodies about recurring schedules into values. Requests are read strictly, as in
// request_parser.h. In answers, fields that a newer server adds are skipped, as in answer_parser.h.
// docs/reference/http.md describes each member.
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

/// Reads the body of `PUT /v1/schedules/{name}`. Checks that each value fits its type. validate()
/// checks the limits, and the engine checks that it can read the rule.
Result<RecurringSchedule> parse_schedule_rule(std::string_view name, std::string_view body);

/// The body of `POST /v1/schedules/{name}/backfill`.
struct BackfillRange {
  WallTime from{};
  WallTime to{};
  std::uint64_t limit = kMaxBackfill;  // the most occurrences that this request decides
};
Result<BackfillRange> parse_backfill(std::string_view body);

/// Reads a schedule from a line of a dump, strictly. Also finds the member `payload_text`, a
/// payload in quotes, and sets `payload_text` for the caller to read.
Result<ScheduleRecord> parse_schedule_record(std::string_view json, JsonField& payload_text);

/// Reads the answer of every call that reads or changes one schedule. The functions below read the
/// answers of `GET /v1/schedules`, `…/next` and `…/backfill`.
Result<ScheduleView> parse_schedule_view(std::string_view body);
struct ScheduleList {
  std::vector<ScheduleView> schedules;
  std::string cursor;  // start of the next page; "" on the last page
};
Result<ScheduleList> parse_schedule_list(std::string_view body);
Result<std::vector<WallTime>> parse_next_occurrences(std::string_view body);
struct BackfillCounts {
  std::uint64_t made = 0;
  std::uint64_t there = 0;            // occurrences that already had a task
  std::optional<WallTime> next = {};  // the first occurrence that is still undecided
};
Result<BackfillCounts> parse_backfill_counts(std::string_view body);

}  // namespace detent::json

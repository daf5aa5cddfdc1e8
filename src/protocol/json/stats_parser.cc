#include "protocol/json/stats_parser.h"

#include <array>
#include <chrono>
#include <cstdint>
#include <limits>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include "protocol/json/json_fields.h"
#include "protocol/json/lateness_json.h"
#include "protocol/json/problem.h"
#include "protocol/json/queue_parser.h"
#include "protocol/json/read_answer.h"

namespace detent::json {

namespace {

using std::chrono::milliseconds;

/// A member with a count, and the variable that receives it.
struct Count {
  JsonField field;
  std::uint64_t* value = nullptr;
  bool is_new = false;  // older servers do not send this member
};

/// Reads the members of an object: the values of `counts`, and the texts of `others`.
Result<void> read_counts(std::string_view json, std::span<Count> counts,
                         std::span<JsonField* const> others) {
  std::vector<JsonField*> fields(others.begin(), others.end());
  for (Count& count : counts) fields.push_back(&count.field);
  TRY(take_fields(json, fields, UnknownFields::skip));
  for (Count& count : counts) {
    if (count.is_new && !count.field.given()) continue;
    ASSIGN_OR_RETURN(*count.value,
                     read_integer(count.field, {.max = std::numeric_limits<std::uint64_t>::max()}));
  }
  return ok();
}

Result<TaskCounters> read_counters(std::string_view json) {
  TaskCounters counters;
  std::array<Count, 10> counts{{{{"scheduled"}, &counters.scheduled},
                                {{"fired"}, &counters.fired},
                                {{"leased"}, &counters.leased},
                                {{"completed"}, &counters.completed},
                                {{"failed"}, &counters.failed},
                                {{"cancelled"}, &counters.cancelled},
                                {{"dead"}, &counters.dead},
                                {{"leases_expired"}, &counters.leases_expired},
                                {{"conflicts"}, &counters.conflicts},
                                {{"quarantined"}, &counters.quarantined}}};
  TRY(read_counts(json, counts, {}));
  return counters;
}

Result<std::uint64_t> read_count(std::string_view json) {
  return read_integer({"counts", json}, {.max = std::numeric_limits<std::uint64_t>::max()});
}

/// Returns an empty list if the field is missing, because older servers do not send it.
Result<std::vector<std::uint64_t>> read_lateness(const JsonField& field) {
  constexpr std::size_t kMostBuckets = 64;
  std::vector<std::uint64_t> counts;
  if (!field.given()) return counts;
  ASSIGN_OR_RETURN(const auto elements, take_elements(field.text, kMostBuckets));
  for (const std::string_view element : elements) {
    ASSIGN_OR_RETURN(const std::uint64_t count, read_count(element));
    counts.push_back(count);
  }
  return counts;
}

/// Returns zeros if the field is missing, because older servers do not send it.
Result<LateCounts> read_late_counts(const JsonField& field) {
  LateCounts late;
  if (!field.given()) return late;
  JsonField tasks{"tasks"};
  JsonField time{"ms"};
  const std::array<JsonField*, 2> fields{&tasks, &time};
  TRY(take_fields(field.text, fields, UnknownFields::skip));
  if (!tasks.given()) return missing_field(tasks);
  ASSIGN_OR_RETURN(late.tasks, read_by_cause(tasks.text, UnknownFields::skip));
  ASSIGN_OR_RETURN(late.time, read_late(time, UnknownFields::skip));
  return late;
}

Result<ServerStats> read_stats(std::string_view json) {
  ServerStats stats;
  JsonField version{"version"};
  JsonField uptime{"uptime_ms"};
  JsonField counters{"counters"};
  JsonField queues{"queues"};
  JsonField external{"external"};
  JsonField lateness{"lateness_counts"};
  JsonField tasks{"tasks"};
  JsonField late{"late"};
  JsonField free_bytes{"data_free_bytes"};
  std::array<Count, 4> counts{{{{"loaded"}, &stats.loaded, true},
                               {{"waiting_workers"}, &stats.waiting_workers, true},
                               {{"schedules"}, &stats.schedules, true},
                               {{"queue_count"}, &stats.queue_count, true}}};
  const std::array<JsonField*, 9> others{&version,  &uptime, &counters, &queues,    &external,
                                         &lateness, &tasks,  &late,     &free_bytes};
  TRY(read_counts(json, counts, others));
  if (tasks.given()) {
    std::array<Count, 4> states{{{{"scheduled"}, &stats.all.scheduled},
                                 {{"ready"}, &stats.all.ready},
                                 {{"leased"}, &stats.all.leased},
                                 {{"dead"}, &stats.all.dead}}};
    TRY(read_counts(tasks.text, states, {}));
  }
  if (external.given()) {
    std::array<Count, 1> away{{{{"tasks"}, &stats.away.emplace()}}};
    JsonField lost{"lost"};
    TRY(read_counts(external.text, away, std::array{&lost}));
    stats.is_away_lost = lost.text == "true";
  }
  ASSIGN_OR_RETURN(stats.version, read_string(version));
  ASSIGN_OR_RETURN(const std::uint64_t uptime_ms, read_integer(uptime, {}));
  stats.uptime = milliseconds{uptime_ms};
  if (free_bytes.given()) {
    ASSIGN_OR_RETURN(stats.data_free_bytes, read_integer(free_bytes, {}));
  }
  if (counters.given()) {
    ASSIGN_OR_RETURN(stats.counters, read_counters(counters.text));
  } else {
    stats.scope = StatsScope::some_queues;
  }
  ASSIGN_OR_RETURN(stats.lateness, read_lateness(lateness));
  ASSIGN_OR_RETURN(stats.late, read_late_counts(late));
  if (!queues.given()) return missing_field(queues);
  ASSIGN_OR_RETURN(const auto elements,
                   take_elements(queues.text, std::numeric_limits<std::size_t>::max()));
  for (const std::string_view element : elements) {
    ASSIGN_OR_RETURN(QueueStats queue, read_queue_stats(element));
    stats.queues.push_back(std::move(queue));
  }
  return stats;
}

Result<Forecast> read_forecast(std::string_view json) {
  Forecast forecast;
  JsonField from{"from"};
  JsonField bin{"bin_ms"};
  JsonField counted{"counts"};
  std::array<Count, 3> counts{{{{"overdue"}, &forecast.overdue},
                               {{"later"}, &forecast.later},
                               {{"coarse"}, &forecast.coarse}}};
  const std::array<JsonField*, 3> others{&from, &bin, &counted};
  TRY(read_counts(json, counts, others));
  ASSIGN_OR_RETURN(forecast.from, read_time(from));
  ASSIGN_OR_RETURN(const std::uint64_t bin_ms,
                   read_integer(bin, {.min = 1, .max = std::uint64_t{kMaxForecastSpan.count()}}));
  forecast.bin = milliseconds{bin_ms};
  if (!counted.given()) return missing_field(counted);
  ASSIGN_OR_RETURN(const auto elements, take_elements(counted.text, kMaxForecastBins));
  for (const std::string_view element : elements) {
    ASSIGN_OR_RETURN(const std::uint64_t count, read_count(element));
    forecast.counts.push_back(count);
  }
  return forecast;
}

Result<WheelView::Slot> read_slot(std::string_view json, unsigned level) {
  JsonField index{"slot"};
  JsonField from{"from"};
  JsonField until{"until"};
  JsonField count{"count"};
  const std::array<JsonField*, 4> fields{&index, &from, &until, &count};
  TRY(take_fields(json, fields, UnknownFields::skip));
  WheelView::Slot slot{.level = level};
  ASSIGN_OR_RETURN(const std::uint64_t place,
                   read_integer(index, {.max = std::numeric_limits<unsigned>::max()}));
  slot.index = static_cast<unsigned>(place);
  ASSIGN_OR_RETURN(slot.from, read_time(from));
  ASSIGN_OR_RETURN(slot.until, read_time(until));
  ASSIGN_OR_RETURN(slot.count, read_integer(count, {}));
  return slot;
}

Result<WheelView> read_wheel(std::string_view json) {
  JsonField now{"now"};
  JsonField tick{"tick_ms"};
  JsonField slots_per_level{"slots_per_level"};
  JsonField timers{"timers"};
  const std::array<JsonField*, 4> fields{&now, &tick, &slots_per_level, &timers};
  TRY(take_fields(json, fields, UnknownFields::skip));
  WheelView wheel;
  ASSIGN_OR_RETURN(wheel.now, read_time(now));
  ASSIGN_OR_RETURN(const std::uint64_t tick_ms, read_integer(tick, {.min = 1}));
  wheel.tick = milliseconds{tick_ms};
  ASSIGN_OR_RETURN(
      const std::uint64_t slots,
      read_integer(slots_per_level, {.min = 1, .max = std::numeric_limits<unsigned>::max()}));
  wheel.slots_per_level = static_cast<unsigned>(slots);
  ASSIGN_OR_RETURN(wheel.timers, read_integer(timers, {}));
  ASSIGN_OR_RETURN(const auto levels, take_list(json, "levels"));
  for (const std::string_view level : levels) {
    ASSIGN_OR_RETURN(const auto elements, take_list(level, "slots"));
    for (const std::string_view element : elements) {
      ASSIGN_OR_RETURN(const WheelView::Slot slot, read_slot(element, wheel.level_count));
      wheel.slots.push_back(slot);
    }
    ++wheel.level_count;
  }
  return wheel;
}

Result<RestoreAnswer::LineError> read_line_error(std::string_view json) {
  JsonField line{"line"};
  JsonField problem{"problem"};
  const std::array<JsonField*, 2> fields{&line, &problem};
  TRY(take_fields(json, fields, UnknownFields::skip));
  ASSIGN_OR_RETURN(const std::uint64_t number, read_integer(line, {.min = 1}));
  if (!problem.given()) return missing_field(problem);
  return RestoreAnswer::LineError{number, parse_problem(problem.text)};
}

Result<RestoreAnswer> read_restored(std::string_view json) {
  RestoreAnswer answer;
  JsonField errors{"errors"};
  std::array<Count, 5> counts{{{{"restored"}, &answer.restored},
                               {{"there"}, &answer.there},
                               {{"queues"}, &answer.queues},
                               {{"schedules"}, &answer.schedules, true},
                               {{"schedules_there"}, &answer.schedules_there, true}}};
  const std::array<JsonField*, 1> others{&errors};
  TRY(read_counts(json, counts, others));
  if (!errors.given()) return missing_field(errors);
  ASSIGN_OR_RETURN(const auto elements,
                   take_elements(errors.text, std::numeric_limits<std::size_t>::max()));
  for (const std::string_view element : elements) {
    ASSIGN_OR_RETURN(RestoreAnswer::LineError error, read_line_error(element));
    answer.errors.push_back(std::move(error));
  }
  return answer;
}

}  // namespace

Result<ServerStats> parse_stats(std::string_view body) { return as_answer(read_stats(body)); }

Result<Forecast> parse_forecast(std::string_view body) { return as_answer(read_forecast(body)); }

Result<WheelView> parse_wheel(std::string_view body) { return as_answer(read_wheel(body)); }

Result<RestoreAnswer> parse_restored(std::string_view body) {
  return as_answer(read_restored(body));
}

}  // namespace detent::json

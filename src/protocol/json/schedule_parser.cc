#include "protocol/json/schedule_parser.h"

#include <array>
#include <limits>
#include <span>
#include <utility>

#include "protocol/json/json_fields.h"
#include "protocol/json/read_answer.h"
#include "protocol/json/rule_fields.h"

namespace detent::json {

namespace {

using std::chrono::milliseconds;

/// The fields of a schedule in a client's request.
struct ScheduleRuleFields {
  JsonField cron{"cron"};
  DurationFields every{{"every"}, {"every_ms"}};
  JsonField calendar{"calendar"};
  JsonField anchor{"anchor"};
  JsonField time_zone{"time_zone"};
  JsonField gap{"gap"};
  JsonField repeat{"repeat"};
  JsonField queue{"queue"};
  PayloadFields payload;
  TaskRuleFields rules;
  JsonField count{"count"};
  JsonField start{"start"};
  JsonField end{"end"};
  DurationFields jitter{{"jitter"}, {"jitter_ms"}};
  JsonField misfire{"misfire"};
  DurationFields misfire_grace{{"misfire_grace"}, {"misfire_grace_ms"}};
  JsonField misfire_limit{"misfire_limit"};
  JsonField overlap{"overlap"};

  std::vector<JsonField*> all() {
    std::vector<JsonField*> fields{&cron,
                                   &every.text,
                                   &every.milliseconds,
                                   &calendar,
                                   &anchor,
                                   &time_zone,
                                   &gap,
                                   &repeat,
                                   &queue,
                                   &payload.json,
                                   &payload.base64,
                                   &count,
                                   &start,
                                   &end,
                                   &jitter.text,
                                   &jitter.milliseconds,
                                   &misfire,
                                   &misfire_grace.text,
                                   &misfire_limit,
                                   &misfire_grace.milliseconds,
                                   &overlap};
    for (JsonField* const field : rules.all()) fields.push_back(field);
    return fields;
  }
};

/// Reads one of a few words. `all` has every value of the enum.
template <class Enum, std::size_t kCount>
Result<Enum> read_word(const JsonField& field, const std::array<Enum, kCount>& all) {
  ASSIGN_OR_RETURN(const std::string text, read_string(field));
  std::string allowed;
  for (const Enum value : all) {
    if (to_string(value) == text) return value;
    allowed += (allowed.empty() ? "\"" : ", \"") + std::string(to_string(value)) + "\"";
  }
  return wrong_field(field, "one of " + allowed);
}

template <class Enum, std::size_t kCount>
Result<void> take_word(const JsonField& field, const std::array<Enum, kCount>& all, auto& value) {
  if (!field.given()) return ok();
  ASSIGN_OR_RETURN(value, read_word(field, all));
  return ok();
}

constexpr std::array kUnits{CalendarRule::Unit::day, CalendarRule::Unit::week,
                            CalendarRule::Unit::month, CalendarRule::Unit::year};
constexpr std::array kMonthEnds{CalendarRule::MonthEnd::clamp, CalendarRule::MonthEnd::skip};
constexpr std::array kGaps{ScheduleGap::skip, ScheduleGap::run_after};
constexpr std::array kRepeats{ScheduleRepeat::first, ScheduleRepeat::second, ScheduleRepeat::both};
constexpr std::array kMisfires{Misfire::skip, Misfire::once, Misfire::all};
constexpr std::array kOverlaps{ScheduleOverlap::allow, ScheduleOverlap::skip,
                               ScheduleOverlap::queue_one};

Result<void> take_time(const JsonField& field, std::optional<WallTime>& time) {
  if (!field.given()) return ok();
  ASSIGN_OR_RETURN(time, read_time(field));
  return ok();
}

Result<void> take_count(const JsonField& field, std::uint32_t& count) {
  if (!field.given()) return ok();
  ASSIGN_OR_RETURN(const std::uint64_t value,
                   read_integer(field, {.max = std::numeric_limits<std::uint32_t>::max()}));
  count = static_cast<std::uint32_t>(value);
  return ok();
}

Result<CalendarRule> read_calendar_members(std::string_view json) {
  JsonField every{"every"};
  JsonField unit{"unit"};
  JsonField month_end{"month_end"};
  const std::array<JsonField*, 3> fields{&every, &unit, &month_end};
  TRY(take_fields(json, fields, UnknownFields::refuse));
  CalendarRule rule;
  TRY(take_count(every, rule.every));
  if (!unit.given()) return missing_field(unit);
  TRY(take_word(unit, kUnits, rule.unit));
  TRY(take_word(month_end, kMonthEnds, rule.month_end));
  return rule;
}

Result<CalendarRule> read_calendar(const JsonField& field) {
  if (!field.is(JsonKind::object)) {
    return wrong_field(field, R"(an object such as {"every":3,"unit":"month"})");
  }
  auto rule = read_calendar_members(field.text);
  if (!rule) return inside_field(field, std::move(rule).error());
  return rule;
}

using Rule = decltype(RecurringSchedule::rule);

Result<Rule> read_rule(const ScheduleRuleFields& fields) {
  const int given =
      int{fields.cron.given()} + int{fields.every.given()} + int{fields.calendar.given()};
  if (given != 1) {
    return Error{ErrorCode::invalid_argument, "give one of cron, every and calendar", "cron"};
  }
  if (fields.cron.given()) {
    if (fields.anchor.given()) {
      return Error{ErrorCode::invalid_argument, "a cron expression has no anchor", "anchor"};
    }
    ASSIGN_OR_RETURN(std::string expression, read_string(fields.cron));
    return Rule{CronRule{std::move(expression)}};
  }
  std::optional<WallTime> anchor;
  if (fields.anchor.given()) {
    ASSIGN_OR_RETURN(anchor, read_time(fields.anchor));
  }
  if (fields.every.given()) {
    ASSIGN_OR_RETURN(const auto period, read_duration(fields.every, kMaxDelay));
    return Rule{IntervalRule{.period = *period, .anchor = anchor}};
  }
  ASSIGN_OR_RETURN(CalendarRule rule, read_calendar(fields.calendar));
  rule.anchor = anchor;
  return Rule{rule};
}

Result<RecurringSchedule> read_schedule(std::string_view name, const ScheduleRuleFields& fields) {
  RecurringSchedule schedule;
  schedule.name = name;
  ASSIGN_OR_RETURN(schedule.rule, read_rule(fields));
  if (fields.time_zone.given()) {
    ASSIGN_OR_RETURN(schedule.time_zone, read_string(fields.time_zone));
  }
  TRY(take_word(fields.gap, kGaps, schedule.gap));
  TRY(take_word(fields.repeat, kRepeats, schedule.repeat));
  ASSIGN_OR_RETURN(schedule.queue, read_string(fields.queue));
  ASSIGN_OR_RETURN(schedule.payload, read_payload(fields.payload));
  ASSIGN_OR_RETURN(schedule.rules, read_task_rules(fields.rules));
  if (fields.count.given()) {
    ASSIGN_OR_RETURN(schedule.count, read_integer(fields.count, {.min = 1}));
  }
  TRY(take_time(fields.start, schedule.start));
  TRY(take_time(fields.end, schedule.end));
  ASSIGN_OR_RETURN(const auto jitter, read_duration(fields.jitter, kMaxJitter));
  schedule.jitter = jitter.value_or(schedule.jitter);
  TRY(take_word(fields.misfire, kMisfires, schedule.misfire));
  ASSIGN_OR_RETURN(const auto grace, read_duration(fields.misfire_grace, kMaxDelay));
  schedule.misfire_grace = grace.value_or(schedule.misfire_grace);
  TRY(take_count(fields.misfire_limit, schedule.misfire_limit));
  TRY(take_word(fields.overlap, kOverlaps, schedule.overlap));
  return schedule;
}

/// The fields of a schedule's progress.
struct ProgressFields {
  JsonField created_at{"created_at"};
  JsonField decided_to{"decided_to"};
  JsonField paused{"paused"};
  JsonField made{"made"};
  JsonField overlapped{"overlapped"};
  JsonField last_at{"last_at"};
  JsonField last_task{"last_task"};
  JsonField queued_at{"queued_at"};

  std::array<JsonField*, 8> all() {
    return {&created_at, &decided_to, &paused,    &made,
            &overlapped, &last_at,    &last_task, &queued_at};
  }
};

Result<ScheduleProgress> read_progress(const ProgressFields& fields) {
  ScheduleProgress progress;
  ASSIGN_OR_RETURN(progress.created_at, read_time(fields.created_at));
  ASSIGN_OR_RETURN(progress.decided_to, read_time(fields.decided_to));
  if (!fields.paused.is(JsonKind::boolean)) return wrong_field(fields.paused, "true or false");
  progress.paused = fields.paused.text == "true";
  ASSIGN_OR_RETURN(progress.made, read_integer(fields.made, {}));
  ASSIGN_OR_RETURN(progress.overlapped, read_integer(fields.overlapped, {}));
  TRY(take_time(fields.last_at, progress.last_at));
  if (fields.last_task.given()) {
    ASSIGN_OR_RETURN(const std::string id, read_string(fields.last_task));
    const std::optional<TaskId> task = parse_task_id(id);
    if (!task) return wrong_field(fields.last_task, "the id of a task");
    progress.last_task = *task;
  }
  TRY(take_time(fields.queued_at, progress.queued_at));
  return progress;
}

Result<ScheduleView> read_view(std::string_view json) {
  JsonField name{"name"};
  JsonField error{"error"};
  JsonField words{"words"};
  JsonField next_at{"next_at"};
  const std::array<JsonField*, 4> fields{&name, &error, &words, &next_at};
  TRY(take_fields(json, fields, UnknownFields::skip));
  ProgressFields progress;
  TRY(take_fields(json, progress.all(), UnknownFields::skip));
  ScheduleRuleFields rule;
  TRY(take_fields(json, rule.all(), UnknownFields::skip));
  ScheduleView view;
  ASSIGN_OR_RETURN(const std::string text, read_string(name));
  ASSIGN_OR_RETURN(view.record.schedule, read_schedule(text, rule));
  ASSIGN_OR_RETURN(view.record.progress, read_progress(progress));
  ASSIGN_OR_RETURN(view.words, read_string(words));
  if (error.given()) {
    ASSIGN_OR_RETURN(view.broken, read_string(error));
  }
  TRY(take_time(next_at, view.next_at));
  return view;
}

Result<ScheduleList> read_list(std::string_view json) {
  ASSIGN_OR_RETURN(const auto elements, take_list(json, "schedules"));
  ScheduleList list;
  for (const std::string_view element : elements) {
    ASSIGN_OR_RETURN(ScheduleView view, read_view(element));
    list.schedules.push_back(std::move(view));
  }
  ASSIGN_OR_RETURN(list.cursor, read_cursor(json));
  return list;
}

Result<std::vector<WallTime>> read_next(std::string_view json) {
  ASSIGN_OR_RETURN(const auto elements, take_list(json, "next"));
  std::vector<WallTime> times;
  for (const std::string_view element : elements) {
    ASSIGN_OR_RETURN(const WallTime time, read_time({.name = "next", .text = element}));
    times.push_back(time);
  }
  return times;
}

Result<BackfillCounts> read_backfill_counts(std::string_view json) {
  JsonField made{"made"};
  JsonField there{"there"};
  JsonField next{"next"};
  const std::array<JsonField*, 3> fields{&made, &there, &next};
  TRY(take_fields(json, fields, UnknownFields::skip));
  BackfillCounts counts;
  ASSIGN_OR_RETURN(counts.made, read_integer(made, {}));
  ASSIGN_OR_RETURN(counts.there, read_integer(there, {}));
  TRY(take_time(next, counts.next));
  return counts;
}

}  // namespace

Result<RecurringSchedule> parse_schedule_rule(std::string_view name, std::string_view body) {
  ScheduleRuleFields fields;
  TRY(take_fields(body, fields.all(), UnknownFields::refuse));
  return read_schedule(name, fields);
}

Result<BackfillRange> parse_backfill(std::string_view body) {
  JsonField from{"from"};
  JsonField to{"to"};
  JsonField limit{"limit"};
  const std::array<JsonField*, 3> fields{&from, &to, &limit};
  TRY(take_fields(body, fields, UnknownFields::refuse));
  BackfillRange range;
  if (limit.given()) {
    ASSIGN_OR_RETURN(range.limit, read_integer(limit, {.min = 1, .max = kMaxBackfill}));
  }
  ASSIGN_OR_RETURN(range.from, read_time(from));
  ASSIGN_OR_RETURN(range.to, read_time(to));
  return range;
}

Result<ScheduleRecord> parse_schedule_record(std::string_view json, JsonField& payload_text) {
  JsonField name{"name"};
  ProgressFields progress;
  ScheduleRuleFields rule;
  std::vector<JsonField*> fields = rule.all();
  fields.insert(fields.end(), {&name, &payload_text});
  for (JsonField* const field : progress.all()) fields.push_back(field);
  TRY(take_fields(json, fields, UnknownFields::refuse));
  ScheduleRecord record;
  ASSIGN_OR_RETURN(const std::string text, read_string(name));
  ASSIGN_OR_RETURN(record.schedule, read_schedule(text, rule));
  ASSIGN_OR_RETURN(record.progress, read_progress(progress));
  return record;
}

Result<ScheduleView> parse_schedule_view(std::string_view body) {
  return as_answer(read_view(body));
}

Result<ScheduleList> parse_schedule_list(std::string_view body) {
  return as_answer(read_list(body));
}

Result<std::vector<WallTime>> parse_next_occurrences(std::string_view body) {
  return as_answer(read_next(body));
}

Result<BackfillCounts> parse_backfill_counts(std::string_view body) {
  return as_answer(read_backfill_counts(body));
}

}  // namespace detent::json

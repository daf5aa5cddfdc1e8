#include "protocol/json/schedule_renderer.h"

#include <optional>

#include "base/wall_time.h"
#include "protocol/json/json_writer.h"
#include "protocol/json/rule_writer.h"

namespace detent::json {

namespace {

void write_time(JsonWriter& writer, std::string_view name, const std::optional<WallTime>& time) {
  if (time) writer.name(name).string(format_rfc3339(*time));
}

void write_rule(JsonWriter& writer, const CronRule& rule) {
  writer.name("cron").string(rule.expression);
}
void write_rule(JsonWriter& writer, const IntervalRule& rule) {
  writer.name("every_ms").number(rule.period.count());
  write_time(writer, "anchor", rule.anchor);
}
void write_rule(JsonWriter& writer, const CalendarRule& rule) {
  writer.name("calendar").begin_object();
  writer.name("every").number(rule.every);
  writer.name("unit").string(to_string(rule.unit));
  writer.name("month_end").string(to_string(rule.month_end));
  writer.end_object();
  write_time(writer, "anchor", rule.anchor);
}

/// Writes the members of a client's request for a schedule, except the payload.
void write_rules_of(JsonWriter& writer, const RecurringSchedule& schedule) {
  std::visit([&writer](const auto& rule) { write_rule(writer, rule); }, schedule.rule);
  writer.name("time_zone").string(schedule.time_zone);
  if (schedule.gap) writer.name("gap").string(to_string(*schedule.gap));
  if (schedule.repeat) writer.name("repeat").string(to_string(*schedule.repeat));
  writer.name("queue").string(schedule.queue);
  write_rules(writer, schedule.rules);
  if (schedule.count) writer.name("count").number(*schedule.count);
  write_time(writer, "start", schedule.start);
  write_time(writer, "end", schedule.end);
  writer.name("jitter_ms").number(schedule.jitter.count());
  writer.name("misfire").string(to_string(schedule.misfire));
  writer.name("misfire_grace_ms").number(schedule.misfire_grace.count());
  writer.name("misfire_limit").number(schedule.misfire_limit);
  writer.name("overlap").string(to_string(schedule.overlap));
}

void write_schedule(JsonWriter& writer, const RecurringSchedule& schedule) {
  write_rules_of(writer, schedule);
  write_payload(writer, schedule.payload);
}

void write_progress(JsonWriter& writer, const ScheduleProgress& progress) {
  write_time(writer, "created_at", progress.created_at);
  write_time(writer, "decided_to", progress.decided_to);
  writer.name("paused").raw(progress.paused ? "true" : "false");
  writer.name("made").number(progress.made);
  writer.name("overlapped").number(progress.overlapped);
  write_time(writer, "last_at", progress.last_at);
  if (progress.last_task.value != 0) {
    writer.name("last_task").string(to_string(progress.last_task));
  }
  write_time(writer, "queued_at", progress.queued_at);
}

void write_view(JsonWriter& writer, const ScheduleView& view) {
  const auto& [schedule, progress] = view.record;
  writer.begin_object();
  writer.name("name").string(schedule.name);
  writer.name("state").string(state_of(view));
  if (!view.broken.empty()) writer.name("error").string(view.broken);
  writer.name("words").string(view.words);
  write_time(writer, "next_at", view.next_at);
  write_schedule(writer, schedule);
  write_progress(writer, progress);
  writer.end_object();
}

}  // namespace

void write_schedule_record(JsonWriter& writer, const ScheduleRecord& record) {
  writer.name("name").string(record.schedule.name);
  write_rules_of(writer, record.schedule);
  write_progress(writer, record.progress);
}

std::string render_schedule_rule(const RecurringSchedule& schedule) {
  std::string body;
  JsonWriter writer(body);
  writer.begin_object();
  write_schedule(writer, schedule);
  writer.end_object();
  return body;
}

std::string render_backfill(const BackfillRange& range) {
  std::string body;
  JsonWriter writer(body);
  writer.begin_object();
  write_time(writer, "from", range.from);
  write_time(writer, "to", range.to);
  if (range.limit != kMaxBackfill) writer.name("limit").number(range.limit);
  writer.end_object();
  return body;
}

std::string render_schedule_view(const ScheduleView& view) {
  std::string body;
  JsonWriter writer(body);
  write_view(writer, view);
  return body;
}

std::string render_schedule_list(std::span<const ScheduleView> views, std::string_view cursor) {
  std::string body;
  JsonWriter writer(body);
  writer.begin_object().name("schedules").begin_array();
  for (const ScheduleView& view : views) write_view(writer, view);
  writer.end_array().name("cursor").string_or_null(cursor).end_object();
  return body;
}

std::string render_next_occurrences(std::string_view name, std::span<const WallTime> next) {
  std::string body;
  JsonWriter writer(body);
  writer.begin_object().name("name").string(name).name("next").begin_array();
  for (const WallTime time : next) writer.string(format_rfc3339(time));
  writer.end_array().end_object();
  return body;
}

std::string render_schedule_preview(const SchedulePreview& preview) {
  std::string body;
  JsonWriter writer(body);
  writer.begin_object().name("words").string(preview.words).name("next").begin_array();
  for (const WallTime time : preview.next) writer.string(format_rfc3339(time));
  writer.end_array().end_object();
  return body;
}

std::string render_removed_schedule(std::string_view name) {
  std::string body;
  JsonWriter writer(body);
  writer.begin_object().name("name").string(name).name("removed").raw("true").end_object();
  return body;
}

std::string render_backfill_counts(const BackfillCounts& counts) {
  std::string body;
  JsonWriter writer(body);
  writer.begin_object().name("made").number(counts.made).name("there").number(counts.there);
  write_time(writer, "next", counts.next);
  writer.end_object();
  return body;
}

}  // namespace detent::json

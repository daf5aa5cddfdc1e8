#include "protocol/json/dump_parser.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <limits>
#include <optional>
#include <span>
#include <string>
#include <utility>

#include "base/base64.h"
#include "protocol/json/json_fields.h"
#include "protocol/json/lateness_json.h"
#include "protocol/json/schedule_parser.h"
#include "protocol/json/webhook_json.h"

namespace detent::json {

namespace {

using std::chrono::milliseconds;

constexpr std::string_view kWhiteSpace = " \t\r";

Result<std::uint32_t> read_uint32(const JsonField& field, IntegerRange range) {
  ASSIGN_OR_RETURN(const std::uint64_t value, read_integer(field, range));
  return static_cast<std::uint32_t>(value);
}

constexpr IntegerRange kAnyUint32{.max = std::numeric_limits<std::uint32_t>::max()};
constexpr IntegerRange kAnyUint64{.max = std::numeric_limits<std::uint64_t>::max()};
constexpr std::string_view kOneKind =
    "a dump line must have exactly one of queue, task, damaged, schedule, next and end";

Result<std::optional<std::uint32_t>> read_limit(const JsonField& field, std::uint32_t most) {
  if (!field.given()) return std::optional<std::uint32_t>{};
  ASSIGN_OR_RETURN(const std::uint32_t value, read_uint32(field, {.min = 1, .max = most}));
  return std::optional(value);
}

Result<std::optional<std::uint64_t>> read_quota(const JsonField& field) {
  if (!field.given()) return std::optional<std::uint64_t>{};
  ASSIGN_OR_RETURN(const std::uint64_t value, read_integer(field, kAnyUint64));
  return std::optional(value);
}

Result<milliseconds> read_milliseconds(const JsonField& field, milliseconds longest) {
  ASSIGN_OR_RETURN(const std::uint64_t count,
                   read_integer(field, {.max = static_cast<std::uint64_t>(longest.count())}));
  return milliseconds{count};
}

Result<std::optional<milliseconds>> read_timeout(const JsonField& field) {
  if (!field.given()) return std::optional<milliseconds>{};
  ASSIGN_OR_RETURN(const milliseconds timeout, read_milliseconds(field, kMaxVisibilityTimeout));
  return std::optional(timeout);
}

Result<bool> read_boolean(const JsonField& field) {
  if (!field.is(JsonKind::boolean)) return wrong_field(field, "true or false");
  return field.text == "true";
}

Result<TaskId> read_id(const JsonField& field) {
  ASSIGN_OR_RETURN(const std::string text, read_string(field));
  if (const auto id = parse_task_id(text)) return *id;
  return wrong_field(field, "a task's id, in quotes");
}

Result<std::string> read_base64(const JsonField& field) {
  ASSIGN_OR_RETURN(const std::string text, read_string(field));
  if (auto bytes = decode_base64(text)) return *std::move(bytes);
  return wrong_field(field, "base64 with padding (RFC 4648, section 4)");
}

Error too_many_forms(const JsonField& field) {
  return {ErrorCode::invalid_argument, "the value is given in more than one form",
          std::string(field.name)};
}

/// Reads text of at most `most` bytes, plain or as base64. Returns "" if neither field is given.
Result<std::string> read_text(const JsonField& text, const JsonField& base64, std::size_t most) {
  if (text.given() && base64.given()) return too_many_forms(base64);
  if (!text.given() && !base64.given()) return std::string();
  const JsonField& given = text.given() ? text : base64;
  ASSIGN_OR_RETURN(std::string value, text.given() ? read_string(text) : read_base64(base64));
  if (value.size() > most) {
    return wrong_field(given, "at most " + std::to_string(most) + " bytes");
  }
  return value;
}

Result<std::optional<Backoff>> read_dumped_backoff(const JsonField& field) {
  if (!field.given()) return std::optional<Backoff>{};
  JsonField initial{"initial_ms"};
  JsonField max{"max_ms"};
  const std::array<JsonField*, 2> fields{&initial, &max};
  const auto read = [&]() -> Result<Backoff> {
    TRY(take_fields(field.text, fields, UnknownFields::refuse));
    Backoff backoff;
    ASSIGN_OR_RETURN(backoff.initial, read_milliseconds(initial, kMaxDelay));
    ASSIGN_OR_RETURN(backoff.max, read_milliseconds(max, kMaxDelay));
    return backoff;
  };
  auto backoff = read();
  if (!backoff) return inside_field(field, std::move(backoff).error());
  return std::optional(*backoff);
}

struct QueueFields {
  JsonField queue{"queue"};
  JsonField paused{"paused"};
  JsonField max_attempts{"max_attempts"};
  JsonField visibility_timeout{"visibility_timeout_ms"};
  JsonField backoff{"backoff"};
  JsonField retention{"retention_ms"};
  JsonField key_retention{"key_retention_ms"};
  JsonField max_tasks{"max_tasks"};
  JsonField max_bytes{"max_bytes"};
  JsonField rate{"rate"};
  JsonField concurrency{"concurrency"};
  JsonField webhook{"webhook"};
  JsonField partitions{"partitions"};

  std::array<JsonField*, 13> all() {
    return {&queue,       &paused,        &max_attempts, &visibility_timeout, &backoff,
            &retention,   &key_retention, &max_tasks,    &max_bytes,          &rate,
            &concurrency, &webhook,       &partitions};
  }
};

Result<DumpLine> read_queue(std::string_view json) {
  QueueFields fields;
  TRY(take_fields(json, fields.all(), UnknownFields::refuse));
  DumpedQueue line;
  ASSIGN_OR_RETURN(line.queue, read_string(fields.queue));
  QueueSettings& settings = line.settings;
  ASSIGN_OR_RETURN(settings.paused, read_boolean(fields.paused));
  ASSIGN_OR_RETURN(settings.max_attempts, read_limit(fields.max_attempts, kMaxAttempts));
  ASSIGN_OR_RETURN(settings.visibility_timeout, read_timeout(fields.visibility_timeout));
  ASSIGN_OR_RETURN(settings.backoff, read_dumped_backoff(fields.backoff));
  ASSIGN_OR_RETURN(settings.retention, read_milliseconds(fields.retention, kMaxRetention));
  ASSIGN_OR_RETURN(settings.key_retention, read_milliseconds(fields.key_retention, kMaxRetention));
  ASSIGN_OR_RETURN(settings.max_tasks, read_quota(fields.max_tasks));
  ASSIGN_OR_RETURN(settings.max_bytes, read_quota(fields.max_bytes));
  ASSIGN_OR_RETURN(settings.rate, read_limit(fields.rate, kMaxRate));
  ASSIGN_OR_RETURN(settings.concurrency, read_limit(fields.concurrency, kMaxConcurrency));
  if (fields.webhook.given()) {
    ASSIGN_OR_RETURN(settings.webhook, read_queue_webhook(fields.webhook));
  }
  ASSIGN_OR_RETURN(const auto partitions, read_limit(fields.partitions, kMaxPartitions));
  settings.partitions = partitions.value_or(1);
  return DumpLine{std::move(line)};
}

struct TaskFields {
  JsonField id{"id"};
  JsonField queue{"queue"};
  JsonField state{"state"};
  JsonField due_at{"due_at"};
  JsonField created_at{"created_at"};
  JsonField priority{"priority"};
  JsonField max_attempts{"max_attempts"};
  JsonField visibility_timeout{"visibility_timeout_ms"};
  JsonField backoff{"backoff"};
  JsonField attempts{"attempts"};
  JsonField key{"key"};
  JsonField history{"history"};
  JsonField payload{"payload"};
  JsonField payload_text{"payload_text"};
  JsonField payload_base64{"payload_base64"};
  JsonField webhook{"webhook"};
  JsonField headers{"headers"};

  std::array<JsonField*, 17> all() {
    return {&id,
            &queue,
            &state,
            &due_at,
            &created_at,
            &priority,
            &max_attempts,
            &visibility_timeout,
            &backoff,
            &attempts,
            &key,
            &history,
            &payload,
            &payload_text,
            &payload_base64,
            &webhook,
            &headers};
  }
};

Result<Standing> read_state(const JsonField& field) {
  ASSIGN_OR_RETURN(const std::string text, read_string(field));
  if (text == "scheduled") return Standing::live;
  if (text == "dead") return Standing::dead;
  return wrong_field(field, "scheduled or dead");
}

Result<Payload> read_payload_text(const JsonField& field) {
  ASSIGN_OR_RETURN(std::string text, read_string(field));
  const Result<std::string_view> value = read_json(text);
  if (!value || value->size() != text.size()) return wrong_field(field, "JSON, in quotes");
  return Payload{Payload::Kind::json, std::move(text)};
}

Result<Payload> read_payload(const TaskFields& fields) {
  const JsonField* given = nullptr;
  for (const JsonField* form : {&fields.payload, &fields.payload_text, &fields.payload_base64}) {
    if (!form->given()) continue;
    if (given != nullptr) return too_many_forms(*form);
    given = form;
  }
  if (given == nullptr) return missing_field(fields.payload);
  if (given == &fields.payload) return Payload{Payload::Kind::json, std::string(given->text)};
  if (given == &fields.payload_base64) {
    ASSIGN_OR_RETURN(std::string bytes, read_base64(*given));
    return Payload{Payload::Kind::bytes, std::move(bytes)};
  }
  return read_payload_text(*given);
}

Result<Attempt> read_attempt(std::string_view json) {
  JsonField started_at{"started_at"};
  JsonField ended_at{"ended_at"};
  JsonField worker{"worker"};
  JsonField worker_base64{"worker_base64"};
  JsonField error{"error"};
  JsonField error_base64{"error_base64"};
  JsonField late{"late_ms"};
  const std::array<JsonField*, 7> fields{&started_at, &ended_at,     &worker, &worker_base64,
                                         &error,      &error_base64, &late};
  TRY(take_fields(json, fields, UnknownFields::refuse));
  Attempt attempt;
  ASSIGN_OR_RETURN(attempt.started_at, read_time(started_at));
  ASSIGN_OR_RETURN(attempt.ended_at, read_time(ended_at));
  ASSIGN_OR_RETURN(attempt.worker, read_text(worker, worker_base64, kMaxWorkerBytes));
  ASSIGN_OR_RETURN(attempt.error, read_text(error, error_base64, kMaxErrorBytes));
  ASSIGN_OR_RETURN(attempt.late, read_late(late, UnknownFields::refuse));
  return attempt;
}

Result<std::vector<Attempt>> read_attempts(std::string_view json) {
  ASSIGN_OR_RETURN(const auto elements, take_elements(json, kMaxHistory));
  std::vector<Attempt> history;
  history.reserve(elements.size());
  for (const std::string_view element : elements) {
    ASSIGN_OR_RETURN(Attempt attempt, read_attempt(element));
    history.push_back(std::move(attempt));
  }
  return history;
}

Result<std::vector<Attempt>> read_history(const JsonField& field) {
  if (!field.given()) return std::vector<Attempt>{};
  auto history = read_attempts(field.text);
  if (!history) return inside_field(field, std::move(history).error());
  return history;
}

Result<DumpLine> read_task(std::string_view json) {
  TaskFields fields;
  TRY(take_fields(json, fields.all(), UnknownFields::refuse));
  Task task;
  ASSIGN_OR_RETURN(task.id, read_id(fields.id));
  ASSIGN_OR_RETURN(task.queue, read_string(fields.queue));
  ASSIGN_OR_RETURN(task.standing, read_state(fields.state));
  ASSIGN_OR_RETURN(task.due_at, read_time(fields.due_at));
  ASSIGN_OR_RETURN(task.created_at, read_time(fields.created_at));
  ASSIGN_OR_RETURN(task.rules.priority, read_uint32(fields.priority, kAnyUint32));
  ASSIGN_OR_RETURN(task.rules.max_attempts, read_limit(fields.max_attempts, kMaxAttempts));
  ASSIGN_OR_RETURN(task.rules.visibility_timeout, read_timeout(fields.visibility_timeout));
  ASSIGN_OR_RETURN(task.rules.backoff, read_dumped_backoff(fields.backoff));
  ASSIGN_OR_RETURN(task.attempts, read_uint32(fields.attempts, kAnyUint32));
  if (fields.key.given()) {
    ASSIGN_OR_RETURN(task.key, read_string(fields.key));
  }
  ASSIGN_OR_RETURN(task.history, read_history(fields.history));
  ASSIGN_OR_RETURN(task.payload, read_payload(fields));
  if (fields.webhook.given()) {
    ASSIGN_OR_RETURN(task.webhook, read_string(fields.webhook));
  }
  if (fields.headers.given()) {
    ASSIGN_OR_RETURN(task.headers, read_headers(fields.headers));
  }
  return DumpLine{std::move(task)};
}

Result<DumpLine> read_schedule(std::string_view json) {
  JsonField text{"payload_text"};
  ASSIGN_OR_RETURN(ScheduleRecord record, parse_schedule_record(json, text));
  if (text.given()) {
    if (record.schedule.payload != Payload{}) return too_many_forms(text);
    ASSIGN_OR_RETURN(record.schedule.payload, read_payload_text(text));
  }
  return DumpLine{std::move(record)};
}

/// All members that a line can have.
struct LineFields {
  JsonField queue{"queue"};
  JsonField task{"task"};
  JsonField damaged{"damaged"};
  JsonField schedule{"schedule"};
  JsonField next{"next"};
  JsonField next_schedule{"next_schedule"};
  JsonField end{"end"};
  JsonField queues{"queues"};
  JsonField tasks{"tasks"};
  JsonField schedules{"schedules"};
  JsonField damaged_tasks{"damaged_tasks"};
  JsonField external{"external"};

  std::array<JsonField*, 12> all() {
    return {&queue, &task,   &damaged, &schedule,  &next,          &next_schedule,
            &end,   &queues, &tasks,   &schedules, &damaged_tasks, &external};
  }
};

Result<LineCounts> read_counts(const LineFields& fields) {
  LineCounts counts;
  ASSIGN_OR_RETURN(counts.queues, read_integer(fields.queues, {}));
  ASSIGN_OR_RETURN(counts.tasks, read_integer(fields.tasks, {}));
  ASSIGN_OR_RETURN(counts.schedules, read_integer(fields.schedules, {}));
  ASSIGN_OR_RETURN(counts.damaged, read_integer(fields.damaged_tasks, {}));
  return counts;
}

Result<DumpLine> read_end(const LineFields& fields) {
  if (fields.end.text != "true") return wrong_field(fields.end, "true");
  DumpEnd end;
  ASSIGN_OR_RETURN(end.counts, read_counts(fields));
  if (fields.external.given()) {
    ASSIGN_OR_RETURN(end.external, read_integer(fields.external, {}));
  }
  return DumpLine{end};
}

Result<DumpLine> read_next(const LineFields& fields) {
  DumpNext next;
  const bool has_task = !fields.next_schedule.given() || !fields.next.is(JsonKind::null);
  if (has_task) {
    ASSIGN_OR_RETURN(next.after, read_id(fields.next));
  }
  if (fields.next_schedule.given()) {
    ASSIGN_OR_RETURN(next.schedule, read_string(fields.next_schedule));
  }
  ASSIGN_OR_RETURN(next.counts, read_counts(fields));
  return DumpLine{std::move(next)};
}

/// Returns the member that names the kind of the line. Errors: there is no such member, or more
/// than one, or a member does not belong to this kind of line.
Result<const JsonField*> what_it_is(const LineFields& fields) {
  const JsonField* what = nullptr;
  for (const JsonField* field : {&fields.queue, &fields.task, &fields.damaged, &fields.schedule,
                                 &fields.next, &fields.end}) {
    if (!field->given()) continue;
    if (what != nullptr) {
      return Error{ErrorCode::invalid_argument, std::string(kOneKind), std::string(field->name)};
    }
    what = field;
  }
  if (what == nullptr) {
    return Error{ErrorCode::invalid_argument, std::string(kOneKind), ""};
  }
  const auto belongs = [what](const JsonField& detail, const JsonField& to,
                              const JsonField& or_to) -> Result<void> {
    if (!detail.given() || what == &to || what == &or_to) return ok();
    return Error{ErrorCode::invalid_argument, "unknown field in a line of this kind",
                 std::string(detail.name)};
  };
  for (const JsonField* count :
       {&fields.queues, &fields.tasks, &fields.schedules, &fields.damaged_tasks}) {
    TRY(belongs(*count, fields.next, fields.end));
  }
  TRY(belongs(fields.external, fields.end, fields.end));
  TRY(belongs(fields.next_schedule, fields.next, fields.next));
  return what;
}

}  // namespace

Result<DumpLine> parse_dump_line(std::string_view text) {
  LineFields fields;
  TRY(take_fields(text, fields.all(), UnknownFields::refuse));
  ASSIGN_OR_RETURN(const JsonField* const what, what_it_is(fields));
  if (what == &fields.end) return read_end(fields);
  if (what == &fields.next) return read_next(fields);
  if (what == &fields.damaged) {
    ASSIGN_OR_RETURN(const TaskId id, read_id(fields.damaged));
    return DumpLine{DamagedTask{id}};
  }
  auto line = what == &fields.queue  ? read_queue(what->text)
              : what == &fields.task ? read_task(what->text)
                                     : read_schedule(what->text);
  if (!line) return inside_field(*what, std::move(line).error());
  return line;
}

Result<DumpLineKind> kind_of_dump_line(std::string_view text) {
  LineFields fields;
  TRY(take_fields(text, fields.all(), UnknownFields::skip));
  ASSIGN_OR_RETURN(const JsonField* const what, what_it_is(fields));
  if (what == &fields.queue) return DumpLineKind::queue;
  if (what == &fields.task) return DumpLineKind::task;
  if (what == &fields.damaged) return DumpLineKind::damaged;
  if (what == &fields.schedule) return DumpLineKind::schedule;
  return what == &fields.next ? DumpLineKind::next : DumpLineKind::end;
}

void count_line(LineCounts& counts, DumpLineKind kind) noexcept {
  switch (kind) {
    case DumpLineKind::queue:
      ++counts.queues;
      break;
    case DumpLineKind::task:
      ++counts.tasks;
      break;
    case DumpLineKind::damaged:
      ++counts.damaged;
      break;
    case DumpLineKind::schedule:
      ++counts.schedules;
      break;
    case DumpLineKind::next:
    case DumpLineKind::end:
      break;
  }
}

Result<std::vector<NumberedLine>> take_numbered_lines(std::string_view body, std::size_t most) {
  std::vector<NumberedLine> lines;
  for (std::size_t number = 1; !body.empty(); ++number) {
    const std::size_t end = std::min(body.find('\n'), body.size());
    const std::string_view line = body.substr(0, end);
    body.remove_prefix(std::min(end + 1, body.size()));
    if (line.find_first_not_of(kWhiteSpace) == std::string_view::npos) continue;
    if (lines.size() == most) {
      return Error{ErrorCode::too_large, "at most " + std::to_string(most) + " lines are allowed",
                   ""};
    }
    lines.push_back({number, line});
  }
  return lines;
}

}  // namespace detent::json

#include "protocol/json/request_parser.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <span>
#include <utility>

#include "protocol/json/json_fields.h"
#include "protocol/json/rule_fields.h"
#include "protocol/json/webhook_json.h"

namespace detent::json {

namespace {

using std::chrono::milliseconds;

constexpr std::string_view kWhiteSpace = " \t\r\n";

/// The fields of a task in a request to schedule it.
struct ScheduleFields {
  JsonField queue{"queue"};
  PayloadFields payload;
  DurationFields delay{{"delay"}, {"delay_ms"}};
  JsonField due_at{"due_at"};
  TaskRuleFields rules;
  JsonField key{"key"};
  JsonField webhook{"webhook"};
  JsonField headers{"headers"};

  std::array<JsonField*, 14> all() {
    const auto [priority, max_attempts, timeout, timeout_ms, backoff] = rules.all();
    return {&queue,   &payload.json, &payload.base64,     &delay.text,
            &due_at,  priority,      &delay.milliseconds, timeout,
            backoff,  max_attempts,  timeout_ms,          &key,
            &webhook, &headers};
  }
};

Error refused(const JsonField& field, std::string message) {
  return {ErrorCode::invalid_argument, std::move(message), std::string(field.name)};
}

Result<Due> read_due(const DurationFields& delay, const JsonField& due_at) {
  if (due_at.given()) {
    if (delay.given()) return refused(due_at, "give a delay or due_at, not both");
    ASSIGN_OR_RETURN(const WallTime at, read_time(due_at));
    return Due{at};
  }
  ASSIGN_OR_RETURN(const auto length, read_duration(delay, kMaxDelay));
  return Due{length.value_or(milliseconds{0})};
}

/// Returns "" if the field is missing or null: the task then has no webhook.
Result<std::string> read_webhook(const JsonField& field) {
  if (!field.given() || field.is(JsonKind::null)) return std::string();
  ASSIGN_OR_RETURN(std::string url, read_string(field));
  if (url.empty()) return wrong_field(field, "a URL");
  return url;
}

Result<TaskHeaders> read_any_headers(const JsonField& field) {
  if (!field.given() || field.is(JsonKind::null)) return TaskHeaders();
  return read_headers(field);
}

std::string_view trim(std::string_view text) noexcept {
  const std::size_t first = text.find_first_not_of(kWhiteSpace);
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(kWhiteSpace) - first + 1);
}

/// Returns the lines of NDJSON that are not blank.
Result<std::vector<std::string_view>> take_lines(std::string_view body) {
  std::vector<std::string_view> lines;
  while (!body.empty()) {
    const std::size_t end = std::min(body.find('\n'), body.size());
    const std::string_view line = trim(body.substr(0, end));
    body.remove_prefix(std::min(end + 1, body.size()));
    if (line.empty()) continue;
    if (lines.size() == kMaxBatchTasks) {
      return Error{ErrorCode::too_large,
                   "at most " + std::to_string(kMaxBatchTasks) + " lines are allowed", ""};
    }
    lines.push_back(line);
  }
  return lines;
}

bool is_ndjson(std::string_view body, std::string_view content_type) noexcept {
  const std::string_view type = trim(content_type.substr(0, content_type.find(';')));
  return type == "application/x-ndjson" || trim(body).starts_with('{');
}

/// Reads an array of at most kMaxBatchTasks strings.
Result<std::vector<std::string>> read_strings(const JsonField& field) {
  if (!field.given()) return missing_field(field);
  if (!field.is(JsonKind::array)) return wrong_field(field, "an array of strings");
  auto elements = take_elements(field.text, kMaxBatchTasks);
  if (!elements) return inside_field(field, std::move(elements).error());
  std::vector<std::string> strings;
  strings.reserve(elements->size());
  for (const std::string_view element : *elements) {
    if (kind_of(element) != JsonKind::string) return wrong_field(field, "an array of strings");
    strings.push_back(unescape(element));
  }
  return strings;
}

Result<LeaseList> read_leases(const JsonField& field) {
  ASSIGN_OR_RETURN(const std::vector<std::string> texts, read_strings(field));
  LeaseList leases;
  leases.reserve(texts.size());
  for (const std::string& text : texts) leases.push_back(parse_lease_token(text));
  return leases;
}

struct NameFields {
  JsonField ids{"ids"};
  JsonField queue{"queue"};
  JsonField keys{"keys"};
};

Result<TaskNames> read_names(const NameFields& fields) {
  TaskNames names;
  if (fields.ids.given()) {
    for (const JsonField* other : {&fields.queue, &fields.keys}) {
      if (other->given()) return refused(*other, "give ids, or a queue and keys, not both");
    }
    ASSIGN_OR_RETURN(const std::vector<std::string> texts, read_strings(fields.ids));
    for (const std::string& text : texts) names.ids.push_back(parse_task_id(text));
    return names;
  }
  if (!fields.queue.given() && !fields.keys.given()) return missing_field(fields.ids);
  ASSIGN_OR_RETURN(names.queue, read_string(fields.queue));
  ASSIGN_OR_RETURN(names.keys, read_strings(fields.keys));
  return names;
}

}  // namespace

Result<ScheduleRequest> parse_schedule(std::string_view body) {
  ScheduleFields fields;
  TRY(take_fields(body, fields.all(), UnknownFields::refuse));
  ScheduleRequest request;
  ASSIGN_OR_RETURN(request.queue, read_string(fields.queue));
  ASSIGN_OR_RETURN(request.payload, read_payload(fields.payload));
  ASSIGN_OR_RETURN(request.rules, read_task_rules(fields.rules));
  ASSIGN_OR_RETURN(request.due, read_due(fields.delay, fields.due_at));
  if (fields.key.given()) {
    ASSIGN_OR_RETURN(request.key, read_string(fields.key));
  }
  ASSIGN_OR_RETURN(request.webhook, read_webhook(fields.webhook));
  ASSIGN_OR_RETURN(request.headers, read_any_headers(fields.headers));
  return request;
}

Result<BatchElements> split_schedule_batch(std::string_view body, std::string_view content_type) {
  using enum BatchElements::Framing;
  BatchElements batch{.framing = is_ndjson(body, content_type) ? lines : array, .elements = {}};
  ASSIGN_OR_RETURN(batch.elements,
                   batch.framing == lines ? take_lines(body) : take_elements(body, kMaxBatchTasks));
  return batch;
}

Result<std::vector<Result<ScheduleRequest>>> parse_schedule_batch(std::string_view body,
                                                                  std::string_view content_type) {
  ASSIGN_OR_RETURN(const BatchElements batch, split_schedule_batch(body, content_type));
  std::vector<Result<ScheduleRequest>> requests;
  requests.reserve(batch.elements.size());
  for (const std::string_view element : batch.elements) requests.push_back(parse_schedule(element));
  return requests;
}

Result<LeaseCall> parse_lease(std::string queue, std::string_view body) {
  LeaseCall call;
  call.lease.queue = std::move(queue);
  if (trim(body).empty()) return call;
  JsonField max{"max"};
  JsonField worker{"worker"};
  DurationFields wait{{"wait"}, {"wait_ms"}};
  DurationFields timeout{{"visibility_timeout"}, {"visibility_timeout_ms"}};
  const std::array<JsonField*, 6> fields{
      &max, &worker, &wait.text, &wait.milliseconds, &timeout.text, &timeout.milliseconds};
  TRY(take_fields(body, fields, UnknownFields::refuse));
  if (max.given()) {
    ASSIGN_OR_RETURN(call.lease.max, read_integer(max, {.min = 1, .max = kMaxLeaseTasks}));
  }
  if (worker.given()) {
    ASSIGN_OR_RETURN(call.lease.worker, read_string(worker));
  }
  ASSIGN_OR_RETURN(const auto waiting, read_duration(wait, kMaxLeaseWait));
  call.wait = waiting.value_or(milliseconds{0});
  ASSIGN_OR_RETURN(call.lease.visibility_timeout, read_duration(timeout, kMaxVisibilityTimeout));
  return call;
}

Result<LeaseList> parse_complete(std::string_view body) {
  JsonField leases{"leases"};
  const std::array<JsonField*, 1> fields{&leases};
  TRY(take_fields(body, fields, UnknownFields::refuse));
  return read_leases(leases);
}

Result<FailCall> parse_fail(std::string_view body) {
  JsonField leases{"leases"};
  JsonField error{"error"};
  DurationFields delay{{"delay"}, {"delay_ms"}};
  const std::array<JsonField*, 4> fields{&leases, &error, &delay.text, &delay.milliseconds};
  TRY(take_fields(body, fields, UnknownFields::refuse));
  FailCall call;
  ASSIGN_OR_RETURN(call.leases, read_leases(leases));
  ASSIGN_OR_RETURN(call.delay, read_duration(delay, kMaxDelay));
  if (error.given()) {
    ASSIGN_OR_RETURN(call.error, read_string(error));
  }
  return call;
}

Result<TaskEdit> parse_edit(std::string_view body) {
  DurationFields delay{{"delay"}, {"delay_ms"}};
  JsonField due_at{"due_at"};
  JsonField priority{"priority"};
  PayloadFields payload;
  JsonField webhook{"webhook"};
  JsonField headers{"headers"};
  const std::array<JsonField*, 8> fields{&delay.text,   &delay.milliseconds, &due_at,  &priority,
                                         &payload.json, &payload.base64,     &webhook, &headers};
  TRY(take_fields(body, fields, UnknownFields::refuse));
  if (std::ranges::none_of(fields, &JsonField::given)) {
    return refused(due_at, "give a delay or due_at, a priority, a payload, a webhook or headers");
  }
  TaskEdit edit;
  if (delay.given() || due_at.given()) {
    ASSIGN_OR_RETURN(edit.due, read_due(delay, due_at));
  }
  if (priority.given()) {
    ASSIGN_OR_RETURN(edit.priority, read_priority(priority));
  }
  if (payload.json.given() || payload.base64.given()) {
    ASSIGN_OR_RETURN(edit.payload, read_payload(payload));
  }
  if (webhook.given()) {
    ASSIGN_OR_RETURN(edit.webhook, read_webhook(webhook));
  }
  if (headers.given()) {
    ASSIGN_OR_RETURN(edit.headers, read_any_headers(headers));
  }
  return edit;
}

Result<TaskNames> parse_cancel_batch(std::string_view body) {
  NameFields names;
  const std::array<JsonField*, 3> fields{&names.ids, &names.queue, &names.keys};
  TRY(take_fields(body, fields, UnknownFields::refuse));
  return read_names(names);
}

Result<MoveCall> parse_move_batch(std::string_view body) {
  NameFields names;
  DurationFields delay{{"delay"}, {"delay_ms"}};
  JsonField due_at{"due_at"};
  const std::array<JsonField*, 6> fields{&names.ids,  &names.queue,        &names.keys,
                                         &delay.text, &delay.milliseconds, &due_at};
  TRY(take_fields(body, fields, UnknownFields::refuse));
  MoveCall call;
  ASSIGN_OR_RETURN(call.tasks, read_names(names));
  if (!delay.given() && !due_at.given()) return refused(due_at, "give a delay or due_at");
  ASSIGN_OR_RETURN(call.due, read_due(delay, due_at));
  return call;
}

Result<ExtendCall> parse_extend(std::string_view body) {
  JsonField leases{"leases"};
  DurationFields by{{"by"}, {"by_ms"}};
  const std::array<JsonField*, 3> fields{&leases, &by.text, &by.milliseconds};
  TRY(take_fields(body, fields, UnknownFields::refuse));
  ExtendCall call;
  ASSIGN_OR_RETURN(call.leases, read_leases(leases));
  ASSIGN_OR_RETURN(const auto length, read_duration(by, kMaxVisibilityTimeout));
  if (!length) return missing_field(by.text);
  if (*length == milliseconds{0}) return wrong_field(by.text, "1 ms to 30 days");
  call.by = *length;
  return call;
}

Result<ReleaseCall> parse_release(std::string_view body) {
  JsonField leases{"leases"};
  JsonField priority{"priority"};
  DurationFields delay{{"delay"}, {"delay_ms"}};
  const std::array<JsonField*, 4> fields{&leases, &priority, &delay.text, &delay.milliseconds};
  TRY(take_fields(body, fields, UnknownFields::refuse));
  ReleaseCall call;
  ASSIGN_OR_RETURN(call.leases, read_leases(leases));
  ASSIGN_OR_RETURN(call.delay, read_duration(delay, kMaxDelay));
  if (priority.given()) {
    ASSIGN_OR_RETURN(call.priority, read_priority(priority));
  }
  return call;
}

}  // namespace detent::json

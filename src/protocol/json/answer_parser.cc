#include "protocol/json/answer_parser.h"

#include <array>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <span>
#include <string>
#include <utility>

#include "base/base64.h"
#include "protocol/json/json_fields.h"
#include "protocol/json/problem.h"
#include "protocol/json/read_answer.h"
#include "protocol/json/webhook_json.h"

namespace detent::json {

namespace {

using std::chrono::milliseconds;

Result<TaskId> read_id(const JsonField& field) {
  ASSIGN_OR_RETURN(const std::string text, read_string(field));
  if (const auto id = parse_task_id(text)) return *id;
  return wrong_field(field, "a task's id");
}

Result<TaskState> read_state(const JsonField& field) {
  ASSIGN_OR_RETURN(const std::string text, read_string(field));
  if (const std::optional<TaskState> state = parse_task_state(text)) return *state;
  return wrong_field(field, "a task's state");
}

Standing standing_in(TaskState state) noexcept {
  switch (state) {
    case TaskState::scheduled:
    case TaskState::ready:
    case TaskState::leased:
      return Standing::live;
    case TaskState::dead:
      return Standing::dead;
    case TaskState::completed:
      return Standing::completed;
    case TaskState::cancelled:
      return Standing::cancelled;
  }
  return Standing::live;
}

Result<LeaseOutcome> read_outcome(const JsonField& field) {
  ASSIGN_OR_RETURN(const std::string text, read_string(field));
  for (const LeaseOutcome outcome :
       {LeaseOutcome::done, LeaseOutcome::dead, LeaseOutcome::conflict}) {
    if (to_string(outcome) == text) return outcome;
  }
  return wrong_field(field, "a lease's status");
}

/// Returns no headers if the field is missing.
Result<TaskHeaders> read_optional_headers(const JsonField& field) {
  if (!field.given()) return TaskHeaders();
  return read_headers(field);
}

/// Returns "" if the field is missing.
Result<std::string> read_optional_string(const JsonField& field) {
  if (!field.given()) return std::string();
  return read_string(field);
}

Result<std::uint32_t> read_uint32(const JsonField& field) {
  ASSIGN_OR_RETURN(const std::uint64_t value,
                   read_integer(field, {.max = std::numeric_limits<std::uint32_t>::max()}));
  return static_cast<std::uint32_t>(value);
}

Result<milliseconds> read_milliseconds(const JsonField& field) {
  ASSIGN_OR_RETURN(const std::uint64_t count, read_integer(field, {}));
  return milliseconds{count};
}

Result<Payload> read_payload(const JsonField& json, const JsonField& base64) {
  if (json.given()) return Payload{Payload::Kind::json, std::string(json.text)};
  ASSIGN_OR_RETURN(const std::string text, read_string(base64));
  auto bytes = decode_base64(text);
  if (!bytes) return wrong_field(base64, "base64");
  return Payload{Payload::Kind::bytes, *std::move(bytes)};
}

Result<Backoff> read_answered_backoff(const JsonField& field) {
  JsonField initial{"initial_ms"};
  JsonField max{"max_ms"};
  const std::array<JsonField*, 2> fields{&initial, &max};
  if (!field.given()) return missing_field(field);
  TRY(take_fields(field.text, fields, UnknownFields::skip));
  Backoff backoff;
  ASSIGN_OR_RETURN(backoff.initial, read_milliseconds(initial));
  ASSIGN_OR_RETURN(backoff.max, read_milliseconds(max));
  return backoff;
}

Result<AcceptedTask> read_accepted(std::string_view json) {
  JsonField id{"id"};
  JsonField queue{"queue"};
  JsonField state{"state"};
  JsonField due_at{"due_at"};
  JsonField was_there{"was_there"};
  const std::array<JsonField*, 5> fields{&id, &queue, &state, &due_at, &was_there};
  TRY(take_fields(json, fields, UnknownFields::skip));
  AcceptedTask task;
  task.was_there = was_there.text == "true";
  ASSIGN_OR_RETURN(task.id, read_id(id));
  ASSIGN_OR_RETURN(task.queue, read_string(queue));
  ASSIGN_OR_RETURN(task.state, read_state(state));
  ASSIGN_OR_RETURN(task.due_at, read_time(due_at));
  return task;
}

Result<TaskId> read_cancelled(std::string_view json) {
  JsonField id{"id"};
  const std::array<JsonField*, 1> fields{&id};
  TRY(take_fields(json, fields, UnknownFields::skip));
  return read_id(id);
}

/// Returns the error of an element {"error":{problem}} of a batch, or nullopt if the element is not
/// an error.
Result<std::optional<Error>> read_element_error(std::string_view json) {
  JsonField error{"error"};
  const std::array<JsonField*, 1> fields{&error};
  TRY(take_fields(json, fields, UnknownFields::skip));
  if (!error.given()) return std::optional<Error>{};
  return std::optional<Error>{parse_problem(error.text)};
}

/// Reads {"results":[…]}. Each element is an error or a value that `read_one` reads.
template <class T>
Result<std::vector<Result<T>>> read_results(std::string_view body,
                                            Result<T> (*read_one)(std::string_view)) {
  ASSIGN_OR_RETURN(const auto elements, take_list(body, "results"));
  std::vector<Result<T>> results;
  results.reserve(elements.size());
  for (const std::string_view element : elements) {
    ASSIGN_OR_RETURN(auto error, read_element_error(element));
    if (error) {
      results.push_back(*std::move(error));
      continue;
    }
    ASSIGN_OR_RETURN(T value, read_one(element));
    results.push_back(std::move(value));
  }
  return results;
}

struct TaskFields {
  JsonField id{"id"};
  JsonField queue{"queue"};
  JsonField key{"key"};
  JsonField state{"state"};
  JsonField due_at{"due_at"};
  JsonField created_at{"created_at"};
  JsonField priority{"priority"};
  JsonField max_attempts{"max_attempts"};
  JsonField visibility_timeout{"visibility_timeout_ms"};
  JsonField backoff{"backoff"};
  JsonField attempts{"attempts"};
  JsonField last_error{"last_error"};
  JsonField payload{"payload"};
  JsonField payload_base64{"payload_base64"};
  JsonField webhook{"webhook"};
  JsonField headers{"headers"};

  std::array<JsonField*, 16> all() {
    return {&webhook,
            &headers,
            &id,
            &queue,
            &key,
            &state,
            &due_at,
            &created_at,
            &priority,
            &max_attempts,
            &backoff,
            &attempts,
            &last_error,
            &payload,
            &payload_base64,
            &visibility_timeout};
  }
};

Result<TaskSnapshot> read_task(std::string_view json) {
  TaskFields fields;
  TRY(take_fields(json, fields.all(), UnknownFields::skip));
  TaskSnapshot view;
  Task& task = view.task;
  ASSIGN_OR_RETURN(task.id, read_id(fields.id));
  ASSIGN_OR_RETURN(task.queue, read_string(fields.queue));
  ASSIGN_OR_RETURN(view.state, read_state(fields.state));
  ASSIGN_OR_RETURN(task.due_at, read_time(fields.due_at));
  ASSIGN_OR_RETURN(task.created_at, read_time(fields.created_at));
  ASSIGN_OR_RETURN(task.rules.priority, read_uint32(fields.priority));
  ASSIGN_OR_RETURN(task.rules.max_attempts, read_uint32(fields.max_attempts));
  ASSIGN_OR_RETURN(task.rules.visibility_timeout, read_milliseconds(fields.visibility_timeout));
  ASSIGN_OR_RETURN(task.rules.backoff, read_answered_backoff(fields.backoff));
  ASSIGN_OR_RETURN(task.attempts, read_uint32(fields.attempts));
  ASSIGN_OR_RETURN(task.key, read_optional_string(fields.key));
  ASSIGN_OR_RETURN(std::string error, read_optional_string(fields.last_error));
  if (!error.empty()) add_attempt(task, {.error = std::move(error)});
  ASSIGN_OR_RETURN(task.webhook, read_optional_string(fields.webhook));
  ASSIGN_OR_RETURN(task.headers, read_optional_headers(fields.headers));
  ASSIGN_OR_RETURN(task.payload, read_payload(fields.payload, fields.payload_base64));
  task.standing = standing_in(view.state);
  return view;
}

Result<TaskListAnswer> read_task_list(std::string_view json) {
  ASSIGN_OR_RETURN(const auto elements, take_list(json, "tasks"));
  TaskListAnswer list;
  list.tasks.reserve(elements.size());
  for (const std::string_view element : elements) {
    ASSIGN_OR_RETURN(TaskSnapshot view, read_task(element));
    list.tasks.push_back(std::move(view));
  }
  ASSIGN_OR_RETURN(list.cursor, read_cursor(json));
  return list;
}

struct LeasedTaskFields {
  JsonField id{"id"};
  JsonField lease{"lease"};
  JsonField attempt{"attempt"};
  JsonField queue{"queue"};
  JsonField key{"key"};
  JsonField payload{"payload"};
  JsonField payload_base64{"payload_base64"};
  JsonField priority{"priority"};
  JsonField due_at{"due_at"};
  JsonField lease_until{"lease_until"};
  JsonField lateness{"lateness_ms"};
  JsonField headers{"headers"};

  std::array<JsonField*, 12> all() {
    return {&headers,        &key,      &id,     &lease,       &attempt, &queue, &payload,
            &payload_base64, &priority, &due_at, &lease_until, &lateness};
  }
};

Result<LeasedTaskAnswer> read_leased_task(std::string_view json) {
  LeasedTaskFields fields;
  TRY(take_fields(json, fields.all(), UnknownFields::skip));
  LeasedTaskAnswer task;
  ASSIGN_OR_RETURN(task.id, read_id(fields.id));
  ASSIGN_OR_RETURN(task.lease, read_string(fields.lease));
  ASSIGN_OR_RETURN(task.attempt, read_uint32(fields.attempt));
  ASSIGN_OR_RETURN(task.queue, read_string(fields.queue));
  ASSIGN_OR_RETURN(task.key, read_optional_string(fields.key));
  ASSIGN_OR_RETURN(task.headers, read_optional_headers(fields.headers));
  ASSIGN_OR_RETURN(task.payload, read_payload(fields.payload, fields.payload_base64));
  ASSIGN_OR_RETURN(task.priority, read_uint32(fields.priority));
  ASSIGN_OR_RETURN(task.due_at, read_time(fields.due_at));
  ASSIGN_OR_RETURN(task.lease_until, read_time(fields.lease_until));
  ASSIGN_OR_RETURN(task.lateness, read_milliseconds(fields.lateness));
  return task;
}

Result<std::vector<LeasedTaskAnswer>> read_leased_tasks(std::string_view body) {
  ASSIGN_OR_RETURN(const auto elements, take_list(body, "tasks"));
  std::vector<LeasedTaskAnswer> tasks;
  tasks.reserve(elements.size());
  for (const std::string_view element : elements) {
    ASSIGN_OR_RETURN(LeasedTaskAnswer task, read_leased_task(element));
    tasks.push_back(std::move(task));
  }
  return tasks;
}

Result<LeaseOutcome> read_lease_status(std::string_view json) {
  JsonField status{"status"};
  const std::array<JsonField*, 1> fields{&status};
  TRY(take_fields(json, fields, UnknownFields::skip));
  return read_outcome(status);
}

}  // namespace

Result<AcceptedTask> parse_accepted(std::string_view body) {
  return as_answer(read_accepted(body));
}

Result<std::vector<Result<AcceptedTask>>> parse_schedule_results(std::string_view body) {
  return as_answer(read_results<AcceptedTask>(body, read_accepted));
}

Result<std::vector<Result<TaskId>>> parse_cancel_results(std::string_view body) {
  return as_answer(read_results<TaskId>(body, read_cancelled));
}

Result<TaskSnapshot> parse_task(std::string_view body) { return as_answer(read_task(body)); }

Result<TaskListAnswer> parse_task_list(std::string_view body) {
  return as_answer(read_task_list(body));
}

Result<std::vector<LeasedTaskAnswer>> parse_leased_tasks(std::string_view body) {
  return as_answer(read_leased_tasks(body));
}

Result<std::vector<Result<LeaseOutcome>>> parse_lease_results(std::string_view body) {
  return as_answer(read_results<LeaseOutcome>(body, read_lease_status));
}

}  // namespace detent::json

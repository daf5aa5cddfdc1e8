#include "protocol/json/answer_codec.h"

#include <array>
#include <cstddef>
#include <functional>
#include <optional>
#include <utility>

#include "protocol/json/field_table.h"
#include "protocol/json/problem.h"
#include "protocol/json/task_fields.h"
#include "task/retry.h"

namespace detent::json {

template <>
struct Words<TaskState> : WordList<TaskState::scheduled, TaskState::ready, TaskState::leased,
                                   TaskState::dead, TaskState::completed, TaskState::cancelled> {
  static constexpr std::string_view kAllowed = "a task's state";
};
template <>
struct Words<LeaseOutcome>
    : WordList<LeaseOutcome::done, LeaseOutcome::dead, LeaseOutcome::conflict> {
  static constexpr std::string_view kAllowed = "a lease's status";
};
template <>
struct Codec<LeaseToken> {
  static void write(auto /*form*/, JsonWriter& writer, LeaseToken lease) {
    writer.string(to_string(lease));
  }
};

namespace {

/// The approximate size of a task in an answer, without its payload. Used to reserve memory once.
constexpr std::size_t kTaskOverheadBytes = 320;
constexpr std::size_t kResultBytes = 100;  // the same of a result

/// A member of the leased task, and of the answer that a client reads.
template <auto kOfAnswer, auto kOfLeased>
constexpr auto kLeased = kEither<kOfAnswer, kAt<&LeasedTask::task, kOfLeased>>;

/// The same of the accepted task.
template <auto kOfAnswer, auto kOfAccepted>
constexpr auto kAccepted = kEither<kOfAnswer, kAt<&TaskSnapshot::task, kOfAccepted>>;

using AcceptedFields = AnswerBody<
    AcceptedTask, Required<"id", kAccepted<&AcceptedTask::id, &Task::id>>,
    Required<"queue", kAccepted<&AcceptedTask::queue, &Task::queue>>,
    Required<"state", kEither<&AcceptedTask::state, &TaskSnapshot::state>>,
    Required<"due_at", kAccepted<&AcceptedTask::due_at, &Task::due_at>>,
    Sparse<"was_there", kEither<&AcceptedTask::was_there, &TaskSnapshot::was_there>, IsTrue>>;

/// A task is live unless its state says otherwise.
struct StateField : Required<"state", &TaskSnapshot::state> {
  static Result<void> read(auto form, const JsonField* slot, TaskSnapshot& view) {
    TRY((Field::read(form, slot, view)));
    view.task.standing = view.state == TaskState::dead        ? Standing::dead
                         : view.state == TaskState::completed ? Standing::completed
                         : view.state == TaskState::cancelled ? Standing::cancelled
                                                              : Standing::live;
    return ok();
  }
};

/// The rules of a task. The values in force are written.
struct RulesInForce : Part<&Task::rules, RuleFields> {
  static void write(auto form, JsonWriter& writer, const Task& task) {
    TaskRules rules = task.rules;
    rules.max_attempts = max_attempts_of(rules);
    rules.visibility_timeout = rules.visibility_timeout.value_or(kDefaultVisibilityTimeout);
    rules.backoff = rules.backoff.value_or(Backoff{});
    RuleFields::write(form, writer, rules);
  }
};

/// The last error. It is read as the last attempt.
struct LastErrorField : Sparse<"last_error", last_error> {
  static Result<void> read(auto /*form*/, const JsonField* slot, Task& task) {
    if (!slot->given()) return ok();
    ASSIGN_OR_RETURN(std::string error, read_string(*slot));
    if (!error.empty()) add_attempt(task, {.error = std::move(error)});
    return ok();
  }
};

using TaskStart =
    Table<Required<"id", &Task::id>, Required<"queue", &Task::queue>, Sparse<"key", &Task::key>>;
using TaskMiddle =
    Table<Required<"due_at", &Task::due_at>, Required<"created_at", &Task::created_at>,
          RulesInForce, Required<"attempts", &Task::attempts>, LastErrorField>;
using TaskEnd = Table<Sparse<"webhook", &Task::webhook>, Sparse<"headers", &Task::headers>,
                      PayloadField<&Task::payload>>;
/// The fields of a task. A client does not read `More`.
template <class... More>
using TaskFields = AnswerBody<TaskSnapshot, Part<&TaskSnapshot::task, TaskStart>, StateField,
                              Part<&TaskSnapshot::task, TaskMiddle>, OnlyWritten<More>...,
                              Part<&TaskSnapshot::task, TaskEnd>>;
using HistoryField = Sparse<"history", &Task::history, Objects<AttemptFields>>;
using HolderFields =
    Table<Required<"leased_at", &LeaseHolder::since>, Sparse<"worker", &LeaseHolder::worker>,
          Sparse<"late_ms", &LeaseHolder::late>>;
using DeathField = Sparse<"died_at", &TaskSnapshot::died_at>;
using ListedTaskFields = TaskFields<DeathField, Part<&TaskSnapshot::holder, HolderFields>>;
using WholeTaskFields = TaskFields<Part<&TaskSnapshot::task, HistoryField>, DeathField,
                                   Part<&TaskSnapshot::holder, HolderFields>>;
using ListFields =
    AnswerBody<TaskListAnswer, Required<"tasks", &TaskListAnswer::tasks, Objects<ListedTaskFields>>,
               Required<"cursor", &TaskListAnswer::cursor, Cursor>>;

using LeasedFields = Table<
    Required<"id", kLeased<&LeasedTaskAnswer::id, &Task::id>>,
    Required<"lease", kEither<&LeasedTaskAnswer::lease, &LeasedTask::lease>>,
    Required<"attempt", kEither<&LeasedTaskAnswer::attempt, &LeasedTask::attempt>>,
    Required<"queue", kLeased<&LeasedTaskAnswer::queue, &Task::queue>>,
    Sparse<"key", kLeased<&LeasedTaskAnswer::key, &Task::key>>,
    Sparse<"headers", kLeased<&LeasedTaskAnswer::headers, &Task::headers>>,
    PayloadField<kLeased<&LeasedTaskAnswer::payload, &Task::payload>>,
    Required<"priority", kEither<&LeasedTaskAnswer::priority,
                                 kAt<&LeasedTask::task, &Task::rules, &TaskRules::priority>>>,
    Required<"due_at", kLeased<&LeasedTaskAnswer::due_at, &Task::due_at>>,
    Required<"lease_until", kEither<&LeasedTaskAnswer::lease_until, &LeasedTask::lease_until>>,
    Required<"lateness_ms", kEither<&LeasedTaskAnswer::lateness, &LeasedTask::lateness>>>;

/// A cancelled task. Its state is always the same.
struct CancelledState : Required<"state", std::identity{}> {
  static void write(auto /*form*/, JsonWriter& writer, TaskId /*id*/) {
    writer.name("state").string("cancelled");
  }
};
using CancelledFields =
    AnswerBody<TaskId, Required<"id", std::identity{}>, OnlyWritten<CancelledState>>;
using StatusFields = AnswerBody<LeaseOutcome, Required<"status", std::identity{}>>;

/// Writes {"results":[…]}. A result is an object with these fields, or an error.
template <class Fields>
std::string render_results(const auto& results, auto write_error) {
  std::string body;
  body.reserve(results.size() * kResultBytes);
  JsonWriter writer(body);
  writer.begin_object().name("results").begin_array();
  for (const auto& result : results) {
    if (result) {
      write_object<Fields>(kAnswer, writer, *result);
    } else {
      write_error(writer, result.error());
    }
  }
  writer.end_array().end_object();
  return body;
}

void write_error(JsonWriter& writer, const Error& error) {
  write_problem(writer.begin_object().name("error"), error);
  writer.end_object();
}

/// Reads {"results":[…]}. Each element is {"error":{problem}} or an object with these fields.
template <class T, class Fields>
Result<std::vector<Result<T>>> read_results(std::string_view body) {
  JsonDocument document;
  ASSIGN_OR_RETURN(const JsonValue* const elements, take_list(document, body, "results"));
  std::vector<Result<T>> results;
  for (const JsonValue& element : *elements) {
    JsonField error{"error"};
    TRY(take_fields(element, std::array{&error}, UnknownFields::skip));
    if (error.given()) {
      results.push_back(parse_problem(*error.value));
      continue;
    }
    results.push_back(T{});
    TRY((read_into<Fields>(kAnswer, *results.back(), element, UnknownFields::skip)));
  }
  return results;
}

/// Writes the tasks into an object, which write_end() ends.
template <class Fields, class T>
std::string render_tasks(std::span<const T> tasks, auto write_end) {
  std::size_t size = 0;
  for (const T& one : tasks) size += one.task.payload.data.size() + kTaskOverheadBytes;
  std::string body;
  body.reserve(size);
  JsonWriter writer(body);
  Objects<Fields>::write(kAnswer, writer.begin_object().name("tasks"), tasks);
  write_end(writer);
  writer.end_object();
  return body;
}

}  // namespace

std::string render_accepted(const TaskSnapshot& view) { return AcceptedFields::render(view); }

Result<AcceptedTask> parse_accepted(std::string_view body) { return AcceptedFields::parse(body); }

std::string render_schedule_results(std::span<const Result<TaskSnapshot>> results) {
  return render_results<AcceptedFields>(results, write_error);
}

Result<std::vector<Result<AcceptedTask>>> parse_schedule_results(std::string_view body) {
  return as_answer(read_results<AcceptedTask, AcceptedFields>(body));
}

std::string render_cancel_results(std::span<const Result<TaskId>> results) {
  return render_results<CancelledFields>(results, write_error);
}

std::string render_ready(std::string_view refuses_tasks) {
  std::string text;
  JsonWriter writer(text);
  writer.begin_object().name("status").string("ready");
  if (!refuses_tasks.empty()) writer.name("refuses_tasks").string(refuses_tasks);
  writer.end_object();
  return text;
}

std::string render_cancelled(TaskId id) { return CancelledFields::render(id); }

Result<std::vector<Result<TaskId>>> parse_cancel_results(std::string_view body) {
  return as_answer(read_results<TaskId, CancelledFields>(body));
}

std::string render_task(const TaskSnapshot& view) {
  return WholeTaskFields::render(view, view.task.payload.data.size() + kTaskOverheadBytes);
}

Result<TaskSnapshot> parse_task(std::string_view body) { return TaskFields<>::parse(body); }

std::string render_task_list(std::span<const TaskSnapshot> tasks, std::string_view cursor) {
  return render_tasks<ListedTaskFields>(
      tasks, [&](JsonWriter& writer) { writer.name("cursor").string_or_null(cursor); });
}

Result<TaskListAnswer> parse_task_list(std::string_view body) { return ListFields::parse(body); }

std::string render_leased_tasks(std::span<const LeasedTask> tasks) {
  return render_tasks<LeasedFields>(tasks, [](JsonWriter&) {});
}

Result<std::vector<LeasedTaskAnswer>> parse_leased_tasks(std::string_view body) {
  using Tasks = std::vector<LeasedTaskAnswer>;
  return AnswerBody<Tasks, Required<"tasks", std::identity{}, Objects<LeasedFields>>>::parse(body);
}

std::string render_lease_results(std::span<const Result<LeaseOutcome>> results) {
  return render_results<StatusFields>(results, [](JsonWriter& writer, const Error& error) {
    writer.raw(render_lease_error(error, render_problem(error)));
  });
}

Result<std::vector<Result<LeaseOutcome>>> parse_lease_results(std::string_view body) {
  return as_answer(read_results<LeaseOutcome, StatusFields>(body));
}

}  // namespace detent::json

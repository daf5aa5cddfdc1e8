#include "client/client_values.h"

#include <optional>

#include "task/sink_name.h"

namespace detent {
namespace {

// Enums that are cast have the same values on both sides; client_values_test.cc checks each name.
using Code = ClientError::Code;
static_assert(static_cast<int>(Code::internal) == static_cast<int>(ErrorCode::internal));
static_assert(static_cast<int>(client::TaskState::cancelled) ==
              static_cast<int>(TaskState::cancelled));

/// A copy of a value that may be missing, with the type of the other side.
template <class To, class From>
std::optional<To> converted(const std::optional<From>& value) {
  if (!value) return std::nullopt;
  if constexpr (std::is_enum_v<To>) {
    return static_cast<To>(*value);
  } else {
    return To{.initial = value->initial, .max = value->max};  // a backoff
  }
}

template <class To, class From>
std::vector<To> headers_of(const std::vector<From>& headers) {
  std::vector<To> all;
  for (const From& header : headers) all.push_back({.name = header.name, .value = header.value});
  return all;
}

Payload from_client(const client::Payload& payload) {
  return {.kind = static_cast<Payload::Kind>(payload.kind), .data = payload.data};
}

client::QueueSettings to_client(const QueueSettings& settings) {
  const QueueWebhook webhook = settings.webhook.value_or(QueueWebhook{});
  const std::string sink(sink_of(webhook.url));
  return {.paused = settings.paused,
          .max_attempts = settings.max_attempts,
          .visibility_timeout = settings.visibility_timeout,
          .backoff = converted<client::Backoff>(settings.backoff),
          .retention = settings.retention,
          .key_retention = settings.key_retention,
          .max_tasks = settings.max_tasks,
          .max_bytes = settings.max_bytes,
          .rate = settings.rate,
          .concurrency = settings.concurrency,
          .webhook = sink.empty() ? webhook.url : "",
          .sink = sink,
          .partitions = settings.partitions,
          .webhook_keys = webhook.keys.size()};
}

CronRule from_client(const client::CronRule& rule) { return {rule.expression}; }
client::CronRule to_client(const CronRule& rule) { return {rule.expression}; }
IntervalRule from_client(const client::IntervalRule& rule) { return {rule.every, rule.anchor}; }
client::IntervalRule to_client(const IntervalRule& rule) { return {rule.period, rule.anchor}; }
CalendarRule from_client(const client::CalendarRule& rule) {
  return {.anchor = rule.anchor,
          .unit = static_cast<CalendarRule::Unit>(rule.unit),
          .every = rule.every,
          .month_end = static_cast<CalendarRule::MonthEnd>(rule.month_end)};
}
client::CalendarRule to_client(const CalendarRule& rule) {
  return {.every = rule.every,
          .unit = static_cast<client::CalendarRule::Unit>(rule.unit),
          .month_end = static_cast<client::CalendarRule::MonthEnd>(rule.month_end),
          .anchor = rule.anchor};
}

/// The rules that new tasks and schedules have in common.
template <class T>
TaskRules rules_of(const T& task) {
  return {.priority = task.priority,
          .max_attempts = task.max_attempts,
          .visibility_timeout = task.visibility_timeout,
          .backoff = converted<Backoff>(task.backoff)};
}

client::NewSchedule to_client(const RecurringSchedule& schedule) {
  using client::NewSchedule;
  return {
      .rule = std::visit(
          [](const auto& rule) -> decltype(client::NewSchedule::rule) { return to_client(rule); },
          schedule.rule),
      .time_zone = schedule.time_zone,
      .queue = schedule.queue,
      .payload = to_client(schedule.payload),
      .priority = schedule.rules.priority,
      .max_attempts = schedule.rules.max_attempts,
      .visibility_timeout = schedule.rules.visibility_timeout,
      .backoff = converted<client::Backoff>(schedule.rules.backoff),
      .count = schedule.count,
      .start = schedule.start,
      .end = schedule.end,
      .jitter = schedule.jitter,
      .misfire = static_cast<NewSchedule::Misfire>(schedule.misfire),
      .misfire_grace = schedule.misfire_grace,
      .misfire_limit = schedule.misfire_limit,
      .overlap = static_cast<NewSchedule::Overlap>(schedule.overlap),
      .gap = converted<NewSchedule::Gap>(schedule.gap),
      .repeat = converted<NewSchedule::Repeat>(schedule.repeat)};
}

}  // namespace

ClientError to_client(const Error& error) {
  return {.code = static_cast<Code>(error.code), .message = error.message, .field = error.field};
}

Error to_error(const ClientError& error) {
  return {static_cast<ErrorCode>(error.code), error.message, error.field};
}

client::Payload to_client(const Payload& payload) {
  return {.kind = static_cast<client::Payload::Kind>(payload.kind), .data = payload.data};
}

client::ScheduledTask to_client(const json::AcceptedTask& task) {
  return {.id = task.id.value,
          .queue = task.queue,
          .state = static_cast<client::TaskState>(task.state),
          .due_at = task.due_at,
          .was_there = task.was_there};
}

client::Task to_client(const TaskSnapshot& snapshot) {
  const Task& task = snapshot.task;
  return {.id = task.id.value,
          .queue = task.queue,
          .state = static_cast<client::TaskState>(snapshot.state),
          .due_at = task.due_at,
          .created_at = task.created_at,
          .payload = to_client(task.payload),
          .key = task.key,
          .priority = task.rules.priority,
          .attempts = task.attempts,
          .last_error = std::string(last_error(task)),
          .max_attempts = task.rules.max_attempts,
          .visibility_timeout = task.rules.visibility_timeout,
          .backoff = converted<client::Backoff>(task.rules.backoff),
          .webhook = task.webhook,
          .headers = headers_of<client::Header>(task.headers)};
}

client::TaskPage to_client(const json::TaskListAnswer& answer) {
  return {.tasks = to_client(answer.tasks), .cursor = answer.cursor};
}

client::LeasedTask to_client(json::LeasedTaskAnswer task) {
  return {.id = task.id.value,
          .lease = std::move(task.lease),
          .attempt = task.attempt,
          .queue = std::move(task.queue),
          .key = std::move(task.key),
          .payload = to_client(task.payload),
          .priority = task.priority,
          .due_at = task.due_at,
          .lease_until = task.lease_until,
          .lateness = task.lateness,
          .headers = headers_of<client::Header>(task.headers)};
}

client::LeaseStatus to_client(LeaseOutcome outcome) noexcept {
  switch (outcome) {
    case LeaseOutcome::done:
      return client::LeaseStatus::done;
    case LeaseOutcome::dead:
      return client::LeaseStatus::dead;
    case LeaseOutcome::conflict:
      return client::LeaseStatus::conflict;
  }
  return client::LeaseStatus::conflict;
}

client::Queue to_client(const QueueView& view) {
  return {.name = view.stats.queue,
          .scheduled = view.stats.scheduled,
          .ready = view.stats.ready,
          .leased = view.stats.leased,
          .dead = view.stats.dead,
          .oldest_ready_age = view.stats.oldest_ready_age,
          .bytes = view.bytes,
          .settings = to_client(view.settings)};
}

client::Schedule to_client(const ScheduleView& view) {
  const auto& [schedule, progress] = view.record;
  return {.name = schedule.name,
          .state = std::string(state_of(view)),
          .words = view.words,
          .queue = schedule.queue,
          .next_at = view.next_at,
          .made = progress.made,
          .definition = to_client(schedule),
          .broken = view.broken,
          .last_at = progress.last_at,
          .last_task = progress.last_task.value,
          .overlapped = progress.overlapped,
          .queued_at = progress.queued_at};
}

client::SchedulePage to_client(const json::ScheduleList& list) {
  return {.schedules = to_client(list.schedules), .cursor = list.cursor};
}

client::BackfillResult to_client(const json::BackfillCounts& counts) {
  return {.made = counts.made, .there = counts.there, .next = counts.next};
}

ClientResult<void> to_client(const Result<TaskId>& cancelled) {
  if (!cancelled) return to_client(cancelled.error());
  return {};
}

std::string_view client::to_string(TaskState state) noexcept {
  return detent::to_string(static_cast<detent::TaskState>(state));
}
std::string_view client::to_string(LeaseStatus status) noexcept {
  switch (status) {
    case LeaseStatus::done:
      return "done";
    case LeaseStatus::conflict:
      return "conflict";
    case LeaseStatus::dead:
      return "dead";
    case LeaseStatus::unavailable:
      return "unavailable";
    case LeaseStatus::error:
      return "error";
  }
  return "error";
}
std::string_view client::to_string(CalendarRule::Unit unit) noexcept {
  return detent::to_string(static_cast<detent::CalendarRule::Unit>(unit));
}
std::string_view client::to_string(CalendarRule::MonthEnd month_end) noexcept {
  return detent::to_string(static_cast<detent::CalendarRule::MonthEnd>(month_end));
}
std::string_view client::to_string(NewSchedule::Gap gap) noexcept {
  return detent::to_string(static_cast<ScheduleGap>(gap));
}
std::string_view client::to_string(NewSchedule::Repeat repeat) noexcept {
  return detent::to_string(static_cast<ScheduleRepeat>(repeat));
}
std::string_view client::to_string(NewTask::OnKey on_key) noexcept {
  return detent::to_string(static_cast<OnKey>(on_key));
}
std::string_view client::to_string(NewSchedule::Misfire misfire) noexcept {
  return detent::to_string(static_cast<detent::Misfire>(misfire));
}
std::string_view client::to_string(NewSchedule::Overlap overlap) noexcept {
  return detent::to_string(static_cast<ScheduleOverlap>(overlap));
}

ScheduleRequest from_client(const client::NewTask& task) {
  return {.queue = task.queue,
          .payload = from_client(task.payload),
          .rules = rules_of(task),
          .due = task.due,
          .key = task.key,
          .webhook = task.webhook,
          .headers = headers_of<TaskHeader>(task.headers),
          .on_key = static_cast<OnKey>(task.on_key),
          .max_wait = task.max_wait};
}

TaskEdit from_client(const client::TaskEdit& edit) {
  TaskEdit made{.due = edit.due, .priority = edit.priority, .webhook = edit.webhook};
  if (edit.payload) made.payload = from_client(*edit.payload);
  if (edit.headers) made.headers = headers_of<TaskHeader>(*edit.headers);
  return made;
}

Result<json::TaskNames> from_client(std::span<const client::TaskName> tasks) {
  json::TaskNames names;
  for (const client::TaskName& task : tasks) {
    if (const auto* id = std::get_if<std::uint64_t>(&task)) {
      names.ids.emplace_back(TaskId{*id});
      continue;
    }
    const auto& key = std::get<client::TaskKey>(task);
    if (names.keys.empty()) names.queue = key.queue;
    if (key.queue != names.queue) names.ids.emplace_back();  // makes the check below fail
    names.keys.push_back(key.key);
  }
  if (names.ids.empty() || names.keys.empty()) return names;
  return Error{ErrorCode::invalid_argument, "tasks must all be ids, or all keys of one queue", ""};
}

json::QueuePatch from_client(const client::QueueChange& change) {
  json::QueuePatch patch;
  patch.paused = change.paused;
  patch.max_attempts = change.max_attempts;
  patch.visibility_timeout = change.visibility_timeout;
  if (change.backoff) patch.backoff = converted<Backoff>(*change.backoff);
  patch.retention = change.retention;
  patch.key_retention = change.key_retention;
  patch.max_tasks = change.max_tasks;
  patch.max_bytes = change.max_bytes;
  patch.rate = change.rate;
  patch.concurrency = change.concurrency;
  patch.partitions = change.partitions;
  if (change.webhook) {
    patch.webhook.emplace();
    if (!change.webhook->empty()) {
      *patch.webhook = QueueWebhook{.url = *change.webhook, .keys = change.webhook_keys};
    }
  }
  if (change.sink) {
    patch.sink.emplace();
    if (!change.sink->empty()) *patch.sink = *change.sink;
  }
  return patch;
}

RecurringSchedule from_client(const std::string& name, const client::NewSchedule& schedule) {
  RecurringSchedule made;
  made.name = name;
  made.rule = std::visit(
      [](const auto& rule) -> decltype(RecurringSchedule::rule) { return from_client(rule); },
      schedule.rule);
  made.time_zone = schedule.time_zone;
  made.gap = converted<ScheduleGap>(schedule.gap);
  made.repeat = converted<ScheduleRepeat>(schedule.repeat);
  made.queue = schedule.queue;
  made.payload = from_client(schedule.payload);
  made.rules = rules_of(schedule);
  made.count = schedule.count;
  made.start = schedule.start;
  made.end = schedule.end;
  made.jitter = schedule.jitter;
  made.misfire = static_cast<Misfire>(schedule.misfire);
  made.misfire_grace = schedule.misfire_grace;
  made.misfire_limit = schedule.misfire_limit;
  made.overlap = static_cast<ScheduleOverlap>(schedule.overlap);
  return made;
}

}  // namespace detent

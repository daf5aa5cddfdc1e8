#include "client/client_values.h"

#include <optional>
#include <utility>
#include <variant>

#include "task/sink_name.h"

namespace detent {
namespace {

std::optional<client::Backoff> to_client(const std::optional<Backoff>& backoff) {
  if (!backoff) return std::nullopt;
  return client::Backoff{.initial = backoff->initial, .max = backoff->max};
}

std::optional<Backoff> from_client(const std::optional<client::Backoff>& backoff) {
  if (!backoff) return std::nullopt;
  return Backoff{.initial = backoff->initial, .max = backoff->max};
}

client::Payload to_client(const Payload& payload) {
  const bool is_json = payload.kind == Payload::Kind::json;
  return {.kind = is_json ? client::Payload::Kind::json : client::Payload::Kind::bytes,
          .data = payload.data};
}

client::TaskState to_client(TaskState state) noexcept {
  switch (state) {
    case TaskState::scheduled:
      return client::TaskState::scheduled;
    case TaskState::ready:
      return client::TaskState::ready;
    case TaskState::leased:
      return client::TaskState::leased;
    case TaskState::dead:
      return client::TaskState::dead;
    case TaskState::completed:
      return client::TaskState::completed;
    case TaskState::cancelled:
      return client::TaskState::cancelled;
  }
  return client::TaskState::scheduled;
}

client::QueueSettings to_client(const QueueSettings& settings) {
  const std::string url = settings.webhook ? settings.webhook->url : "";
  const std::string sink(sink_of(url));
  return {.paused = settings.paused,
          .max_attempts = settings.max_attempts,
          .visibility_timeout = settings.visibility_timeout,
          .backoff = to_client(settings.backoff),
          .retention = settings.retention,
          .key_retention = settings.key_retention,
          .max_tasks = settings.max_tasks,
          .max_bytes = settings.max_bytes,
          .rate = settings.rate,
          .concurrency = settings.concurrency,
          .webhook = sink.empty() ? url : "",
          .sink = sink,
          .partitions = settings.partitions};
}

std::variant<CronRule, IntervalRule, CalendarRule> rule_of(const client::NewSchedule& schedule) {
  if (const auto* cron = std::get_if<client::CronRule>(&schedule.rule)) {
    return CronRule{cron->expression};
  }
  if (const auto* interval = std::get_if<client::IntervalRule>(&schedule.rule)) {
    return IntervalRule{.period = interval->every, .anchor = interval->anchor};
  }
  const auto& calendar = std::get<client::CalendarRule>(schedule.rule);
  CalendarRule rule{.anchor = calendar.anchor, .every = calendar.every};
  switch (calendar.unit) {
    case client::CalendarRule::Unit::day:
      rule.unit = CalendarRule::Unit::day;
      break;
    case client::CalendarRule::Unit::week:
      rule.unit = CalendarRule::Unit::week;
      break;
    case client::CalendarRule::Unit::month:
      rule.unit = CalendarRule::Unit::month;
      break;
    case client::CalendarRule::Unit::year:
      rule.unit = CalendarRule::Unit::year;
      break;
  }
  if (calendar.month_end == client::CalendarRule::MonthEnd::skip) {
    rule.month_end = CalendarRule::MonthEnd::skip;
  }
  return rule;
}

Misfire misfire_of(client::NewSchedule::Misfire misfire) noexcept {
  switch (misfire) {
    case client::NewSchedule::Misfire::skip:
      return Misfire::skip;
    case client::NewSchedule::Misfire::once:
      return Misfire::once;
    case client::NewSchedule::Misfire::all:
      return Misfire::all;
  }
  return Misfire::once;
}

ScheduleOverlap overlap_of(client::NewSchedule::Overlap overlap) noexcept {
  switch (overlap) {
    case client::NewSchedule::Overlap::allow:
      return ScheduleOverlap::allow;
    case client::NewSchedule::Overlap::skip:
      return ScheduleOverlap::skip;
    case client::NewSchedule::Overlap::queue_one:
      return ScheduleOverlap::queue_one;
  }
  return ScheduleOverlap::allow;
}

/// The rules that new tasks and schedules have in common.
template <class T>
TaskRules rules_of(const T& task) {
  return {.priority = task.priority,
          .max_attempts = task.max_attempts,
          .visibility_timeout = task.visibility_timeout,
          .backoff = from_client(task.backoff)};
}

ClientError::Code to_code(ErrorCode code) noexcept {
  switch (code) {
    case ErrorCode::invalid_argument:
      return ClientError::Code::invalid_argument;
    case ErrorCode::forbidden:
      return ClientError::Code::forbidden;
    case ErrorCode::not_found:
      return ClientError::Code::not_found;
    case ErrorCode::conflict:
      return ClientError::Code::conflict;
    case ErrorCode::too_large:
      return ClientError::Code::too_large;
    case ErrorCode::resource_exhausted:
      return ClientError::Code::resource_exhausted;
    case ErrorCode::unavailable:
      return ClientError::Code::unavailable;
    case ErrorCode::data_loss:
      return ClientError::Code::data_loss;
    case ErrorCode::internal:
      return ClientError::Code::internal;
  }
  return ClientError::Code::internal;
}

}  // namespace

ClientError to_client(const Error& error) {
  return {.code = to_code(error.code), .message = error.message, .field = error.field};
}

client::ScheduledTask to_client(const json::AcceptedTask& task) {
  return {.id = task.id.value,
          .queue = task.queue,
          .state = to_client(task.state),
          .due_at = task.due_at,
          .was_there = task.was_there};
}

client::Task to_client(const TaskSnapshot& snapshot) {
  const Task& task = snapshot.task;
  return {.id = task.id.value,
          .queue = task.queue,
          .state = to_client(snapshot.state),
          .due_at = task.due_at,
          .created_at = task.created_at,
          .payload = to_client(task.payload),
          .key = task.key,
          .priority = task.rules.priority,
          .attempts = task.attempts,
          .last_error = std::string(last_error(task))};
}

client::LeasedTask to_client(json::LeasedTaskAnswer task) {
  client::LeasedTask leased{.id = task.id.value,
                            .lease = std::move(task.lease),
                            .attempt = task.attempt,
                            .queue = std::move(task.queue),
                            .key = std::move(task.key),
                            .payload = to_client(task.payload),
                            .priority = task.priority,
                            .due_at = task.due_at,
                            .lease_until = task.lease_until,
                            .lateness = task.lateness};
  for (TaskHeader& header : task.headers) {
    leased.headers.push_back({std::move(header.name), std::move(header.value)});
  }
  return leased;
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
  return {.name = view.record.schedule.name,
          .state = std::string(state_of(view)),
          .words = view.words,
          .queue = view.record.schedule.queue,
          .next_at = view.next_at,
          .made = view.record.progress.made};
}

TaskState from_client(client::TaskState state) noexcept {
  switch (state) {
    case client::TaskState::scheduled:
      return TaskState::scheduled;
    case client::TaskState::ready:
      return TaskState::ready;
    case client::TaskState::leased:
      return TaskState::leased;
    case client::TaskState::dead:
      return TaskState::dead;
    case client::TaskState::completed:
      return TaskState::completed;
    case client::TaskState::cancelled:
      return TaskState::cancelled;
  }
  return TaskState::scheduled;
}

Payload from_client(const client::Payload& payload) {
  const bool is_json = payload.kind == client::Payload::Kind::json;
  return {.kind = is_json ? Payload::Kind::json : Payload::Kind::bytes, .data = payload.data};
}

ScheduleRequest from_client(const client::NewTask& task) {
  ScheduleRequest request{.queue = task.queue,
                          .payload = from_client(task.payload),
                          .rules = rules_of(task),
                          .due = task.due,
                          .key = task.key,
                          .webhook = task.webhook};
  for (const client::Header& header : task.headers) {
    request.headers.push_back({.name = header.name, .value = header.value});
  }
  return request;
}

TaskName from_client(const client::TaskName& task) {
  if (const auto* id = std::get_if<std::uint64_t>(&task)) return TaskId{*id};
  const auto& [queue, key] = std::get<client::TaskKey>(task);
  return TaskKey{.queue = queue, .key = key};
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

TaskFilter from_client(const client::ListOptions& options) {
  TaskFilter filter{.queue = options.queue,
                    .key = options.key,
                    .due_after = options.due_after,
                    .due_before = options.due_before};
  if (options.state) filter.state = from_client(*options.state);
  return filter;
}

json::QueuePatch from_client(const client::QueueChange& change) {
  json::QueuePatch patch;
  patch.paused = change.paused;
  patch.max_attempts = change.max_attempts;
  patch.visibility_timeout = change.visibility_timeout;
  if (change.backoff) patch.backoff = from_client(*change.backoff);
  patch.retention = change.retention;
  patch.key_retention = change.key_retention;
  patch.max_tasks = change.max_tasks;
  patch.max_bytes = change.max_bytes;
  patch.rate = change.rate;
  patch.concurrency = change.concurrency;
  patch.partitions = change.partitions;
  if (change.webhook) {
    patch.webhook = change.webhook->empty()
                        ? std::nullopt
                        : std::optional<QueueWebhook>(QueueWebhook{.url = *change.webhook});
  }
  if (change.sink) {
    patch.sink = change.sink->empty() ? std::nullopt : std::optional<std::string>(*change.sink);
  }
  return patch;
}

RecurringSchedule from_client(const std::string& name, const client::NewSchedule& schedule) {
  RecurringSchedule made;
  made.name = name;
  made.rule = rule_of(schedule);
  made.time_zone = schedule.time_zone;
  made.queue = schedule.queue;
  made.payload = from_client(schedule.payload);
  made.rules = rules_of(schedule);
  made.count = schedule.count;
  made.start = schedule.start;
  made.end = schedule.end;
  made.jitter = schedule.jitter;
  made.misfire = misfire_of(schedule.misfire);
  made.misfire_grace = schedule.misfire_grace;
  made.misfire_limit = schedule.misfire_limit;
  made.overlap = overlap_of(schedule.overlap);
  return made;
}

}  // namespace detent

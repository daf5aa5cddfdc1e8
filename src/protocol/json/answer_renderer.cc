#include "protocol/json/answer_renderer.h"

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "base/wall_time.h"
#include "protocol/json/json_writer.h"
#include "protocol/json/lateness_json.h"
#include "protocol/json/problem.h"
#include "protocol/json/queue_renderer.h"
#include "protocol/json/rule_writer.h"
#include "protocol/json/webhook_json.h"
#include "task/retry.h"

namespace detent::json {

namespace {

/// The approximate size of a task in an answer, without its payload. Used to reserve memory once.
constexpr std::size_t kTaskOverheadBytes = 320;

void write_key(JsonWriter& writer, const Task& task) {
  if (!task.key.empty()) writer.name("key").string(task.key);
}

void write_accepted(JsonWriter& writer, const TaskSnapshot& view) {
  writer.begin_object();
  writer.name("id").string(to_string(view.task.id));
  writer.name("queue").string(view.task.queue);
  writer.name("state").string(to_string(view.state));
  writer.name("due_at").string(format_rfc3339(view.task.due_at));
  if (view.was_there) writer.name("was_there").raw("true");
  writer.end_object();
}

void write_all_rules(JsonWriter& writer, const TaskRules& rules) {
  const Backoff backoff = rules.backoff.value_or(Backoff{});
  writer.name("priority").number(rules.priority);
  writer.name("max_attempts").number(max_attempts_of(rules));
  writer.name("visibility_timeout_ms")
      .number(rules.visibility_timeout.value_or(kDefaultVisibilityTimeout).count());
  writer.name("backoff").begin_object();
  writer.name("initial_ms").number(backoff.initial.count());
  writer.name("max_ms").number(backoff.max.count());
  writer.end_object();
}

/// Writes the ended attempts, oldest first. Writes no member if no attempt has ended.
void write_history(JsonWriter& writer, const Task& task) {
  if (task.history.empty()) return;
  writer.name("history").begin_array();
  for (const Attempt& attempt : task.history) {
    writer.begin_object();
    writer.name("started_at").string(format_rfc3339(attempt.started_at));
    writer.name("ended_at").string(format_rfc3339(attempt.ended_at));
    if (!attempt.worker.empty()) writer.name("worker").string(attempt.worker);
    if (!attempt.error.empty()) writer.name("error").string(attempt.error);
    write_late(writer, attempt.late);
    writer.end_object();
  }
  writer.end_array();
}

/// How much of a task to write. A list leaves out the history and the worker.
enum class TaskDetail : bool { listed, whole };

void write_task(JsonWriter& writer, const TaskSnapshot& view, TaskDetail detail) {
  const Task& task = view.task;
  writer.begin_object();
  writer.name("id").string(to_string(task.id));
  writer.name("queue").string(task.queue);
  write_key(writer, task);
  writer.name("state").string(to_string(view.state));
  writer.name("due_at").string(format_rfc3339(task.due_at));
  writer.name("created_at").string(format_rfc3339(task.created_at));
  write_all_rules(writer, task.rules);
  writer.name("attempts").number(task.attempts);
  const std::string_view error = last_error(task);
  if (!error.empty()) writer.name("last_error").string(error);
  if (detail == TaskDetail::whole) {
    write_history(writer, task);
    if (view.holder) writer.name("leased_at").string(format_rfc3339(view.holder->since));
    if (view.holder && !view.holder->worker.empty()) {
      writer.name("worker").string(view.holder->worker);
    }
    if (view.holder) write_late(writer, view.holder->late);
  }
  write_webhook(writer, task.webhook, task.headers);
  write_payload(writer, task.payload);
  writer.end_object();
}

void write_leased_task(JsonWriter& writer, const LeasedTask& leased) {
  const Task& task = leased.task;
  writer.begin_object();
  writer.name("id").string(to_string(task.id));
  writer.name("lease").string(to_string(leased.lease));
  writer.name("attempt").number(leased.attempt);
  writer.name("queue").string(task.queue);
  write_key(writer, task);
  write_headers(writer, task.headers);
  write_payload(writer, task.payload);
  writer.name("priority").number(task.rules.priority);
  writer.name("due_at").string(format_rfc3339(task.due_at));
  writer.name("lease_until").string(format_rfc3339(leased.lease_until));
  writer.name("lateness_ms").number(leased.lateness.count());
  writer.end_object();
}

void write_error(JsonWriter& writer, const Error& error) {
  writer.begin_object().name("error");
  write_problem(writer, error);
  writer.end_object();
}

void write_counters(JsonWriter& writer, const TaskCounters& counters) {
  writer.begin_object();
  writer.name("scheduled").number(counters.scheduled);
  writer.name("fired").number(counters.fired);
  writer.name("leased").number(counters.leased);
  writer.name("completed").number(counters.completed);
  writer.name("failed").number(counters.failed);
  writer.name("cancelled").number(counters.cancelled);
  writer.name("dead").number(counters.dead);
  writer.name("leases_expired").number(counters.leases_expired);
  writer.name("conflicts").number(counters.conflicts);
  writer.name("quarantined").number(counters.quarantined);
  writer.end_object();
}

/// Writes the figures of the whole server. An access token for some queues does not see them.
void write_server_figures(JsonWriter& writer, const ServerStats& stats) {
  writer.name("loaded").number(stats.loaded);
  writer.name("waiting_workers").number(stats.waiting_workers);
  writer.name("schedules").number(stats.schedules);
  if (stats.away) {
    writer.name("external").begin_object().name("tasks").number(*stats.away);
    writer.name("lost").raw(stats.is_away_lost ? "true" : "false").end_object();
  }
  if (stats.data_free_bytes) writer.name("data_free_bytes").number(*stats.data_free_bytes);
  writer.name("counters");
  write_counters(writer, stats.counters);
  writer.name("lateness_counts").begin_array();
  for (const std::uint64_t count : stats.lateness) writer.number(count);
  writer.end_array();
  writer.name("late").begin_object().name("tasks");
  write_by_cause(writer, stats.late.tasks);
  writer.name("ms");
  write_by_cause(writer, stats.late.time);
  writer.end_object();
}

}  // namespace

std::string render_accepted(const TaskSnapshot& view) {
  std::string body;
  JsonWriter writer(body);
  write_accepted(writer, view);
  return body;
}

std::string render_schedule_results(std::span<const Result<TaskSnapshot>> results) {
  std::string body;
  body.reserve(results.size() * kTaskOverheadBytes);
  JsonWriter writer(body);
  writer.begin_object().name("results").begin_array();
  for (const Result<TaskSnapshot>& result : results) {
    if (result) {
      write_accepted(writer, *result);
    } else {
      write_error(writer, result.error());
    }
  }
  writer.end_array().end_object();
  return body;
}

std::string render_cancel_results(std::span<const Result<TaskId>> results) {
  std::string body;
  JsonWriter writer(body);
  writer.begin_object().name("results").begin_array();
  for (const Result<TaskId>& result : results) {
    if (result) {
      writer.raw(render_cancelled(*result));
    } else {
      write_error(writer, result.error());
    }
  }
  writer.end_array().end_object();
  return body;
}

std::string render_cancelled(TaskId id) {
  return R"({"id":")" + to_string(id) + R"(","state":"cancelled"})";
}

std::string render_task(const TaskSnapshot& view) {
  std::string body;
  body.reserve(view.task.payload.data.size() + kTaskOverheadBytes);
  JsonWriter writer(body);
  write_task(writer, view, TaskDetail::whole);
  return body;
}

std::string render_task_list(std::span<const TaskSnapshot> tasks, std::string_view cursor) {
  std::size_t size = 0;
  for (const TaskSnapshot& view : tasks) {
    size += view.task.payload.data.size() + kTaskOverheadBytes;
  }
  std::string body;
  body.reserve(size);
  JsonWriter writer(body);
  writer.begin_object().name("tasks").begin_array();
  for (const TaskSnapshot& view : tasks) write_task(writer, view, TaskDetail::listed);
  writer.end_array().name("cursor").string_or_null(cursor).end_object();
  return body;
}

std::string render_leased_tasks(std::span<const LeasedTask> tasks) {
  std::size_t size = 0;
  for (const LeasedTask& leased : tasks) {
    size += leased.task.payload.data.size() + kTaskOverheadBytes;
  }
  std::string body;
  body.reserve(size);
  JsonWriter writer(body);
  writer.begin_object().name("tasks").begin_array();
  for (const LeasedTask& leased : tasks) write_leased_task(writer, leased);
  writer.end_array().end_object();
  return body;
}

std::string render_lease_results(std::span<const Result<LeaseOutcome>> results) {
  std::string body;
  JsonWriter writer(body);
  writer.begin_object().name("results").begin_array();
  for (const Result<LeaseOutcome>& result : results) {
    if (result) {
      writer.begin_object().name("status").string(to_string(*result)).end_object();
    } else {
      writer.raw(render_lease_error(result.error(), render_problem(result.error())));
    }
  }
  writer.end_array().end_object();
  return body;
}

std::string render_stats(const ServerStats& stats) {
  std::string body;
  JsonWriter writer(body);
  writer.begin_object();
  writer.name("version").string(stats.version);
  writer.name("uptime_ms").number(stats.uptime.count());
  if (stats.scope == StatsScope::server) write_server_figures(writer, stats);
  writer.name("tasks");
  write_task_counts(writer, stats.all);
  writer.name("queue_count").number(stats.queue_count);
  writer.name("queues").begin_array();
  for (const QueueStats& queue : stats.queues) {
    writer.begin_object();
    write_queue_stats(writer, queue);
    writer.end_object();
  }
  writer.end_array().end_object();
  return body;
}

std::string render_wheel(const WheelView& wheel) {
  std::string body;
  JsonWriter writer(body);
  writer.begin_object();
  writer.name("now").string(format_rfc3339(wheel.now));
  writer.name("tick_ms").number(wheel.tick.count());
  writer.name("slots_per_level").number(wheel.slots_per_level);
  writer.name("timers").number(wheel.timers);
  writer.name("levels").begin_array();
  auto slot = wheel.slots.begin();
  std::chrono::milliseconds width = wheel.tick;
  for (unsigned level = 0; level < wheel.level_count; ++level, width *= wheel.slots_per_level) {
    writer.begin_object();
    writer.name("level").number(level);
    writer.name("slot_ms").number(width.count());
    writer.name("slots").begin_array();
    for (; slot != wheel.slots.end() && slot->level == level; ++slot) {
      writer.begin_object();
      writer.name("slot").number(slot->index);
      writer.name("from").string(format_rfc3339(slot->from));
      writer.name("until").string(format_rfc3339(slot->until));
      writer.name("count").number(slot->count);
      writer.end_object();
    }
    writer.end_array().end_object();
  }
  writer.end_array().end_object();
  return body;
}

std::string render_forecast(const Forecast& forecast) {
  std::string body;
  JsonWriter writer(body);
  writer.begin_object();
  writer.name("from").string(format_rfc3339(forecast.from));
  writer.name("bin_ms").number(forecast.bin.count());
  writer.name("counts").begin_array();
  for (const std::uint64_t count : forecast.counts) writer.number(count);
  writer.end_array();
  writer.name("overdue").number(forecast.overdue);
  writer.name("later").number(forecast.later);
  writer.name("coarse").number(forecast.coarse);
  writer.end_object();
  return body;
}

}  // namespace detent::json

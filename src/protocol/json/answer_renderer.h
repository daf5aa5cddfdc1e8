// Writes answers of the server as JSON bodies. A payload is written exactly as it came in, byte for
// byte. answer_parser.h reads these bodies. Cost: one pass that appends; no tree is built.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "base/result.h"
#include "protocol/json/answer.h"
#include "task/forecast.h"
#include "task/request.h"
#include "task/wheel_view.h"

namespace detent::json {

/// The answer of `POST /v1/tasks` and of the calls that move a task. Leaves out the payload and the
/// rules, which the client knows.
std::string render_accepted(const TaskSnapshot& view);
/// The answer of `POST /v1/tasks/batch` and `POST /v1/tasks/move`: one result for each task, in
/// order. A failed task has a problem as its result.
std::string render_schedule_results(std::span<const Result<TaskSnapshot>> results);

/// The answer of `POST /v1/tasks/cancel`: one result for each task, in order. A failed task has a
/// problem as its result.
std::string render_cancel_results(std::span<const Result<TaskId>> results);

/// The answer for one cancelled task.
std::string render_cancelled(TaskId id);

/// The answer of `GET /v1/tasks/{id}`: everything about a task. A rule that the task does not set
/// shows the value in force.
std::string render_task(const TaskSnapshot& view);

/// The answer of `GET /v1/tasks`. Leaves out the history and the worker of each task. `cursor` is
/// the start of the next page; it is "" on the last page.
std::string render_task_list(std::span<const TaskSnapshot> tasks, std::string_view cursor);

/// The answer of `POST /v1/queues/{queue}/lease`.
std::string render_leased_tasks(std::span<const LeasedTask> tasks);
/// The answer of `POST /v1/leases/{complete,fail,extend,release}`: a status for each lease, in
/// order. A lease that failed also has a problem.
std::string render_lease_results(std::span<const Result<LeaseOutcome>> results);

/// The answer of `GET /v1/stats`.
std::string render_stats(const ServerStats& stats);
/// The answer of `GET /v1/wheel`.
std::string render_wheel(const WheelView& wheel);
/// The answer of `GET /v1/forecast`.
std::string render_forecast(const Forecast& forecast);

}  // namespace detent::json

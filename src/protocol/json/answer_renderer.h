// Answers to bodies. A payload goes out as it came in, byte for byte; answer_parser.h reads back
// what is written here. Cost: one pass of appending, no tree.
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

/// `POST /v1/tasks`, and what moves a task: without its payload and rules, which the client knows.
std::string render_accepted(const TaskSnapshot& view);
/// `POST /v1/tasks/batch`: a result each, in order; what failed is a problem.
std::string render_schedule_results(std::span<const Result<TaskSnapshot>> results);

/// `POST /v1/tasks/move`: likewise is render_schedule_results(). `POST /v1/tasks/cancel`:
std::string render_cancel_results(std::span<const Result<TaskId>> results);

/// What became of a task that was cancelled.
std::string render_cancelled(TaskId id);

/// `GET /v1/tasks/{id}`: all of a task, with the rules in force where it has none of its own.
std::string render_task(const TaskSnapshot& view);

/// `GET /v1/tasks`: the same of each; `cursor` is where the list goes on, "" when it is over.
std::string render_task_list(std::span<const TaskSnapshot> tasks, std::string_view cursor);

/// `POST /v1/queues/{queue}/lease`.
std::string render_leased_tasks(std::span<const LeasedTask> tasks);
/// `POST /v1/leases/complete` and its kin: a status each, in order; what failed is a problem.
std::string render_lease_results(std::span<const Result<LeaseOutcome>> results);

/// `GET /v1/stats`.
std::string render_stats(const ServerStats& stats);
/// `GET /v1/wheel`.
std::string render_wheel(const WheelView& wheel);
/// `GET /v1/forecast`.
std::string render_forecast(const Forecast& forecast);

}  // namespace detent::json

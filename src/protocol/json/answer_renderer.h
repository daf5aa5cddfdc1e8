// Answers to bodies. A payload goes out as it came in, byte for byte; answer_parser.h reads back
// what is written here. Cost: one pass of appending, no tree.
#pragma once

#include <span>
#include <string>

#include "base/result.h"
#include "protocol/json/answer.h"
#include "task/forecast.h"
#include "task/request.h"

namespace detent::json {

/// `POST /v1/tasks`, and what moves a task: without its payload and rules, which the client knows.
std::string render_accepted(const TaskSnapshot& view);
/// `POST /v1/tasks/batch`: a result each, in order; what failed is a problem.
std::string render_schedule_results(std::span<const Result<TaskSnapshot>> results);

/// `GET /v1/tasks/{id}`: all of a task, with the rules in force where it has none of its own.
std::string render_task(const TaskSnapshot& view);

/// `POST /v1/queues/{queue}/lease`.
std::string render_leased_tasks(std::span<const LeasedTask> tasks);
/// `POST /v1/leases/complete` and its kin: a status each, in order; what failed is a problem.
std::string render_lease_results(std::span<const Result<LeaseOutcome>> results);

/// `GET /v1/stats`.
std::string render_stats(const ServerStats& stats);
/// `GET /v1/forecast`.
std::string render_forecast(const Forecast& forecast);

}  // namespace detent::json

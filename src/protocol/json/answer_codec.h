// Writes and reads the answers about tasks and leases. The server writes a payload exactly as it
// came in, byte for byte. stats_codec.h has the statistics.
//
// The parse functions are for clients. They skip fields that a newer server adds. If a body cannot
// be an answer of the server, the error is `internal`: the server may or may not have carried out
// the request, and only its answer is unreadable.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "protocol/json/answer.h"
#include "task/request.h"

namespace detent::json {

/// The answer of `POST /v1/tasks` and of the calls that move a task. Leaves out the payload and the
/// rules, which the client knows.
std::string render_accepted(const TaskSnapshot& view);
Result<AcceptedTask> parse_accepted(std::string_view body);

/// The answer of `POST /v1/tasks/batch` and `POST /v1/tasks/move`: one result for each task, in
/// order. A failed task has a problem as its result.
std::string render_schedule_results(std::span<const Result<TaskSnapshot>> results);
Result<std::vector<Result<AcceptedTask>>> parse_schedule_results(std::string_view body);

/// The answer of `POST /v1/tasks/cancel`: one result for each task, in order. A failed task has a
/// problem as its result.
std::string render_cancel_results(std::span<const Result<TaskId>> results);
Result<std::vector<Result<TaskId>>> parse_cancel_results(std::string_view body);
/// The answer for one cancelled task.
std::string render_cancelled(TaskId id);
/// The answer of /readyz. `refuses_tasks` says why new tasks are refused; "": they are not.
std::string render_ready(std::string_view refuses_tasks);

/// The answer of `GET /v1/tasks/{id}`: everything about a task. A rule that the task does not set
/// shows the value in force.
std::string render_task(const TaskSnapshot& view);
/// Of the attempts, reads only the last error.
Result<TaskSnapshot> parse_task(std::string_view body);

/// The answer of `GET /v1/tasks`. Leaves out the history and the worker of each task. `cursor` is
/// the start of the next page; it is "" on the last page.
std::string render_task_list(std::span<const TaskSnapshot> tasks, std::string_view cursor);
Result<TaskListAnswer> parse_task_list(std::string_view body);

/// The answer of `POST /v1/queues/{queue}/lease`.
std::string render_leased_tasks(std::span<const LeasedTask> tasks);
Result<std::vector<LeasedTaskAnswer>> parse_leased_tasks(std::string_view body);

/// The answer of `POST /v1/leases/{complete,fail,extend,release}`: a status for each lease, in
/// order. A lease that failed also has a problem.
std::string render_lease_results(std::span<const Result<LeaseOutcome>> results);
Result<std::vector<Result<LeaseOutcome>>> parse_lease_results(std::string_view body);

}  // namespace detent::json

// Reads the bodies of answers into values, for clients. answer_renderer.h writes these bodies.
//
// Fields that a newer server adds are skipped. If a body cannot be an answer of the server, the
// error is `internal`: the server may or may not have carried out the request, and only its answer
// is unreadable. stats_parser.h reads the statistics.
#pragma once

#include <string_view>
#include <vector>

#include "base/result.h"
#include "protocol/json/answer.h"
#include "task/request.h"

namespace detent::json {

Result<AcceptedTask> parse_accepted(std::string_view body);
Result<std::vector<Result<AcceptedTask>>> parse_schedule_results(std::string_view body);
Result<std::vector<Result<TaskId>>> parse_cancel_results(std::string_view body);
Result<TaskSnapshot> parse_task(std::string_view body);
Result<TaskListAnswer> parse_task_list(std::string_view body);
Result<std::vector<LeasedTaskAnswer>> parse_leased_tasks(std::string_view body);
Result<std::vector<Result<LeaseOutcome>>> parse_lease_results(std::string_view body);

}  // namespace detent::json

// Bodies of answers to values, for clients: the other side of answer_renderer.h.
//
// Fields that a newer server adds are skipped. A body that cannot be what a server answers is
// `internal`: the request has been done, or not, and only what came back is wrong. The statistics
// are read in stats_parser.h.
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

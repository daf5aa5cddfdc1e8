// Reads bodies about queues into values. Requests are read strictly, as in request_parser.h. In
// answers, fields that a newer server adds are skipped, as in answer_parser.h.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "protocol/json/queue_patch.h"
#include "task/task_stats.h"

namespace detent::json {

/// Reads the body of `PATCH /v1/queues/{queue}`. A member that is null resets its setting to the
/// default. Checks that each value fits its type; validate() checks the limits of most settings.
Result<QueuePatch> parse_queue_patch(std::string_view body);
/// Reads the body of a request that takes no parameters. It must be empty or an object without
/// members.
Result<void> parse_nothing(std::string_view body);

/// Read the answers of:
/// - `GET /v1/queues/{queue}` and every call that changes a queue;
/// - `GET /v1/queues`;
/// - purge and redrive.
Result<QueueView> parse_queue(std::string_view body);
Result<std::vector<QueueView>> parse_queues(std::string_view body);
Result<std::uint64_t> parse_count(std::string_view body);

/// Reads the counts of one queue from an object. Skips its other members.
Result<QueueStats> read_queue_stats(std::string_view json);

}  // namespace detent::json

// Bodies about queues to values: requests, read as strictly as those of request_parser.h, and
// answers, read as those of answer_parser.h: fields that a newer server adds are skipped.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "protocol/json/queue_patch.h"
#include "task/task_stats.h"

namespace detent::json {

/// Reads the body of `PATCH /v1/queues/{queue}`. A member that is null is given without a value.
/// What the bounds of a setting are is checked by validate(), but for what would not fit its type.
Result<QueuePatch> parse_queue_patch(std::string_view body);
/// Reads the body of a request that has none: nothing, or an object without members.
Result<void> parse_nothing(std::string_view body);

/// The answers of `GET /v1/queues/{queue}` and of all that change a queue; of `GET /v1/queues`; of
/// purge and redrive.
Result<QueueView> parse_queue(std::string_view body);
Result<std::vector<QueueView>> parse_queues(std::string_view body);
Result<std::uint64_t> parse_count(std::string_view body);

/// The counts in the answer for one queue, wherever it stands; what else is there is skipped.
Result<QueueStats> read_queue_stats(std::string_view json);

}  // namespace detent::json

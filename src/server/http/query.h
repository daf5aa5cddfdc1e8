// Reads the values of query parameters: durations, times, ids. net/message/http_query.h finds the
// parameters.
//
// An error of a reader names the parameter and its limits, as net::read_count() does for counts.
#pragma once

#include <chrono>
#include <optional>

#include "base/result.h"
#include "detent/clock.h"
#include "net/message/http_query.h"
#include "task/largest_queues.h"
#include "task/task.h"

namespace detent::server {

using net::QueryParameter;
using net::read_count;
using net::take_query;
using net::Zero;

/// Returns `other` if the parameter is absent. Errors: invalid_argument.
Result<std::chrono::milliseconds> read_duration(const QueryParameter& parameter,
                                                std::chrono::milliseconds other);
/// Reads a time as RFC 3339 or in whole milliseconds since 1970. Returns no value if it is absent.
Result<std::optional<WallTime>> read_time(const QueryParameter& parameter);
/// The order of queues: "tasks" (the default) or "age". Errors: invalid_argument.
Result<QueueOrder> read_queue_order(const QueryParameter& parameter);
/// If the parameter is absent, returns an id that is before all others and names no task.
Result<TaskId> read_id(const QueryParameter& parameter);

}  // namespace detent::server

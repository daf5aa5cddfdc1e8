// What the parameters of a query say (net/http_query.h finds them): durations, times, ids.
//
// Each reader refuses by name what is out of its bounds, as net::read_count() does for counts.
#pragma once

#include <chrono>
#include <optional>

#include "base/result.h"
#include "detent/clock.h"
#include "net/http_query.h"
#include "task/largest_queues.h"
#include "task/task.h"

namespace detent::server {

using net::QueryParameter;
using net::read_count;
using net::take_query;
using net::Zero;

/// The first gives `other` when the parameter is not given. Errors: invalid_argument.
Result<std::chrono::milliseconds> read_duration(const QueryParameter& parameter,
                                                std::chrono::milliseconds other);
/// A time as RFC 3339 or in whole milliseconds since 1970; nothing when it is not given.
Result<std::optional<WallTime>> read_time(const QueryParameter& parameter);
/// Which queues come first: "tasks" (also when it is not given) or "age". Errors:
/// invalid_argument.
Result<QueueOrder> read_queue_order(const QueryParameter& parameter);
/// Else the id that names no task, which is before all others.
Result<TaskId> read_id(const QueryParameter& parameter);

}  // namespace detent::server

// The query of a request's target ("?bins=60&span=1h"), read as strictly as bodies are: a parameter
// that does not exist, comes twice or is out of its bounds is refused by name.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "base/result.h"
#include "detent/clock.h"
#include "task/task.h"

namespace detent::server {

/// A parameter that a route has.
struct QueryParameter {
  std::string_view name;
  std::optional<std::string> value = {};  // decoded; none: not given
};

/// Finds the parameters in the query of `target` and fills in their values. A query is the rest
/// after '?', NAME=VALUE joined by '&', with percent-escapes. Errors: invalid_argument.
Result<void> take_query(std::string_view target, std::span<QueryParameter* const> parameters);

/// The readers below give `other` when the parameter is not given. Errors: invalid_argument.
Result<std::uint64_t> read_count(const QueryParameter& parameter, std::uint64_t most,
                                 std::uint64_t other);
Result<std::chrono::milliseconds> read_duration(const QueryParameter& parameter,
                                                std::chrono::milliseconds other);
/// A time as RFC 3339 or in whole milliseconds since 1970; nothing when it is not given.
Result<std::optional<WallTime>> read_time(const QueryParameter& parameter);
/// Else the id that names no task, which is before all others.
Result<TaskId> read_id(const QueryParameter& parameter);

}  // namespace detent::server

// Rules that tasks and queues both have, read from a request. See json_fields.h.
#pragma once

#include <cstdint>

#include "base/result.h"
#include "protocol/json/json_fields.h"
#include "task/task.h"

namespace detent::json {

/// {"initial":"1s","max":"1h"}, or with initial_ms and max_ms; each may be left out.
Result<Backoff> read_backoff(const JsonField& field);
/// 1 … kMaxAttempts.
Result<std::uint32_t> read_max_attempts(const JsonField& field);
/// Any of 32 bits; lower is more urgent.
Result<std::uint32_t> read_priority(const JsonField& field);

}  // namespace detent::json

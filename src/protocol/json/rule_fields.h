// Reads the fields that tasks, queues and recurring schedules have in common. See json_fields.h.
#pragma once

#include <array>
#include <cstdint>

#include "base/result.h"
#include "protocol/json/json_fields.h"
#include "task/task.h"

namespace detent::json {

/// Reads {"initial":"1s","max":"1h"}, or the same with initial_ms and max_ms. Both are optional.
Result<Backoff> read_backoff(const JsonField& field);
/// Reads an integer from 1 to kMaxAttempts.
Result<std::uint32_t> read_max_attempts(const JsonField& field);
/// Reads any 32-bit integer. A lower priority is more urgent.
Result<std::uint32_t> read_priority(const JsonField& field);

struct PayloadFields {
  JsonField json{"payload"};
  JsonField base64{"payload_base64"};
};
/// Reads JSON as it was sent, or bytes. Returns the default payload if neither field is given.
/// Errors: both fields are given.
Result<Payload> read_payload(const PayloadFields& fields);

struct TaskRuleFields {
  JsonField priority{"priority"};
  JsonField max_attempts{"max_attempts"};
  DurationFields visibility_timeout{{"visibility_timeout"}, {"visibility_timeout_ms"}};
  JsonField backoff{"backoff"};

  std::array<JsonField*, 5> all() {
    return {&priority, &max_attempts, &visibility_timeout.text, &visibility_timeout.milliseconds,
            &backoff};
  }
};
Result<TaskRules> read_task_rules(const TaskRuleFields& fields);

}  // namespace detent::json

// Writes the members that tasks, queues and recurring schedules have in common. rule_fields.h reads
// them.
#pragma once

#include "protocol/json/json_writer.h"
#include "task/task.h"

namespace detent::json {

/// Writes `payload`, or `payload_base64` if the payload is bytes.
void write_payload(JsonWriter& writer, const Payload& payload);
/// Writes the rules that are set. A default priority is left out.
void write_rules(JsonWriter& writer, const TaskRules& rules);

}  // namespace detent::json

// What tasks, queues and recurring schedules have in common, written as members of an object. What
// is written here rule_fields.h reads back.
#pragma once

#include "protocol/json/json_writer.h"
#include "task/task.h"

namespace detent::json {

/// `payload`, or `payload_base64` for bytes.
void write_payload(JsonWriter& writer, const Payload& payload);
/// Those rules that are given.
void write_rules(JsonWriter& writer, const TaskRules& rules);

}  // namespace detent::json

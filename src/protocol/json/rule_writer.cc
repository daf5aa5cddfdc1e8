#include "protocol/json/rule_writer.h"

namespace detent::json {

void write_payload(JsonWriter& writer, const Payload& payload) {
  if (payload.kind == Payload::Kind::json) {
    writer.name("payload").raw(payload.data);
  } else {
    writer.name("payload_base64").base64(payload.data);
  }
}

void write_rules(JsonWriter& writer, const TaskRules& rules) {
  if (rules.priority != kDefaultPriority) writer.name("priority").number(rules.priority);
  if (rules.max_attempts) writer.name("max_attempts").number(*rules.max_attempts);
  if (rules.visibility_timeout) {
    writer.name("visibility_timeout_ms").number(rules.visibility_timeout->count());
  }
  if (rules.backoff) {
    writer.name("backoff").begin_object();
    writer.name("initial_ms").number(rules.backoff->initial.count());
    writer.name("max_ms").number(rules.backoff->max.count());
    writer.end_object();
  }
}

}  // namespace detent::json

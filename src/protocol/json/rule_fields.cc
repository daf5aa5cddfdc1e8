#include "protocol/json/rule_fields.h"

#include <algorithm>
#include <array>
#include <limits>
#include <string>
#include <string_view>
#include <utility>

#include "base/base64.h"

namespace detent::json {

namespace {

Result<Backoff> read_backoff_members(std::string_view json) {
  DurationFields initial{{"initial"}, {"initial_ms"}};
  DurationFields max{{"max"}, {"max_ms"}};
  const std::array<JsonField*, 4> fields{&initial.text, &initial.milliseconds, &max.text,
                                         &max.milliseconds};
  TRY(take_fields(json, fields, UnknownFields::refuse));
  ASSIGN_OR_RETURN(const auto first, read_duration(initial, kMaxDelay));
  ASSIGN_OR_RETURN(const auto longest, read_duration(max, kMaxDelay));
  Backoff backoff;
  backoff.initial = first.value_or(backoff.initial);
  backoff.max = longest.value_or(std::max(backoff.max, backoff.initial));
  return backoff;
}

}  // namespace

Result<Backoff> read_backoff(const JsonField& field) {
  if (!field.is(JsonKind::object)) {
    return wrong_field(field, R"(an object such as {"initial":"1s","max":"1h"})");
  }
  auto backoff = read_backoff_members(field.text);
  if (!backoff) return inside_field(field, std::move(backoff).error());
  return backoff;
}

Result<std::uint32_t> read_max_attempts(const JsonField& field) {
  ASSIGN_OR_RETURN(const std::uint64_t value, read_integer(field, {.min = 1, .max = kMaxAttempts}));
  return static_cast<std::uint32_t>(value);
}

Result<std::uint32_t> read_priority(const JsonField& field) {
  ASSIGN_OR_RETURN(const std::uint64_t value,
                   read_integer(field, {.max = std::numeric_limits<std::uint32_t>::max()}));
  return static_cast<std::uint32_t>(value);
}

Result<Payload> read_payload(const PayloadFields& fields) {
  const auto& [json, base64] = fields;
  if (json.given() && base64.given()) {
    return Error{ErrorCode::invalid_argument, "give payload or payload_base64, not both",
                 std::string(base64.name)};
  }
  if (json.given()) return Payload{Payload::Kind::json, std::string(json.text)};
  if (!base64.given()) return Payload{};
  ASSIGN_OR_RETURN(const std::string text, read_string(base64));
  auto bytes = decode_base64(text);
  if (!bytes) return wrong_field(base64, "base64 with padding (RFC 4648, section 4)");
  return Payload{Payload::Kind::bytes, *std::move(bytes)};
}

Result<TaskRules> read_task_rules(const TaskRuleFields& fields) {
  TaskRules rules;
  if (fields.priority.given()) {
    ASSIGN_OR_RETURN(rules.priority, read_priority(fields.priority));
  }
  if (fields.max_attempts.given()) {
    ASSIGN_OR_RETURN(rules.max_attempts, read_max_attempts(fields.max_attempts));
  }
  ASSIGN_OR_RETURN(rules.visibility_timeout,
                   read_duration(fields.visibility_timeout, kMaxVisibilityTimeout));
  if (fields.backoff.given()) {
    ASSIGN_OR_RETURN(rules.backoff, read_backoff(fields.backoff));
  }
  return rules;
}

}  // namespace detent::json

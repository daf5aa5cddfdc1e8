// Values by cause of lateness, as an object with a member for each cause.
#pragma once

#include <chrono>
#include <cstdint>
#include <string_view>

#include "base/result.h"
#include "protocol/json/json_fields.h"
#include "protocol/json/json_writer.h"
#include "task/lateness.h"

namespace detent::json {

/// Writes `{"before_start":0,…}`.
void write_by_cause(JsonWriter& writer, const ByCause<std::uint64_t>& counts);
/// In milliseconds.
void write_by_cause(JsonWriter& writer, const LatenessParts& parts);
/// Why an attempt began late, as its member `late_ms`, if it did.
void write_late(JsonWriter& writer, const LatenessParts& late);

/// What write_by_cause() wrote; every cause must be there.
Result<ByCause<std::uint64_t>> read_by_cause(std::string_view json, UnknownFields unknown);
/// What write_late() wrote; none when it was left out.
Result<LatenessParts> read_late(const JsonField& field, UnknownFields unknown);

}  // namespace detent::json

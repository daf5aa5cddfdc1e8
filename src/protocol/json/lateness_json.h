// Writes and reads values by cause of lateness. The JSON object has one member for each cause.
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
/// Writes the parts as whole milliseconds.
void write_by_cause(JsonWriter& writer, const LatenessParts& parts);
/// Writes the member `late_ms`: how late an attempt began, by cause. Writes no member if it was not
/// late.
void write_late(JsonWriter& writer, const LatenessParts& late);

/// Reads the object that write_by_cause() writes. Every cause must be present.
Result<ByCause<std::uint64_t>> read_by_cause(std::string_view json, UnknownFields unknown);
/// Reads the member that write_late() writes. Returns zeros if the member was left out.
Result<LatenessParts> read_late(const JsonField& field, UnknownFields unknown);

}  // namespace detent::json

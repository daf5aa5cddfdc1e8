// Takes the members of a JSON object by name and reads them by type.
//
// This has two steps. take_fields() finds the text of each member, in any order. The read_…()
// functions turn the text of one member into a value, and their errors name the field. Numbers are
// read exactly or refused; they are never rounded, truncated or wrapped.
#pragma once

#include <chrono>
#include <cstdint>
#include <limits>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "detent/clock.h"
#include "protocol/json/json_reader.h"

namespace detent::json {

/// A member that an object may have. A reader takes it by its name.
struct JsonField {
  std::string_view name;
  std::string_view text = {};  // its value as sent; empty if the object does not have it

  bool given() const noexcept { return !text.empty(); }
  bool is(JsonKind kind) const noexcept { return given() && kind_of(text) == kind; }
};

/// What take_fields() does with a member that is not one of the fields. Requests from clients are
/// refused; answers from newer servers may have more members, which are skipped.
enum class UnknownFields : std::uint8_t { refuse, skip };

/// Finds the fields of the JSON object in `json` and sets their `text`, which points into `json`.
/// Cost: linear in the text, plus the number of fields for each member. Errors, all
/// `invalid_argument`: `json` is not valid JSON or not an object; a member is repeated; a member is
/// unknown and `unknown` is refuse.
Result<void> take_fields(std::string_view json, std::span<JsonField* const> fields,
                         UnknownFields unknown);

/// Returns the elements of the JSON array in `json`, as views into `json`. Errors:
/// `invalid_argument` if `json` is not a JSON array, `too_large` if it has more than `most`
/// elements.
Result<std::vector<std::string_view>> take_elements(std::string_view json, std::size_t most);

/// Returns the elements of the array in the member `name` of the JSON object in `json`. Skips all
/// other members. Errors: as for take_elements(), or the member is missing.
Result<std::vector<std::string_view>> take_list(std::string_view json, std::string_view name);

/// The error "<name> must be <allowed>".
Error wrong_field(const JsonField& field, std::string_view allowed);
/// The error "<name> is required".
Error missing_field(const JsonField& field);
/// Changes an error of an inner object: its field becomes "outer.inner".
Error inside_field(const JsonField& outer, Error error);

/// The functions below fail with missing_field() if the field is not given.
Result<std::string> read_string(const JsonField& field);

struct IntegerRange {
  std::uint64_t min = 0;
  std::uint64_t max = std::numeric_limits<std::int64_t>::max();
};
/// Only digits make an integer: 1.0 and 1e3 are refused.
Result<std::uint64_t> read_integer(const JsonField& field, IntegerRange range);

/// Reads a time: RFC 3339 text, or whole milliseconds since 1970.
Result<WallTime> read_time(const JsonField& field);

/// A duration is text ("30s"), or an integer of milliseconds in a separate field.
struct DurationFields {
  JsonField text;          // "delay"
  JsonField milliseconds;  // "delay_ms"

  bool given() const noexcept { return text.given() || milliseconds.given(); }
};
/// Returns nullopt if neither field is given. Errors: both fields are given, or the duration is
/// negative or longer than `longest`.
Result<std::optional<std::chrono::milliseconds>> read_duration(const DurationFields& fields,
                                                               std::chrono::milliseconds longest);

}  // namespace detent::json

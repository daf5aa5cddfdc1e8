// The members of a JSON object, taken by name and then read by type.
//
// Reading goes in two steps: take_fields finds each member's text, whatever the order they come in;
// the read_… functions turn one text into a value and name the field when they can't. Numbers are
// read exactly or refused: never rounded, cut or wrapped.
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

/// A member that an object may have.
struct JsonField {
  std::string_view name;
  std::string_view text = {};  // its value as sent; empty: not given

  bool given() const noexcept { return !text.empty(); }
  bool is(JsonKind kind) const noexcept { return given() && kind_of(text) == kind; }
};

/// What to do with a member that is none of the fields: clients may not send it, servers may.
enum class UnknownFields : std::uint8_t { refuse, skip };

/// Finds the fields of the object that `json` holds and fills in their text, which points into
/// `json`. Cost: linear in the text, times the number of fields for each member.
/// Errors, all `invalid_argument`: not valid JSON; no object; a member twice; one unknown.
Result<void> take_fields(std::string_view json, std::span<JsonField* const> fields,
                         UnknownFields unknown);

/// The elements of the array that `json` holds, as they stand in it.
/// Errors: `invalid_argument` (not valid JSON, no array), `too_large` (more than `most`).
Result<std::vector<std::string_view>> take_elements(std::string_view json, std::size_t most);

/// The elements of the array that the field `name` of the object in `json` holds; other fields are
/// skipped. Errors: as above, or the field is missing.
Result<std::vector<std::string_view>> take_list(std::string_view json, std::string_view name);

/// "<name> must be <allowed>".
Error wrong_field(const JsonField& field, std::string_view allowed);
/// "<name> is required".
Error missing_field(const JsonField& field);
/// An error about a field of an inner object is about "outer.inner".
Error inside_field(const JsonField& outer, Error error);

/// The readers below fail with missing_field when the field is not given.
Result<std::string> read_string(const JsonField& field);

struct IntegerRange {
  std::uint64_t min = 0;
  std::uint64_t max = std::numeric_limits<std::int64_t>::max();
};
/// Only digits make an integer: neither 1.0 nor 1e3 is one.
Result<std::uint64_t> read_integer(const JsonField& field, IntegerRange range);

/// A time as RFC 3339 or in whole milliseconds since 1970.
Result<WallTime> read_time(const JsonField& field);

/// A duration may come as text ("30s") or, in a field of its own, in whole milliseconds.
struct DurationFields {
  JsonField text;          // "delay"
  JsonField milliseconds;  // "delay_ms"

  bool given() const noexcept { return text.given() || milliseconds.given(); }
};
/// Nothing when neither field is given; both are an error. Negative ones and those above `longest`
/// are refused.
Result<std::optional<std::chrono::milliseconds>> read_duration(const DurationFields& fields,
                                                               std::chrono::milliseconds longest);

}  // namespace detent::json

// Takes the members of a JSON object by name and reads them by type.
//
// This has two steps. take_fields() finds the value of each member, in any order. The read_…()
// functions turn one member into a value, and their errors name the field. Numbers are
// read exactly or refused; they are never rounded, truncated or wrapped.
#pragma once

#include <chrono>
#include <cstdint>
#include <limits>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.h"
#include "detent/clock.h"
#include "protocol/json/json_reader.h"

namespace detent::json {

/// A member that an object may have. A reader takes it by its name.
struct JsonField {
  std::string_view name;
  const JsonValue* value = nullptr;  // null if the object does not have it

  bool given() const noexcept { return value != nullptr; }
  bool is(JsonKind kind) const noexcept { return given() && kind_of(value->text) == kind; }
};

/// What take_fields() does with a member that is not one of the fields. Requests from clients are
/// refused; answers from newer servers may have more members, which are skipped.
enum class UnknownFields : std::uint8_t { refuse, skip };

/// The name of a member without quotes and escapes. `storage` holds the name if it had escapes.
std::string_view plain_name(std::string_view quoted, std::string& storage);
/// The errors of take_fields().
Error not_an_object();
Error unknown_field(std::string_view name);
Error repeated_field(std::string_view name);

/// As take_fields(), but `find` returns the JsonField of a name, or null.
template <class Find>
Result<void> take_members(const JsonValue& object, UnknownFields unknown, Find find) {
  if (kind_of(object.text) != JsonKind::object) return not_an_object();
  std::string storage;
  for (const JsonValue& member : object) {
    const std::string_view name = plain_name(member.name, storage);
    JsonField* const field = find(name);
    if (field == nullptr) {
      if (unknown == UnknownFields::skip) continue;
      return unknown_field(name);
    }
    if (field->given()) return repeated_field(name);
    field->value = &member;
  }
  return ok();
}

/// Finds the fields of the object and sets their `value`. Cost: the number of fields for each
/// member. Errors, all `invalid_argument`: the value is not an object; a member is repeated; a
/// member is unknown and `unknown` is refuse.
Result<void> take_fields(const JsonValue& object, std::span<JsonField* const> fields,
                         UnknownFields unknown);
/// The same for a text, which is read into `document`.
Result<void> take_fields(JsonDocument& document, std::string_view json,
                         std::span<JsonField* const> fields, UnknownFields unknown);

/// Returns the number of elements of an array. Errors: `invalid_argument` if the value is not an
/// array, `too_large` if it has more than `most` elements.
Result<std::size_t> count_elements(const JsonValue& array, std::size_t most);

/// Returns the elements of the JSON array in `json`, as views into `json`. Errors: as for
/// JsonDocument::read() and count_elements().
Result<std::vector<std::string_view>> take_elements(std::string_view json, std::size_t most);

/// Returns the array in the member `name` of the JSON object in `json`, which is read into
/// `document`. Skips all other members. Errors: as for take_fields(), the member is missing, or it
/// is not an array.
Result<const JsonValue*> take_list(JsonDocument& document, std::string_view json,
                                   std::string_view name);
/// The texts of the elements of an array.
std::vector<std::string_view> texts_in(const JsonValue& array);

/// Reads the member `cursor` of a list: the start of the next page, or "" on the last page.
Result<std::string> read_cursor(const JsonField& cursor);
/// Turns any error of parsing into `internal`, because the caller cannot fix an answer of the
/// server.
template <class T>
Result<T> as_answer(Result<T> parsed) {
  if (parsed) return parsed;
  Error error = with_context("read the server's answer", std::move(parsed).error());
  error.code = ErrorCode::internal;
  return error;
}

/// The error "<name> must be <allowed>".
Error wrong_field(const JsonField& field, std::string_view allowed);
/// The error "<name> is required".
Error missing_field(const JsonField& field);
/// Changes an error of an inner object: its field becomes "outer.inner".
Error inside_field(const JsonField& outer, Error error);

/// These functions fail with missing_field() if the field is not given, if nothing else is said.
Result<std::string> read_string(const JsonField& field);

/// A missing field is wrong, too.
Result<bool> read_bool(const JsonField& field);

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

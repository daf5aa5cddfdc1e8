#include "protocol/json/json_fields.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <limits>
#include <system_error>
#include <utility>

#include "base/wall_time.h"

namespace detent::json {

namespace {

using std::chrono::milliseconds;

Error invalid(std::string message, std::string_view field) {
  return {ErrorCode::invalid_argument, std::move(message), std::string(field)};
}

/// An error repeats at most this many bytes of a name that the client sent.
constexpr std::size_t kMaxToldNameBytes = 100;

/// Returns the integer, or nullopt if `digits` is not a decimal integer in the range.
std::optional<std::uint64_t> parse_integer(std::string_view digits, IntegerRange range) noexcept {
  std::uint64_t value = 0;
  const char* const end = digits.data() + digits.size();
  const auto [stop, error] = std::from_chars(digits.data(), end, value);
  if (error != std::errc{} || stop != end) return std::nullopt;
  if (value < range.min || value > range.max) return std::nullopt;
  return value;
}

std::string integer_allowed(IntegerRange range) {
  return "an integer from " + std::to_string(range.min) + " to " + std::to_string(range.max);
}

/// Adds the field to an error of a parser that does not know the field.
Error about(const JsonField& field, Error error) {
  error.field = field.name;
  return with_context(field.name, std::move(error));
}

}  // namespace

std::string_view plain_name(std::string_view quoted, std::string& storage) {
  if (quoted.find('\\') == std::string_view::npos) return quoted.substr(1, quoted.size() - 2);
  storage = unescape(quoted);
  return storage;
}

Error not_an_object() { return invalid("expected a JSON object", ""); }

Error unknown_field(std::string_view name) {
  return invalid("unknown field", name.substr(0, kMaxToldNameBytes));
}

Error repeated_field(std::string_view name) {
  return invalid("the field is given more than once", name);
}

Result<void> take_fields(const JsonValue& object, std::span<JsonField* const> fields,
                         UnknownFields unknown) {
  return take_members(object, unknown, [fields](std::string_view name) {
    const auto found = std::ranges::find(fields, name, &JsonField::name);
    return found == fields.end() ? nullptr : *found;
  });
}

Result<void> take_fields(JsonDocument& document, std::string_view json,
                         std::span<JsonField* const> fields, UnknownFields unknown) {
  ASSIGN_OR_RETURN(const JsonValue* const object, document.read(json));
  return take_fields(*object, fields, unknown);
}

Result<std::size_t> count_elements(const JsonValue& array, std::size_t most) {
  if (kind_of(array.text) != JsonKind::array) return invalid("expected a JSON array", "");
  std::size_t count = 0;
  for ([[maybe_unused]] const JsonValue& element : array) ++count;
  if (count <= most) return count;
  return Error{ErrorCode::too_large, "at most " + std::to_string(most) + " elements are allowed",
               ""};
}

std::vector<std::string_view> texts_in(const JsonValue& array) {
  std::vector<std::string_view> texts;
  for (const JsonValue& element : array) texts.push_back(element.text);
  return texts;
}

Result<std::vector<std::string_view>> take_elements(std::string_view json, std::size_t most) {
  JsonDocument document;
  ASSIGN_OR_RETURN(const JsonValue* const array, document.read(json));
  TRY(count_elements(*array, most));
  return texts_in(*array);
}

Result<const JsonValue*> take_list(JsonDocument& document, std::string_view json,
                                   std::string_view name) {
  JsonField list{name};
  ASSIGN_OR_RETURN(const JsonValue* const object, document.read(json, kAnyNumberOfJsonValues));
  TRY(take_fields(*object, std::array{&list}, UnknownFields::skip));
  if (!list.given()) return missing_field(list);
  TRY(count_elements(*list.value, std::numeric_limits<std::size_t>::max()));
  return list.value;
}

Result<std::string> read_cursor(const JsonField& cursor) {
  return cursor.is(JsonKind::null) ? std::string() : read_string(cursor);
}

Error wrong_field(const JsonField& field, std::string_view allowed) {
  return invalid(std::string(field.name) + " must be " + std::string(allowed), field.name);
}

Error missing_field(const JsonField& field) {
  return invalid(std::string(field.name) + " is required", field.name);
}

Error inside_field(const JsonField& outer, Error error) {
  std::string path(outer.name);
  if (!error.field.empty()) path.append(".").append(error.field);
  error.field = std::move(path);
  return error;
}

Result<std::string> read_string(const JsonField& field) {
  if (!field.given()) return missing_field(field);
  if (!field.is(JsonKind::string)) return wrong_field(field, "a string");
  return unescape(field.value->text);
}

Result<bool> read_bool(const JsonField& field) {
  if (!field.is(JsonKind::boolean)) return wrong_field(field, "true or false");
  return field.value->text == "true";
}

Result<std::uint64_t> read_integer(const JsonField& field, IntegerRange range) {
  if (!field.given()) return missing_field(field);
  const auto value =
      field.is(JsonKind::number) ? parse_integer(field.value->text, range) : std::nullopt;
  if (!value) return wrong_field(field, integer_allowed(range));
  return *value;
}

Result<WallTime> read_time(const JsonField& field) {
  if (!field.given()) return missing_field(field);
  if (field.is(JsonKind::string)) {
    auto time = parse_rfc3339(unescape(field.value->text));
    if (!time) return about(field, std::move(time).error());
    return *time;
  }
  constexpr std::uint64_t kLast = (kWallTimeEnd.time_since_epoch() - milliseconds{1}).count();
  const auto value =
      field.is(JsonKind::number) ? parse_integer(field.value->text, {.max = kLast}) : std::nullopt;
  if (!value) {
    return wrong_field(
        field, "an RFC 3339 time or milliseconds since 1970, " + integer_allowed({.max = kLast}));
  }
  return WallTime{milliseconds{*value}};
}

Result<std::optional<milliseconds>> read_duration(const DurationFields& fields,
                                                  milliseconds longest) {
  using Duration = std::optional<milliseconds>;
  if (fields.text.given() && fields.milliseconds.given()) {
    return invalid("give " + std::string(fields.text.name) + " or " +
                       std::string(fields.milliseconds.name) + ", not both",
                   fields.milliseconds.name);
  }
  if (fields.milliseconds.given()) {
    ASSIGN_OR_RETURN(
        const std::uint64_t count,
        read_integer(fields.milliseconds, {.max = static_cast<std::uint64_t>(longest.count())}));
    return Duration{milliseconds{count}};
  }
  if (!fields.text.given()) return Duration{};
  if (!fields.text.is(JsonKind::string)) {
    return wrong_field(fields.text,
                       "a duration in quotes, such as \"1500ms\", \"30s\" or \"PT1H\"; " +
                           std::string(fields.milliseconds.name) + " takes a number");
  }
  auto duration = parse_duration(unescape(fields.text.value->text));
  if (!duration) return about(fields.text, std::move(duration).error());
  if (*duration > longest) {
    return wrong_field(fields.text, "at most " + std::to_string(longest.count()) + " ms");
  }
  return Duration{*duration};
}

}  // namespace detent::json

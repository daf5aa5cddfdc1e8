// Reads JSON (RFC 8259) from front to back, once, and records its values as ranges of the text.
//
// The server keeps a task's payload byte for byte as it was sent. The reader therefore finds the
// first and the last byte of each value. It never rounds a number and never rewrites a string. It
// has checked the whole text before it returns a value. Where the RFC leaves a choice, the reader
// is strict: UTF-8 must be valid, an escaped surrogate must have its other half, and nesting is
// limited to kMaxJsonDepth. json_fields.h turns objects into requests.
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace detent::json {

/// The largest number of nested arrays and objects, including the outermost.
inline constexpr int kMaxJsonDepth = 100;

enum class JsonKind : std::uint8_t { object, array, string, number, boolean, null };

/// The kind of a checked value.
JsonKind kind_of(std::string_view value) noexcept;

/// Returns a string without its quotes, with all escapes decoded. Requires: `value` is a checked
/// string.
std::string unescape(std::string_view value);

/// A value, followed in memory by the values inside it. Iterating over an object or array visits
/// its members or elements.
struct JsonValue {
  std::string_view name;  // of a member, with its quotes; empty in an array
  std::string_view text;  // the value as it is in the text
  std::size_t count = 1;  // the values inside, and this one

  struct Iterator {
    const JsonValue* value;

    const JsonValue& operator*() const noexcept { return *value; }
    Iterator& operator++() noexcept {
      value += value->count;
      return *this;
    }
    friend bool operator==(const Iterator&, const Iterator&) = default;
  };
  Iterator begin() const noexcept { return {this + 1}; }
  Iterator end() const noexcept { return {this + count}; }
};

/// The largest number of values of a request. A batch of kMaxBatchTasks tasks has fewer.
inline constexpr std::size_t kMaxJsonValues = 1'000'000;
/// For the answers of servers: a list of queues has no other limit than its bytes.
inline constexpr std::size_t kAnyNumberOfJsonValues = std::numeric_limits<std::size_t>::max();

/// The values of one JSON text. The values inside a member "payload" are checked, but they are not
/// recorded, because payloads are kept as they are.
class JsonDocument {
 public:
  /// Returns the outermost value. It is valid until the next call. `text` must outlive it. Errors:
  /// `invalid_argument` with the position in bytes, counted from 0, also above `most` values.
  Result<const JsonValue*> read(std::string_view text, std::size_t most = kMaxJsonValues);

 private:
  std::vector<JsonValue> values_;
};

/// Returns the one value in `text`, without the white space around it. Allocates no memory. Errors:
/// as for JsonDocument::read().
Result<std::string_view> read_json(std::string_view text);

}  // namespace detent::json

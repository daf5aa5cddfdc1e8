// Writes JSON by appending to a string: no tree, no copy of what is appended as it stands.
#pragma once

#include <concepts>
#include <cstdint>
#include <string>
#include <string_view>

namespace detent::json {

/// Appends `text` in quotes. Any bytes make a valid JSON string: what must be escaped is, and each
/// byte that is no UTF-8 becomes U+FFFD.
void append_json_string(std::string& out, std::string_view text);

/// Puts commas and colons where they belong; begin and end must pair up, which it does not check.
/// Thread-compatible. `out` must outlive the writer.
class JsonWriter {
 public:
  explicit JsonWriter(std::string& out) noexcept : out_(out) {}

  JsonWriter& begin_object() { return open('{'); }
  JsonWriter& end_object() { return close('}'); }
  JsonWriter& begin_array() { return open('['); }
  JsonWriter& end_array() { return close(']'); }
  /// The name of the member whose value comes next. Requires: nothing in it needs an escape.
  JsonWriter& name(std::string_view name);

  JsonWriter& string(std::string_view text);
  /// Null when there is no text.
  JsonWriter& string_or_null(std::string_view text) { return text.empty() ? null() : string(text); }
  template <std::integral Number>
  requires(!std::same_as<Number, bool>) JsonWriter& number(Number value) {
    if constexpr (std::signed_integral<Number>) {
      return signed_number(value);
    } else {
      return unsigned_number(value);
    }
  }
  JsonWriter& null();
  /// A value that is JSON already.
  JsonWriter& raw(std::string_view json);
  /// Bytes, as base64 in a string.
  JsonWriter& base64(std::string_view bytes);

 private:
  JsonWriter& open(char bracket);
  JsonWriter& close(char bracket);
  JsonWriter& signed_number(std::int64_t value);
  JsonWriter& unsigned_number(std::uint64_t value);
  void begin_value();

  std::string& out_;
  bool needs_comma_ = false;
};

}  // namespace detent::json

// Writes JSON by appending to a string. Builds no tree, and copies each value only once.
#pragma once

#include <concepts>
#include <cstdint>
#include <string>
#include <string_view>

namespace detent::json {

/// Appends `text` in quotes, with escapes where JSON needs them. The result is a valid JSON string
/// for any bytes: each byte that is not valid UTF-8 becomes U+FFFD.
void append_json_string(std::string& out, std::string_view text);

/// Appends JSON to `out` and adds the commas and colons. The caller must pair each begin with its
/// end; the writer does not check this. Thread-compatible. `out` must outlive the writer.
class JsonWriter {
 public:
  explicit JsonWriter(std::string& out) noexcept : out_(out) {}

  JsonWriter& begin_object() { return open('{'); }
  JsonWriter& end_object() { return close('}'); }
  JsonWriter& begin_array() { return open('['); }
  JsonWriter& end_array() { return close(']'); }
  /// Writes a member's name. The next call writes its value. Requires: `name` needs no escape.
  JsonWriter& name(std::string_view name);

  JsonWriter& string(std::string_view text);
  /// Writes null if `text` is empty.
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
  /// Writes a text that is already JSON.
  JsonWriter& raw(std::string_view json);
  /// Writes bytes as a string of base64.
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

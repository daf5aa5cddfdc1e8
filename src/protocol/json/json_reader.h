// Reads JSON (RFC 8259) from front to back and returns values as ranges of the text.
//
// The server keeps a task's payload byte for byte as it was sent. The reader therefore only finds
// the first and the last byte of each value and builds no tree. It never rounds a number, never
// rewrites a string, and allocates no memory. It has checked every value that it returns
// completely. Where the RFC leaves a choice, the reader is strict: UTF-8 must be valid, an escaped
// surrogate must have its other half, and nesting is limited to kMaxJsonDepth. json_fields.h turns
// objects into requests.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/result.h"

namespace detent::json {

/// The largest number of nested arrays and objects, including the outermost.
inline constexpr int kMaxJsonDepth = 100;

enum class JsonKind : std::uint8_t { object, array, string, number, boolean, null };

/// The kind of a value that JsonReader returned. Requires: `value` is such a value.
JsonKind kind_of(std::string_view value) noexcept;

/// Returns a string value without its quotes, with all escapes decoded. Requires: `value` is a
/// string that JsonReader returned.
std::string unescape(std::string_view value);

/// One name and value of an object, both as in the text. `name` still has its quotes.
struct JsonMember {
  std::string_view name;
  std::string_view value;
};

/// Reads one JSON text and visits the outermost object or array, member by member:
///
///     JsonReader reader(text);
///     if (reader.enter_array()) {
///       while (auto element = reader.next_element()) use(*element);
///     }
///     TRY(reader.finish());
///
/// After the first error, the reader returns no more values, and finish() returns that error.
/// Thread-compatible. `text` must outlive the reader and all values that it returns.
class JsonReader {
 public:
  explicit JsonReader(std::string_view text) noexcept : text_(text) {}

  /// Reads the next value and all that it contains.
  std::optional<std::string_view> value();

  /// Enters the next value if it is an object or an array. Returns false if it is another value.
  bool enter_object();
  bool enter_array();
  /// Returns the next member or element. After the last one, returns nullopt and leaves the object
  /// or array.
  std::optional<JsonMember> next_member();
  std::optional<std::string_view> next_element();

  /// Returns an error if the text was not well formed or if a value is left to read. Errors:
  /// `invalid_argument` with the position in bytes, counted from 0.
  Result<void> finish();

 private:
  char current() const noexcept { return position_ < text_.size() ? text_[position_] : '\0'; }
  void skip_white_space() noexcept;
  bool accept(char c) noexcept;
  bool fail(const char* reason) noexcept;
  bool enter(char open) noexcept;
  bool at_next(char close) noexcept;
  bool scan_value(int depth) noexcept;
  bool scan_object(int depth) noexcept;
  bool scan_array(int depth) noexcept;
  bool scan_name() noexcept;
  bool scan_string() noexcept;
  bool scan_escape() noexcept;
  std::optional<std::uint32_t> scan_hex4() noexcept;
  bool scan_number() noexcept;
  bool scan_digits() noexcept;
  bool scan_word(std::string_view word) noexcept;
  std::string_view since(std::size_t start) const noexcept;

  std::string_view text_;
  std::size_t position_ = 0;
  const char* failure_ = nullptr;  // a literal; set once; position_ then stays at the error
  bool first_ = false;             // true after enter_…() until the first member or element
  int depth_ = 0;                  // 1 inside the object or array that enter_…() entered
};

/// Returns the one value in `text`, without the white space around it.
Result<std::string_view> read_json(std::string_view text);

}  // namespace detent::json

// Reads JSON (RFC 8259) front to back and hands out values as ranges of the text itself.
//
// A task's payload is kept byte for byte as it was sent, so what is needed of a body is where each
// value begins and ends, not a tree of what it means: numbers are never rounded, strings never
// rewritten, nothing is allocated. Every value handed out has been checked whole. Stricter than the
// RFC in what it leaves open: UTF-8 must be valid, an escaped surrogate must have its partner, and
// nesting ends at kMaxJsonDepth. How objects become requests: json_fields.h.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/result.h"

namespace detent::json {

/// Arrays and objects inside each other, the outermost counted.
inline constexpr int kMaxJsonDepth = 100;

enum class JsonKind : std::uint8_t { object, array, string, number, boolean, null };

/// The kind of a value as JsonReader hands it out. Requires: `value` is one.
JsonKind kind_of(std::string_view value) noexcept;

/// What a string value says, its quotes and escapes undone. Requires: `value` was handed out by
/// JsonReader and is a string.
std::string unescape(std::string_view value);

/// One name and value of an object, both as in the text; `name` is a string value, in quotes.
struct JsonMember {
  std::string_view name;
  std::string_view value;
};

/// Reads one text, whose outermost value is taken apart one level deep:
///
///     JsonReader reader(text);
///     if (reader.enter_array()) {
///       while (auto element = reader.next_element()) use(*element);
///     }
///     TRY(reader.finish());
///
/// Once something is wrong nothing more comes out, and finish() tells what it was.
/// Thread-compatible. `text` must outlive the reader and all it hands out.
class JsonReader {
 public:
  explicit JsonReader(std::string_view text) noexcept : text_(text) {}

  /// Reads the next value whole.
  std::optional<std::string_view> value();

  /// Goes into the object or array ahead; false when something else is ahead.
  bool enter_object();
  bool enter_array();
  /// The next member or element; nothing after the last one, which also leaves the object or array.
  std::optional<JsonMember> next_member();
  std::optional<std::string_view> next_element();

  /// Says whether all was well formed and nothing but white space is left.
  /// Errors: `invalid_argument` with the place, counted in bytes from 0.
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
  const char* failure_ = nullptr;  // a literal; set once, position_ stays where it happened
  bool first_ = false;             // entered, and no member or element read yet
  int depth_ = 0;                  // 1 inside what enter_…() entered
};

/// The one value that `text` holds, white space around it cut off.
Result<std::string_view> read_json(std::string_view text);

}  // namespace detent::json

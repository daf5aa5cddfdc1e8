#include "protocol/json/json_reader.h"

#include "base/utf8.h"
#include "detent/check.h"

namespace detent::json {

namespace {

static_assert(kMaxJsonDepth == 100);  // the text below names the limit
constexpr const char* kTooDeep = "nested deeper than 100 levels";

bool is_digit(char c) noexcept { return c >= '0' && c <= '9'; }
bool is_high_surrogate(std::uint32_t unit) noexcept { return unit >= 0xD800 && unit < 0xDC00; }
bool is_low_surrogate(std::uint32_t unit) noexcept { return unit >= 0xDC00 && unit < 0xE000; }

std::optional<std::uint32_t> hex_digit(char c) noexcept {
  if (is_digit(c)) return static_cast<std::uint32_t>(c - '0');
  if (c >= 'a' && c <= 'f') return static_cast<std::uint32_t>(c - 'a' + 10);
  if (c >= 'A' && c <= 'F') return static_cast<std::uint32_t>(c - 'A' + 10);
  return std::nullopt;
}

/// The number that four hexadecimal digits make. Requires: the digits are already checked.
std::uint32_t hex4(std::string_view digits) noexcept {
  std::uint32_t unit = 0;
  for (const char c : digits.substr(0, 4)) unit = unit << 4 | hex_digit(c).value_or(0);
  return unit;
}

/// The character of a one-letter escape. Requires: the letter is already checked.
char simple_escape(char letter) noexcept {
  switch (letter) {
    case 'b':
      return '\b';
    case 'f':
      return '\f';
    case 'n':
      return '\n';
    case 'r':
      return '\r';
    case 't':
      return '\t';
    default:
      return letter;  // a quote, a slash or a backslash
  }
}

/// Appends the character of the escape at the start of `text`, which begins after the backslash.
/// Returns the number of bytes that the escape has.
std::size_t append_escape(std::string& out, std::string_view text) {
  if (text[0] != 'u') {
    out.push_back(simple_escape(text[0]));
    return 1;
  }
  const std::uint32_t unit = hex4(text.substr(1));
  if (!is_high_surrogate(unit)) {
    append_utf8(out, unit);
    return 5;
  }
  const std::uint32_t low = hex4(text.substr(7));  // "uD83D\uDE00": digits of the second half at 7
  append_utf8(out, 0x10000 + ((unit - 0xD800) << 10) + (low - 0xDC00));
  return 11;
}

}  // namespace

JsonKind kind_of(std::string_view value) noexcept {
  DETENT_CHECK(!value.empty());
  switch (value.front()) {
    case '{':
      return JsonKind::object;
    case '[':
      return JsonKind::array;
    case '"':
      return JsonKind::string;
    case 't':
    case 'f':
      return JsonKind::boolean;
    case 'n':
      return JsonKind::null;
    default:
      return JsonKind::number;
  }
}

std::string unescape(std::string_view value) {
  DETENT_CHECK(kind_of(value) == JsonKind::string);
  std::string_view rest = value.substr(1, value.size() - 2);
  std::string out;
  out.reserve(rest.size());
  while (true) {
    const std::size_t backslash = rest.find('\\');
    out.append(rest.substr(0, backslash));
    if (backslash == std::string_view::npos) return out;
    rest.remove_prefix(backslash + 1);
    rest.remove_prefix(append_escape(out, rest));
  }
}

std::optional<std::string_view> JsonReader::value() {
  if (failure_ != nullptr) return std::nullopt;
  skip_white_space();
  const std::size_t start = position_;
  if (!scan_value(depth_)) return std::nullopt;
  return since(start);
}

bool JsonReader::enter_object() { return enter('{'); }
bool JsonReader::enter_array() { return enter('['); }

std::optional<JsonMember> JsonReader::next_member() {
  if (!at_next('}')) return std::nullopt;
  JsonMember member;
  skip_white_space();
  const std::size_t start = position_;
  if (!scan_name()) return std::nullopt;
  member.name = since(start);
  skip_white_space();
  if (!accept(':')) {
    fail("expected a colon");
    return std::nullopt;
  }
  const auto content = value();
  if (!content) return std::nullopt;
  member.value = *content;
  return member;
}

std::optional<std::string_view> JsonReader::next_element() {
  if (!at_next(']')) return std::nullopt;
  return value();
}

Result<void> JsonReader::finish() {
  skip_white_space();
  if (failure_ == nullptr && depth_ > 0) fail("expected the end of the array or object");
  if (failure_ == nullptr && position_ < text_.size()) fail("expected the end of the text");
  if (failure_ == nullptr) return ok();
  return Error{ErrorCode::invalid_argument,
               "not valid JSON: " + std::string(failure_) + " at byte " + std::to_string(position_),
               ""};
}

void JsonReader::skip_white_space() noexcept {
  if (failure_ != nullptr) return;  // position_ must stay at the error
  while (position_ < text_.size()) {
    const char c = text_[position_];
    if (c != ' ' && c != '\n' && c != '\r' && c != '\t') return;
    ++position_;
  }
}

bool JsonReader::accept(char c) noexcept {
  if (position_ >= text_.size() || text_[position_] != c) return false;
  ++position_;
  return true;
}

bool JsonReader::fail(const char* reason) noexcept {
  if (failure_ == nullptr) failure_ = reason;
  return false;
}

bool JsonReader::enter(char open) noexcept {
  if (failure_ != nullptr || depth_ > 0) return false;
  skip_white_space();
  if (!accept(open)) return false;
  first_ = true;
  depth_ = 1;
  return true;
}

/// Returns true if another member or element must follow. Returns false after an error, or if
/// `close` ends the object or array.
bool JsonReader::at_next(char close) noexcept {
  if (failure_ != nullptr || depth_ == 0) return false;
  skip_white_space();
  const bool first = first_;
  first_ = false;
  if (accept(close)) {
    depth_ = 0;
    return false;
  }
  return first || accept(',') || fail("expected a comma or the end of the array or object");
}

bool JsonReader::scan_value(int depth) noexcept {
  switch (current()) {
    case '{':
      return scan_object(depth + 1);
    case '[':
      return scan_array(depth + 1);
    case '"':
      return scan_string();
    case 't':
      return scan_word("true");
    case 'f':
      return scan_word("false");
    case 'n':
      return scan_word("null");
    default:
      return scan_number();
  }
}

bool JsonReader::scan_object(int depth) noexcept {
  if (depth > kMaxJsonDepth) return fail(kTooDeep);
  ++position_;
  skip_white_space();
  if (accept('}')) return true;
  do {
    skip_white_space();
    if (!scan_name()) return false;
    skip_white_space();
    if (!accept(':')) return fail("expected a colon");
    skip_white_space();
    if (!scan_value(depth)) return false;
    skip_white_space();
  } while (accept(','));
  return accept('}') || fail("expected a comma or the end of the object");
}

bool JsonReader::scan_array(int depth) noexcept {
  if (depth > kMaxJsonDepth) return fail(kTooDeep);
  ++position_;
  skip_white_space();
  if (accept(']')) return true;
  do {
    skip_white_space();
    if (!scan_value(depth)) return false;
    skip_white_space();
  } while (accept(','));
  return accept(']') || fail("expected a comma or the end of the array");
}

bool JsonReader::scan_name() noexcept {
  return current() == '"' ? scan_string() : fail("expected a name in quotes");
}

bool JsonReader::scan_string() noexcept {
  ++position_;  // the opening quote
  while (position_ < text_.size()) {
    const auto byte = static_cast<std::uint8_t>(text_[position_]);
    if (byte == '"') {
      ++position_;
      return true;
    }
    if (byte == '\\') {
      if (!scan_escape()) return false;
    } else if (byte < 0x20) {
      return fail("unescaped control character in a string");
    } else if (byte < 0x80) {
      ++position_;
    } else {
      const std::size_t size = utf8_character_size(text_.substr(position_));
      if (size == 0) return fail("invalid UTF-8");
      position_ += size;
    }
  }
  return fail("unterminated string");
}

bool JsonReader::scan_escape() noexcept {
  ++position_;  // the backslash
  constexpr std::string_view kLetters = "\"\\/bfnrt";
  if (position_ < text_.size() && kLetters.find(text_[position_]) != std::string_view::npos) {
    ++position_;
    return true;
  }
  if (!accept('u')) return fail("unknown escape");
  const auto unit = scan_hex4();
  if (!unit || is_low_surrogate(*unit)) return fail("invalid \\u escape");
  if (!is_high_surrogate(*unit)) return true;
  if (!accept('\\') || !accept('u')) return fail("incomplete surrogate pair");
  const auto low = scan_hex4();
  return (low && is_low_surrogate(*low)) || fail("incomplete surrogate pair");
}

std::optional<std::uint32_t> JsonReader::scan_hex4() noexcept {
  const std::string_view digits = text_.substr(position_, 4);
  if (digits.size() < 4) return std::nullopt;
  for (const char c : digits) {
    if (!hex_digit(c)) return std::nullopt;
  }
  position_ += 4;
  return hex4(digits);
}

bool JsonReader::scan_number() noexcept {
  const bool negative = accept('-');
  if (!is_digit(current())) return fail(negative ? "expected a digit" : "expected a value");
  if (!accept('0')) scan_digits();  // no digit may follow a leading zero
  if (accept('.') && !scan_digits()) return fail("expected a digit");
  if (accept('e') || accept('E')) {
    if (!accept('+')) accept('-');
    if (!scan_digits()) return fail("expected a digit");
  }
  return true;
}

/// Skips digits. Returns false if there are none.
bool JsonReader::scan_digits() noexcept {
  const std::size_t start = position_;
  while (is_digit(current())) ++position_;
  return position_ > start;
}

bool JsonReader::scan_word(std::string_view word) noexcept {
  if (text_.substr(position_, word.size()) != word) return fail("expected a value");
  position_ += word.size();
  return true;
}

std::string_view JsonReader::since(std::size_t start) const noexcept {
  return text_.substr(start, position_ - start);
}

Result<std::string_view> read_json(std::string_view text) {
  JsonReader reader(text);
  const auto value = reader.value();
  TRY(reader.finish());
  return *value;
}

}  // namespace detent::json

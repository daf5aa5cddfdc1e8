#include "protocol/json/json_reader.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <optional>

#include "base/utf8.h"
#include "detent/check.h"

namespace detent::json {

namespace {

static_assert(kMaxJsonDepth == 100 && kMaxJsonValues == 1'000'000);  // errors name these limits
constexpr std::string_view kPayloadName = R"("payload")";
constexpr const char* kTooDeep = "nested deeper than 100 levels";

bool is_digit(char c) noexcept { return c >= '0' && c <= '9'; }
bool is_white_space(char c) noexcept { return c == ' ' || c == '\n' || c == '\r' || c == '\t'; }
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

/// Scans a text. After the first error, position_ stays at the error.
class Scanner {
 public:
  /// Records the values in `values`, unless it is null; at most `most`.
  Scanner(std::string_view text, std::vector<JsonValue>* values, std::size_t most) noexcept
      : text_(text), values_(values), most_(most) {}

  /// Returns the one value of the text.
  Result<std::string_view> scan();

 private:
  char current() const noexcept { return position_ < text_.size() ? text_[position_] : '\0'; }
  void skip_white_space() noexcept;
  bool accept(char c) noexcept;
  bool fail(const char* reason) noexcept;
  bool record_value(std::string_view name, int depth);
  bool scan_value(int depth);
  bool scan_object(int depth);
  bool scan_array(int depth);
  bool scan_string() noexcept;
  void skip_plain_bytes() noexcept;
  bool scan_escape() noexcept;
  std::optional<std::uint32_t> scan_hex4() noexcept;
  bool scan_number() noexcept;
  bool scan_digits() noexcept;
  bool scan_word(std::string_view word) noexcept;
  std::string_view since(std::size_t start) const noexcept;

  std::string_view text_;
  std::vector<JsonValue>* values_;
  std::size_t most_;
  std::size_t position_ = 0;
  const char* failure_ = nullptr;  // a literal
};

Result<std::string_view> Scanner::scan() {
  skip_white_space();
  const std::size_t start = position_;
  if (record_value("", 0)) {
    const std::string_view value = since(start);
    skip_white_space();
    if (position_ == text_.size()) return value;
    fail("expected the end of the text");
  }
  return Error{ErrorCode::invalid_argument,
               "not valid JSON: " + std::string(failure_) + " at byte " + std::to_string(position_),
               ""};
}

void Scanner::skip_white_space() noexcept {
  while (is_white_space(current())) ++position_;
}

bool Scanner::accept(char c) noexcept {
  if (position_ >= text_.size() || text_[position_] != c) return false;
  ++position_;
  return true;
}

bool Scanner::fail(const char* reason) noexcept {
  failure_ = reason;
  return false;
}

/// Scans a value, and records it with the values inside.
bool Scanner::record_value(std::string_view name, int depth) {
  if (values_ == nullptr) return scan_value(depth);
  if (values_->size() == most_) return fail("more than 1000000 values");
  const std::size_t index = values_->size();
  values_->push_back({.name = name, .text = {}});
  const std::size_t start = position_;
  std::vector<JsonValue>* const values = values_;
  if (name == kPayloadName) values_ = nullptr;
  const bool is_scanned = scan_value(depth);
  values_ = values;
  JsonValue& value = (*values_)[index];
  value.text = since(start);
  value.count = values_->size() - index;
  return is_scanned;
}

bool Scanner::scan_value(int depth) {
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

bool Scanner::scan_object(int depth) {
  if (depth > kMaxJsonDepth) return fail(kTooDeep);
  ++position_;
  skip_white_space();
  if (accept('}')) return true;
  do {
    skip_white_space();
    if (current() != '"') return fail("expected a name in quotes");
    const std::size_t start = position_;
    if (!scan_string()) return false;
    const std::string_view name = since(start);
    skip_white_space();
    if (!accept(':')) return fail("expected a colon");
    skip_white_space();
    if (!record_value(name, depth)) return false;
    skip_white_space();
  } while (accept(','));
  return accept('}') || fail("expected a comma or the end of the object");
}

bool Scanner::scan_array(int depth) {
  if (depth > kMaxJsonDepth) return fail(kTooDeep);
  ++position_;
  skip_white_space();
  if (accept(']')) return true;
  do {
    skip_white_space();
    if (!record_value("", depth)) return false;
    skip_white_space();
  } while (accept(','));
  return accept(']') || fail("expected a comma or the end of the array");
}

bool Scanner::scan_string() noexcept {
  ++position_;  // the opening quote
  while (true) {
    skip_plain_bytes();
    if (position_ == text_.size()) return fail("unterminated string");
    const auto byte = static_cast<std::uint8_t>(text_[position_]);
    if (byte == '"') {
      ++position_;
      return true;
    }
    if (byte == '\\') {
      if (!scan_escape()) return false;
    } else if (byte < 0x20) {
      return fail("unescaped control character in a string");
    } else {
      const std::size_t size = utf8_character_size(text_.substr(position_));
      if (size == 0) return fail("invalid UTF-8");
      position_ += size;
    }
  }
}

/// Skips ASCII characters, eight at a time, up to a control character, a quote or a backslash. May
/// stop earlier: near the end of the text, and on processors that are not little-endian.
void Scanner::skip_plain_bytes() noexcept {
  constexpr std::uint64_t kEach = 0x0101010101010101;
  std::uint64_t bytes = 0;
  for (; text_.size() - position_ >= sizeof bytes; position_ += sizeof bytes) {
    std::memcpy(&bytes, text_.data() + position_, sizeof bytes);
    // A byte that is smaller than the subtrahend gets its highest bit, and the next bytes may get
    // it, too. So only the first byte with this bit counts.
    const std::uint64_t control = bytes - kEach * 0x20;
    const std::uint64_t quote = (bytes ^ kEach * '"') - kEach;
    const std::uint64_t backslash = (bytes ^ kEach * '\\') - kEach;
    const std::uint64_t stops = (bytes | control | quote | backslash) & kEach * 0x80;
    if (stops == 0) continue;
    if constexpr (std::endian::native == std::endian::little) {
      position_ += static_cast<std::size_t>(std::countr_zero(stops)) / 8;
    }
    return;
  }
}

bool Scanner::scan_escape() noexcept {
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

std::optional<std::uint32_t> Scanner::scan_hex4() noexcept {
  const std::string_view digits = text_.substr(position_, 4);
  if (digits.size() < 4) return std::nullopt;
  for (const char c : digits) {
    if (!hex_digit(c)) return std::nullopt;
  }
  position_ += 4;
  return hex4(digits);
}

bool Scanner::scan_number() noexcept {
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
bool Scanner::scan_digits() noexcept {
  const std::size_t start = position_;
  while (is_digit(current())) ++position_;
  return position_ > start;
}

bool Scanner::scan_word(std::string_view word) noexcept {
  if (text_.substr(position_, word.size()) != word) return fail("expected a value");
  position_ += word.size();
  return true;
}

std::string_view Scanner::since(std::size_t start) const noexcept {
  return text_.substr(start, position_ - start);
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
  for (std::size_t backslash = rest.find('\\'); backslash != std::string_view::npos;
       backslash = rest.find('\\')) {
    out.append(rest.substr(0, backslash));
    rest.remove_prefix(backslash + 1);
    rest.remove_prefix(append_escape(out, rest));
  }
  out.append(rest);
  return out;
}

Result<const JsonValue*> JsonDocument::read(std::string_view text, std::size_t most) {
  // Enough for most texts, so that they allocate memory once.
  constexpr std::size_t kMostReserved = 1'000;
  constexpr std::size_t kBytesOfValue = 12;
  values_.clear();
  values_.reserve(std::min(kMostReserved, text.size() / kBytesOfValue + 1));
  TRY(Scanner(text, &values_, most).scan());
  return values_.data();
}

Result<std::string_view> read_json(std::string_view text) {
  return Scanner(text, nullptr, 0).scan();
}

}  // namespace detent::json

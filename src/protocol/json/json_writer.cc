#include "protocol/json/json_writer.h"

#include <array>
#include <charconv>
#include <cstddef>

#include "base/base64.h"
#include "base/utf8.h"

namespace detent::json {

namespace {

constexpr std::string_view kReplacement = "\xEF\xBF\xBD";  // U+FFFD

/// True for an ASCII character that needs no escape in a JSON string.
bool is_plain(std::uint8_t byte) noexcept {
  return byte >= 0x20 && byte < 0x80 && byte != '"' && byte != '\\';
}

void append_ascii_escape(std::string& out, char c) {
  constexpr std::string_view kHex = "0123456789abcdef";
  switch (c) {
    case '"':
      out.append("\\\"");
      return;
    case '\\':
      out.append("\\\\");
      return;
    case '\n':
      out.append("\\n");
      return;
    case '\r':
      out.append("\\r");
      return;
    case '\t':
      out.append("\\t");
      return;
    default:
      out.append("\\u00");
      out.push_back(kHex[static_cast<std::uint8_t>(c) >> 4]);
      out.push_back(kHex[static_cast<std::uint8_t>(c) & 15]);
  }
}

template <class Number>
void append_decimal(std::string& out, Number value) {
  std::array<char, 20> digits{};  // 2^64 - 1 has 20 digits; -2^63 has a sign and 19 digits
  char* const end = std::to_chars(digits.data(), digits.data() + digits.size(), value).ptr;
  out.append(digits.data(), end);
}

}  // namespace

void append_json_string(std::string& out, std::string_view text) {
  out.push_back('"');
  while (!text.empty()) {
    std::size_t plain = 0;
    while (plain < text.size() && is_plain(static_cast<std::uint8_t>(text[plain]))) ++plain;
    out.append(text.substr(0, plain));
    text.remove_prefix(plain);
    if (text.empty()) break;
    const std::size_t size = utf8_character_size(text);
    if (size > 1) {
      out.append(text.substr(0, size));
    } else if (size == 1) {
      append_ascii_escape(out, text.front());
    } else {
      out.append(kReplacement);
    }
    text.remove_prefix(size == 0 ? 1 : size);
  }
  out.push_back('"');
}

JsonWriter& JsonWriter::name(std::string_view name) {
  begin_value();
  out_.push_back('"');
  out_.append(name);
  out_.append("\":");
  needs_comma_ = false;
  return *this;
}

JsonWriter& JsonWriter::string(std::string_view text) {
  begin_value();
  append_json_string(out_, text);
  return *this;
}

JsonWriter& JsonWriter::null() { return raw("null"); }

JsonWriter& JsonWriter::raw(std::string_view json) {
  begin_value();
  out_.append(json);
  return *this;
}

JsonWriter& JsonWriter::base64(std::string_view bytes) {
  begin_value();
  out_.push_back('"');
  append_base64(out_, bytes);
  out_.push_back('"');
  return *this;
}

JsonWriter& JsonWriter::open(char bracket) {
  begin_value();
  out_.push_back(bracket);
  needs_comma_ = false;
  return *this;
}

JsonWriter& JsonWriter::close(char bracket) {
  out_.push_back(bracket);
  needs_comma_ = true;
  return *this;
}

JsonWriter& JsonWriter::signed_number(std::int64_t value) {
  begin_value();
  append_decimal(out_, value);
  return *this;
}

JsonWriter& JsonWriter::unsigned_number(std::uint64_t value) {
  begin_value();
  append_decimal(out_, value);
  return *this;
}

void JsonWriter::begin_value() {
  if (needs_comma_) out_.push_back(',');
  needs_comma_ = true;
}

}  // namespace detent::json

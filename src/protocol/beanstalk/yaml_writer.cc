#include "protocol/beanstalk/yaml_writer.h"

#include <algorithm>
#include <array>

namespace detent::beanstalk {
namespace {

bool is_letter(char c) noexcept { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); }
bool is_digit(char c) noexcept { return c >= '0' && c <= '9'; }

/// Words, in lower case, that a YAML 1.1 or 1.2 reader takes for a boolean or a null.
constexpr std::array<std::string_view, 9> kWords{"true", "false", "yes", "no", "on",
                                                 "off",  "null",  "y",   "n"};

bool is_word_of_yaml(std::string_view value) {
  std::string small(value);
  std::ranges::transform(small, small.begin(),
                         [](char c) { return c >= 'A' && c <= 'Z' ? char(c - 'A' + 'a') : c; });
  return std::ranges::find(kWords, small) != kWords.end();
}

constexpr std::string_view kPlainSigns = "-_+/;.$()";

/// True if `value` needs no quotes. A text that does not begin with a letter or "_" may be a
/// number, a date or YAML syntax, so it is quoted.
bool can_be_plain(std::string_view value) {
  if (value.empty() || !(is_letter(value.front()) || value.front() == '_')) return false;
  return std::ranges::all_of(value,
                             [](char c) {
                               return is_letter(c) || is_digit(c) ||
                                      kPlainSigns.find(c) != std::string_view::npos;
                             }) &&
         !is_word_of_yaml(value);
}

void append_quoted(std::string& out, std::string_view value) {
  constexpr std::string_view kHex = "0123456789abcdef";
  out.push_back('"');
  for (const char c : value) {
    const auto byte = static_cast<unsigned char>(c);
    if (c == '"' || c == '\\') {
      out.push_back('\\');
      out.push_back(c);
    } else if (byte < 0x20 || byte == 0x7F) {
      out.append("\\x");
      out.push_back(kHex[byte >> 4u]);
      out.push_back(kHex[byte & 15u]);
    } else {
      out.push_back(c);
    }
  }
  out.push_back('"');
}

}  // namespace

void YamlWriter::scalar(std::string_view value) {
  if (can_be_plain(value)) {
    text_.append(value);
  } else {
    append_quoted(text_, value);
  }
  text_.push_back('\n');
}

void YamlWriter::item(std::string_view value) {
  text_.append("- ");
  scalar(value);
}

void YamlWriter::field(std::string_view key, std::string_view value) {
  text_.append(key).append(": ");
  scalar(value);
}

void YamlWriter::plain_field(std::string_view key, std::string_view value) {
  text_.append(key).append(": ").append(value).push_back('\n');
}

}  // namespace detent::beanstalk

// UTF-8 as in RFC 3629: overlong forms, surrogates and values above U+10FFFF are invalid.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "detent/check.h"

namespace detent {

/// The size in bytes of the first character of `text`, or 0 if `text` does not begin with a valid
/// character.
constexpr std::size_t utf8_character_size(std::string_view text) noexcept {
  // The first byte decides the size of the character and the range of the second byte. The range
  // excludes overlong forms, surrogates and values above U+10FFFF (RFC 3629, section 4).
  if (text.empty()) return 0;
  const auto byte = [text](std::size_t i) { return static_cast<std::uint8_t>(text[i]); };
  const std::uint8_t first = byte(0);
  if (first < 0x80) return 1;
  if (first < 0xC2 || first > 0xF4) return 0;
  const std::size_t size = first < 0xE0 ? 2 : first < 0xF0 ? 3 : 4;
  const unsigned second_min = first == 0xE0 ? 0xA0 : first == 0xF0 ? 0x90 : 0x80;
  const unsigned second_max = first == 0xED ? 0x9F : first == 0xF4 ? 0x8F : 0xBF;
  if (text.size() < size || byte(1) < second_min || byte(1) > second_max) return 0;
  for (std::size_t i = 2; i < size; ++i) {
    if ((byte(i) & 0xC0) != 0x80) return 0;
  }
  return size;
}

/// Appends one character. Requires: `code_point` is below 0x110000 and is not a surrogate.
inline void append_utf8(std::string& out, std::uint32_t code_point) {
  DETENT_CHECK(code_point < 0x110000);
  DETENT_CHECK(code_point < 0xD800 || code_point > 0xDFFF);
  const auto byte = [&out](std::uint32_t value) { out.push_back(static_cast<char>(value)); };
  const auto continuation = [&](int shift) { byte(0x80 | ((code_point >> shift) & 0x3F)); };
  if (code_point < 0x80) {
    byte(code_point);
  } else if (code_point < 0x800) {
    byte(0xC0 | (code_point >> 6));
    continuation(0);
  } else if (code_point < 0x10000) {
    byte(0xE0 | (code_point >> 12));
    continuation(6);
    continuation(0);
  } else {
    byte(0xF0 | (code_point >> 18));
    continuation(12);
    continuation(6);
    continuation(0);
  }
}

}  // namespace detent

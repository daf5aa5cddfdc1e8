#include "protocol/json/utf8.h"

#include "detent/check.h"

namespace detent::json {

namespace {

/// What may follow a first byte: how many bytes in all, and the range of the second one. The range
/// is where overlong forms, surrogates and too large values show (RFC 3629, section 4).
struct Sequence {
  std::size_t size = 0;
  std::uint8_t second_min = 0x80;
  std::uint8_t second_max = 0xBF;
};

Sequence sequence_of(std::uint8_t first) noexcept {
  if (first < 0x80) return {.size = 1};
  if (first < 0xC2) return {};
  if (first < 0xE0) return {.size = 2};
  if (first == 0xE0) return {.size = 3, .second_min = 0xA0};
  if (first == 0xED) return {.size = 3, .second_max = 0x9F};
  if (first < 0xF0) return {.size = 3};
  if (first == 0xF0) return {.size = 4, .second_min = 0x90};
  if (first < 0xF4) return {.size = 4};
  if (first == 0xF4) return {.size = 4, .second_max = 0x8F};
  return {};
}

}  // namespace

std::size_t utf8_character_size(std::string_view text) noexcept {
  if (text.empty()) return 0;
  const Sequence sequence = sequence_of(static_cast<std::uint8_t>(text[0]));
  if (sequence.size <= 1) return sequence.size;
  if (text.size() < sequence.size) return 0;
  const auto second = static_cast<std::uint8_t>(text[1]);
  if (second < sequence.second_min || second > sequence.second_max) return 0;
  for (const char c : text.substr(2, sequence.size - 2)) {
    if ((static_cast<std::uint8_t>(c) & 0xC0) != 0x80) return 0;
  }
  return sequence.size;
}

void append_utf8(std::string& out, std::uint32_t code_point) {
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

}  // namespace detent::json

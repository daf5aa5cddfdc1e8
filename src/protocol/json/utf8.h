// UTF-8 as RFC 3629 allows it: no overlong forms, no surrogates, nothing above U+10FFFF.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace detent::json {

/// The size in bytes of the character `text` begins with, or 0 when it begins with none.
std::size_t utf8_character_size(std::string_view text) noexcept;

/// Appends one character. Requires: `code_point` is below 0x110000 and no surrogate.
void append_utf8(std::string& out, std::uint32_t code_point);

}  // namespace detent::json

// Base64 with the alphabet of RFC 4648, section 4: padded, no line breaks.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace detent {

void append_base64(std::string& out, std::string_view bytes);

/// Strict, so that each byte string has exactly one text: only bytes of the alphabet, correct
/// padding, unused bits zero. Empty if the text is invalid.
std::optional<std::string> decode_base64(std::string_view text);

}  // namespace detent

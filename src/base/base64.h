// Base64 with the alphabet of RFC 4648, section 4: padded, no line breaks.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace detent {

void append_base64(std::string& out, std::string_view bytes);

/// Strict, so that each byte string has exactly one text: nothing outside the alphabet, padding
/// where it belongs, unused bits zero. Returns nothing when the text is not so.
std::optional<std::string> decode_base64(std::string_view text);

}  // namespace detent

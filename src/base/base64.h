// Base64 with the alphabet of RFC 4648, section 4, with padding and without line breaks.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace detent {

void append_base64(std::string& out, std::string_view bytes);

/// Decodes `text`. Strict, so that each byte string has exactly one valid text: it must have only
/// characters of the alphabet, correct padding, and zeros in the unused bits. Returns nullopt if
/// the text is invalid.
std::optional<std::string> decode_base64(std::string_view text);

}  // namespace detent

// Access tokens: how to make a token, and the hash by which a server recognizes it.
//
// A token has 256 random bits. It cannot be guessed, so it needs no slow hash: SHA-256 is enough to
// make a stolen token file useless. Hashes are compared in constant time.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace detent::server {

using TokenHash = std::array<std::uint8_t, 32>;

/// Returns "dt_" and 43 characters of base64url, from 256 bits of the system's random numbers.
std::string make_token();

TokenHash hash_token(std::string_view token);
/// Compares in constant time.
bool is_equal(const TokenHash& a, const TokenHash& b) noexcept;

/// Converts bytes to hexadecimal text, two digits per byte, and back. from_hex() returns no value
/// for any other text.
std::string to_hex(std::string_view bytes);
std::optional<std::string> parse_hex(std::string_view hex);
/// Converts a hash to 64 hexadecimal digits and back. The reverse returns no value for any other
/// text.
std::string to_hex(const TokenHash& hash);
std::optional<TokenHash> parse_token_hash(std::string_view hex);

}  // namespace detent::server

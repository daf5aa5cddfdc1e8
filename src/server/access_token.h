// Access tokens: how one is made, and the hash by which a server knows it.
//
// A token has 256 random bits, so it cannot be guessed and needs no slow hash: SHA-256 is enough to
// keep the file of tokens from being worth stealing. Hashes are compared in constant time.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace detent::server {

using TokenHash = std::array<std::uint8_t, 32>;

/// "dt_" and 43 characters of base64url: 256 bits of the system's random numbers.
std::string make_token();

TokenHash hash_token(std::string_view token);
/// Takes equally long whatever differs.
bool is_equal(const TokenHash& a, const TokenHash& b) noexcept;

/// Two hexadecimal digits a byte, and back; nothing for another text.
std::string to_hex(std::string_view bytes);
std::optional<std::string> parse_hex(std::string_view hex);
/// 64 hexadecimal digits, and back; nothing for another text.
std::string to_hex(const TokenHash& hash);
std::optional<TokenHash> parse_token_hash(std::string_view hex);

}  // namespace detent::server

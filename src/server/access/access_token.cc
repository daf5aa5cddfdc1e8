#include "server/access/access_token.h"

#include <openssl/crypto.h>
#include <openssl/rand.h>
#include <openssl/sha.h>

#include <algorithm>
#include <string>

#include "base/base64.h"
#include "detent/check.h"

namespace detent::server {
namespace {

constexpr std::string_view kHex = "0123456789abcdef";

/// Base64 with the alphabet of RFC 4648, section 5, without padding.
std::string base64url(const TokenHash& bytes) {
  std::string text;
  append_base64(text, {reinterpret_cast<const char*>(bytes.data()), bytes.size()});
  std::erase(text, '=');
  std::replace(text.begin(), text.end(), '+', '-');
  std::replace(text.begin(), text.end(), '/', '_');
  return text;
}

std::optional<unsigned> hex_digit(char c) noexcept {
  if (c >= '0' && c <= '9') return static_cast<unsigned>(c - '0');
  if (c >= 'a' && c <= 'f') return static_cast<unsigned>(c - 'a' + 10);
  if (c >= 'A' && c <= 'F') return static_cast<unsigned>(c - 'A' + 10);
  return std::nullopt;
}

}  // namespace

std::string make_token() {
  TokenHash secret{};
  DETENT_CHECK(RAND_bytes(secret.data(), static_cast<int>(secret.size())) == 1);
  std::string token = "dt_" + base64url(secret);
  OPENSSL_cleanse(secret.data(), secret.size());
  return token;
}

TokenHash hash_token(std::string_view token) {
  TokenHash hash{};
  SHA256(reinterpret_cast<const unsigned char*>(token.data()), token.size(), hash.data());
  return hash;
}

bool is_equal(const TokenHash& a, const TokenHash& b) noexcept {
  return CRYPTO_memcmp(a.data(), b.data(), a.size()) == 0;
}

std::string to_hex(std::string_view bytes) {
  std::string hex;
  for (const char c : bytes) {
    const auto byte = static_cast<std::uint8_t>(c);
    hex.push_back(kHex[byte >> 4]);
    hex.push_back(kHex[byte & 15u]);
  }
  return hex;
}

std::optional<std::string> parse_hex(std::string_view hex) {
  if (hex.size() % 2 != 0) return std::nullopt;
  std::string bytes;
  for (std::size_t i = 0; i < hex.size(); i += 2) {
    const auto high = hex_digit(hex[i]);
    const auto low = hex_digit(hex[i + 1]);
    if (!high || !low) return std::nullopt;
    bytes.push_back(static_cast<char>(*high << 4 | *low));
  }
  return bytes;
}

std::string to_hex(const TokenHash& hash) {
  return to_hex(std::string_view(reinterpret_cast<const char*>(hash.data()), hash.size()));
}

std::optional<TokenHash> parse_token_hash(std::string_view hex) {
  TokenHash hash{};
  const std::optional<std::string> bytes = parse_hex(hex);
  if (!bytes || bytes->size() != hash.size()) return std::nullopt;
  std::copy(bytes->begin(), bytes->end(), hash.begin());
  return hash;
}

}  // namespace detent::server

#include "server/http/list_cursor.h"

#include <openssl/evp.h>
#include <openssl/rand.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <memory>

#include "detent/check.h"
#include "protocol/json/list_cursor.h"
#include "server/access/access_token.h"

namespace detent::server {
namespace {

/// The lanes of a list, by json::ListPart.
constexpr std::array kLanes{Lane::dead, Lane::due, Lane::ended};

constexpr std::size_t kNonceSize = 12;
constexpr std::size_t kTagSize = 16;
constexpr std::size_t kTextSize = 48;  // of a place, padded with spaces
constexpr std::size_t kSealedSize = kNonceSize + kTextSize + kTagSize;

using Cipher = std::unique_ptr<EVP_CIPHER_CTX, decltype(&EVP_CIPHER_CTX_free)>;

unsigned char* bytes_of(std::string& text) { return reinterpret_cast<unsigned char*>(text.data()); }

}  // namespace

std::string render_cursor(const Place& place) {
  const auto part = std::ranges::find(kLanes, place.lane) - kLanes.begin();
  return json::render_cursor({.part = static_cast<json::ListPart>(part),
                              .queue = place.queue,
                              .at = place.at,
                              .id = place.id});
}

std::optional<Place> parse_cursor(std::string_view text) {
  const std::optional<json::ListCursor> cursor = json::parse_cursor(text);
  if (!cursor) return std::nullopt;
  return Place{.lane = kLanes[static_cast<std::size_t>(cursor->part)],
               .queue = cursor->queue,
               .at = cursor->at,
               .id = cursor->id};
}

CursorSeal::CursorSeal() {
  DETENT_CHECK(RAND_bytes(key_.data(), static_cast<int>(key_.size())) == 1);
}

std::string CursorSeal::seal(const Place& place) const {
  std::string text = render_cursor(place);
  DETENT_CHECK(text.size() <= kTextSize);
  text.resize(kTextSize, ' ');
  std::string sealed(kSealedSize, '\0');
  unsigned char* const nonce = bytes_of(sealed);
  unsigned char* const out = nonce + kNonceSize;
  DETENT_CHECK(RAND_bytes(nonce, kNonceSize) == 1);
  const Cipher cipher(EVP_CIPHER_CTX_new(), &EVP_CIPHER_CTX_free);
  int size = 0;
  const bool is_sealed =
      EVP_EncryptInit_ex(cipher.get(), EVP_aes_256_gcm(), nullptr, key_.data(), nonce) == 1 &&
      EVP_EncryptUpdate(cipher.get(), out, &size, bytes_of(text), kTextSize) == 1 &&
      EVP_EncryptFinal_ex(cipher.get(), out + kTextSize, &size) == 1 &&
      EVP_CIPHER_CTX_ctrl(cipher.get(), EVP_CTRL_GCM_GET_TAG, kTagSize, out + kTextSize) == 1;
  DETENT_CHECK(is_sealed);
  return "s" + to_hex(sealed);
}

std::optional<Place> CursorSeal::open(std::string_view cursor) const {
  if (!cursor.starts_with('s')) return std::nullopt;
  std::optional<std::string> sealed = parse_hex(cursor.substr(1));
  if (!sealed || sealed->size() != kSealedSize) return std::nullopt;
  unsigned char* const nonce = bytes_of(*sealed);
  unsigned char* const in = nonce + kNonceSize;
  std::string text(kTextSize, '\0');
  const Cipher cipher(EVP_CIPHER_CTX_new(), &EVP_CIPHER_CTX_free);
  int size = 0;
  const bool is_own =
      EVP_DecryptInit_ex(cipher.get(), EVP_aes_256_gcm(), nullptr, key_.data(), nonce) == 1 &&
      EVP_DecryptUpdate(cipher.get(), bytes_of(text), &size, in, kTextSize) == 1 &&
      EVP_CIPHER_CTX_ctrl(cipher.get(), EVP_CTRL_GCM_SET_TAG, kTagSize, in + kTextSize) == 1 &&
      EVP_DecryptFinal_ex(cipher.get(), bytes_of(text) + kTextSize, &size) == 1;
  if (!is_own) return std::nullopt;
  text.erase(text.find_last_not_of(' ') + 1);
  return parse_cursor(text);
}

}  // namespace detent::server

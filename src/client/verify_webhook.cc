#include "detent/verify_webhook.h"

#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdint>
#include <system_error>
#include <utility>

#include "base/base64.h"

namespace detent {
namespace {

using std::chrono::seconds;

ClientError forged(std::string message) {
  return {.code = ClientError::Code::forbidden, .message = std::move(message)};
}

/// The value of the header with this name, in any case of letters. Null if there is none.
const std::string* find_value(std::span<const client::Header> headers, std::string_view name) {
  const auto is_same = [](char a, char b) {
    return b == (a >= 'A' && a <= 'Z' ? static_cast<char>(a + ('a' - 'A')) : a);
  };
  for (const client::Header& header : headers) {
    if (std::ranges::equal(header.name, name, is_same)) return &header.value;
  }
  return nullptr;
}

/// Reads seconds since 1970. Returns nullopt for larger numbers, which cannot be recent anyway.
std::optional<seconds> read_seconds(std::string_view text) {
  std::uint32_t number = 0;
  const char* const end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, number);
  if (error != std::errc{} || stop != end) return std::nullopt;
  return seconds{number};
}

std::string sign(const std::string& secret, const std::string& content) {
  std::array<unsigned char, EVP_MAX_MD_SIZE> digest{};
  unsigned size = 0;
  const auto* const bytes = reinterpret_cast<const unsigned char*>(content.data());
  const unsigned char* const made =
      HMAC(EVP_sha256(), secret.data(), static_cast<int>(secret.size()), bytes, content.size(),
           digest.data(), &size);
  DETENT_CHECK(made != nullptr);
  std::string signature = "v1,";
  append_base64(signature, {reinterpret_cast<const char*>(digest.data()), size});
  return signature;
}

/// True if one of the signatures in the header, which are separated by spaces, is `expected`.
/// Always compares all of them, so the time does not depend on the position.
bool has_signature(std::string_view given, const std::string& expected) {
  bool found = false;
  while (!given.empty()) {
    const std::string_view one = given.substr(0, given.find(' '));
    given.remove_prefix(std::min(one.size() + 1, given.size()));
    const bool is_same = one.size() == expected.size() &&
                         CRYPTO_memcmp(one.data(), expected.data(), expected.size()) == 0;
    found = found || is_same;
  }
  return found;
}

}  // namespace

ClientResult<std::string> verify_webhook(std::span<const std::string> keys,
                                         std::span<const client::Header> headers,
                                         std::string_view body, const VerifyOptions& options) {
  const std::string* const id = find_value(headers, "webhook-id");
  const std::string* const sent_text = find_value(headers, "webhook-timestamp");
  const std::string* const signatures = find_value(headers, "webhook-signature");
  if (id == nullptr || sent_text == nullptr || signatures == nullptr) {
    return forged("webhook-id, webhook-timestamp or webhook-signature is missing");
  }
  const std::optional<seconds> sent = read_seconds(*sent_text);
  if (!sent) return forged("webhook-timestamp must be a number of seconds");
  const WallInstant now = options.now ? *options.now : SystemClock().wall_now();
  const auto age = std::chrono::floor<seconds>(now.time_since_epoch()) - *sent;
  if (age > options.tolerance || -age > options.tolerance) {
    return forged("webhook-timestamp differs from the current time by more than the tolerance");
  }
  const std::string content = *id + "." + *sent_text + "." + std::string(body);
  bool is_genuine = false;
  for (const std::string& key : keys) {
    constexpr std::string_view kPrefix = "whsec_";
    std::optional<std::string> secret;
    if (key.starts_with(kPrefix)) {
      secret = decode_base64(std::string_view(key).substr(kPrefix.size()));
    }
    if (!secret || secret->empty()) {
      return ClientError{.code = ClientError::Code::invalid_argument,
                         .message = "a key must be \"whsec_\" and base64"};
    }
    is_genuine = has_signature(*signatures, sign(*secret, content)) || is_genuine;
  }
  if (!is_genuine) return forged("no signature matches one of the keys");
  return *id;
}

}  // namespace detent

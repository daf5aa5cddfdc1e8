#include "delivery/webhook_signature.h"

#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <openssl/rand.h>

#include <algorithm>
#include <array>
#include <optional>
#include <utility>

#include "base/base64.h"
#include "detent/check.h"
#include "task/limits.h"

namespace detent {
namespace {

constexpr std::string_view kPrefix = "whsec_";
constexpr std::size_t kMadeBytes = 32;

std::string hmac_sha256(const std::string& key, const std::string& text) {
  std::array<unsigned char, EVP_MAX_MD_SIZE> digest{};
  unsigned size = 0;
  const auto* const bytes = reinterpret_cast<const unsigned char*>(text.data());
  const unsigned char* const made = HMAC(EVP_sha256(), key.data(), static_cast<int>(key.size()),
                                         bytes, text.size(), digest.data(), &size);
  DETENT_CHECK(made != nullptr);
  return {reinterpret_cast<const char*>(digest.data()), size};
}

}  // namespace

Result<WebhookKey> WebhookKey::parse(std::string_view text) {
  std::optional<std::string> secret;
  if (text.starts_with(kPrefix)) secret = decode_base64(text.substr(kPrefix.size()));
  if (!secret || secret->size() < kLeastWebhookKeyBytes || secret->size() > kMaxWebhookKeyBytes) {
    return Error{ErrorCode::invalid_argument,
                 "a webhook key must be whsec_ and 24 to 64 bytes in base64 with padding", ""};
  }
  return WebhookKey(*std::move(secret));
}

Result<WebhookKey> WebhookKey::make() {
  std::array<unsigned char, kMadeBytes> bytes{};
  if (RAND_bytes(bytes.data(), static_cast<int>(bytes.size())) != 1) {
    return Error{ErrorCode::internal,
                 "cannot create a webhook key: the system gave no random bytes", ""};
  }
  return WebhookKey(std::string(reinterpret_cast<const char*>(bytes.data()), bytes.size()));
}

std::string WebhookKey::text() const {
  std::string text(kPrefix);
  append_base64(text, secret_);
  return text;
}

Result<WebhookKeys> parse_webhook_keys(std::string_view lines) {
  WebhookKeys keys;
  for (int number = 1; !lines.empty(); ++number) {
    const std::size_t end = std::min(lines.find('\n'), lines.size());
    std::string_view line = lines.substr(0, end);
    lines.remove_prefix(std::min(end + 1, lines.size()));
    while (!line.empty() && (line.back() == '\r' || line.back() == ' ')) line.remove_suffix(1);
    if (line.empty() || line.front() == '#') continue;
    Result<WebhookKey> key = WebhookKey::parse(line);
    if (!key) return with_context("line " + std::to_string(number), std::move(key).error());
    keys.push_back(*std::move(key));
  }
  if (keys.empty())
    return Error{ErrorCode::invalid_argument, "the file has no webhook key; write one key per line",
                 ""};
  return keys;
}

std::string sign_webhook(const WebhookKeys& keys, const SignedContent& content) {
  std::string text(content.id);
  text.append(".").append(std::to_string(content.sent.time_since_epoch().count()));
  text.append(".").append(content.body);
  std::string signatures;
  for (const WebhookKey& key : keys) {
    if (!signatures.empty()) signatures += ' ';
    signatures += "v1,";
    append_base64(signatures, hmac_sha256(key.secret(), text));
  }
  return signatures;
}

}  // namespace detent

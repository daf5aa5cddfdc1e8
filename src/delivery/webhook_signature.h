// Signatures by which a receiver knows that a webhook is from this server, whole and fresh: the
// scheme of Standard Webhooks (github.com/standard-webhooks/standard-webhooks, version 1).
//
// What is signed is ID.TIMESTAMP.BODY, by HMAC-SHA256. A request carries one signature for each key
// in force, so a key is changed in three steps that overlap: add the new one here, change the
// receivers, take the old one out.
#pragma once

#include <chrono>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace detent {

/// A secret. Nothing but text() shows it. Immutable.
class WebhookKey {
 public:
  /// Reads "whsec_" and base64 of 24 to 64 bytes. Errors: `invalid_argument`, without the text.
  static Result<WebhookKey> parse(std::string_view text);
  /// 32 bytes from the system's source of secrets. Errors: `internal` when it has none.
  static Result<WebhookKey> make();

  /// As parse() reads it.
  std::string text() const;
  /// The bytes.
  const std::string& secret() const noexcept { return secret_; }

 private:
  explicit WebhookKey(std::string secret) : secret_(std::move(secret)) {}

  std::string secret_;
};

/// All that sign, at least one.
using WebhookKeys = std::vector<WebhookKey>;

/// Reads one key a line; empty lines and those that begin with # are passed over.
/// Errors: `invalid_argument` that names the line, also when there is no key.
Result<WebhookKeys> parse_webhook_keys(std::string_view lines);

struct SignedContent {
  std::string_view id;              // webhook-id; without a "."
  std::chrono::sys_seconds sent{};  // webhook-timestamp
  std::string_view body;
};
/// The value of webhook-signature: "v1,BASE64", one for each key with spaces between.
std::string sign_webhook(const WebhookKeys& keys, const SignedContent& content);

}  // namespace detent

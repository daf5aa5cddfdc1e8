// Signatures that prove to a receiver that a webhook comes from this server, is unchanged and is
// recent. The scheme is Standard Webhooks (github.com/standard-webhooks/standard-webhooks, version
// 1).
//
// The signed text is ID.TIMESTAMP.BODY, with HMAC-SHA256. A request has one signature for each
// valid key. So a key is changed in three overlapping steps: add the new key here, change the
// receivers, remove the old key.
#pragma once

#include <chrono>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace detent {

/// A secret. Only text() shows it. Immutable.
class WebhookKey {
 public:
  /// Reads "whsec_" and base64 of 24 to 64 bytes. Errors: `invalid_argument`, without the text.
  static Result<WebhookKey> parse(std::string_view text);
  /// 32 bytes from the system's source of secrets. Errors: `internal` if the source fails.
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

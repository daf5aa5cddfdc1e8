// Whether a webhook is from your server, whole and fresh: Standard Webhooks, version 1.
//
//     const auto id = detent::verify_webhook(keys, headers, body);
//     if (!id.has_value()) return answer(400);      // and do nothing
//
// docs/guides/webhooks.md says what arrives, and where the keys are.
#pragma once

#include <chrono>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "detent/client.h"
#include "detent/clock.h"

namespace detent {

struct VerifyOptions {
  /// How far its timestamp may be from now, either way.
  std::chrono::seconds tolerance{300};
  std::optional<WallInstant> now = {};  // the system's
};

/// Returns the webhook's id, the same at every attempt. `keys` are "whsec_…"; one that signed is
/// enough. `headers` are the request's, their names in any case; `body` is as it came: JSON that
/// was read and written again has other bytes. Signatures are compared in constant time.
/// Errors: `forbidden` when it is not genuine, or not fresh; `invalid_argument` for a key that is
/// none, which the message does not repeat. Thread-safe.
ClientResult<std::string> verify_webhook(std::span<const std::string> keys,
                                         std::span<const client::Header> headers,
                                         std::string_view body, const VerifyOptions& options = {});

}  // namespace detent

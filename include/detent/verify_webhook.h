// verify_webhook: checks that a webhook comes from your server, is complete and is recent (Standard
// Webhooks, version 1).
//
//     const auto id = detent::verify_webhook(keys, headers, body);
//     if (!id.has_value()) return answer(400);      // and do nothing
//
// docs/guides/webhooks.md describes the requests, and where to find the keys.
#pragma once

#include <chrono>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "detent/client.h"
#include "detent/clock.h"

namespace detent {

/// Options of verify_webhook.
struct VerifyOptions {
  /// The largest distance between the timestamp and now, in both directions.
  std::chrono::seconds tolerance{300};
  std::optional<WallInstant> now = {};  // no value: the system clock
};

/// Verifies the signature and the timestamp of a webhook. `keys` have the form "whsec_…"; a
/// signature by one of them is enough. `headers` are the headers of the request, with names in any
/// case. `body` must be the exact bytes of the request: JSON that was parsed and serialized again
/// has other bytes. Signatures are compared in constant time. Thread-safe.
///
/// Returns the id of the webhook, which is the same at every attempt. Errors: `forbidden` if the
/// signature is wrong or the timestamp is too far from now; `invalid_argument` if a key is
/// malformed. The error message does not contain the key.
ClientResult<std::string> verify_webhook(std::span<const std::string> keys,
                                         std::span<const client::Header> headers,
                                         std::string_view body, const VerifyOptions& options = {});

}  // namespace detent

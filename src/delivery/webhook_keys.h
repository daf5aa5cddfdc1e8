// The files that hold the keys by which webhooks are signed.
#pragma once

#include <filesystem>

#include "base/result.h"
#include "delivery/webhook_signature.h"

namespace detent {

/// Reads a file of keys, as parse_webhook_keys(). Errors: also `unavailable` when the file cannot
/// be read, `too_large` above 64 KiB.
Result<WebhookKeys> load_webhook_keys(const std::filesystem::path& file);

/// The same; makes the file, with one new key that only its owner may read, when there is none.
/// What is made is durable before it is used. Errors: also `unavailable` when it cannot be made.
Result<WebhookKeys> load_or_make_webhook_key(const std::filesystem::path& file);

}  // namespace detent

// The files with the keys that sign webhooks.
#pragma once

#include <filesystem>

#include "base/result.h"
#include "delivery/webhook_signature.h"

namespace detent {

/// Reads a file of keys, as parse_webhook_keys(). Errors: also `unavailable` when the file cannot
/// be read, `too_large` above 64 KiB.
Result<WebhookKeys> load_webhook_keys(const std::filesystem::path& file);

/// As above. If there is no file, creates it with one new key, readable only by its owner. The file
/// is durable before the key is used. Errors: also `unavailable` if it cannot be created.
Result<WebhookKeys> load_or_make_webhook_key(const std::filesystem::path& file);

}  // namespace detent

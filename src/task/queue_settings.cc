#include "task/queue_settings.h"

#include <string>
#include <string_view>
#include <utility>

#include "task/limits.h"
#include "task/request.h"

namespace detent {

namespace {

using std::chrono::milliseconds;

Error invalid(std::string_view field, std::string message) {
  return {ErrorCode::invalid_argument, std::move(message), std::string(field)};
}

Result<void> validate_retention(std::string_view field, milliseconds retention) {
  if (retention >= milliseconds{0} && retention <= kMaxRetention) return ok();
  return invalid(field, std::string(field) + " must be 0 to 365 days");
}

Result<void> validate_limit(std::string_view field, const std::optional<std::uint32_t>& limit,
                            std::uint32_t most) {
  if (!limit || (*limit >= 1 && *limit <= most)) return ok();
  return invalid(field, std::string(field) + " must be 1 to " + std::to_string(most) +
                            ", or null for no limit");
}

}  // namespace

Result<void> validate(const QueueSettings& settings) {
  TRY(validate(TaskRules{.max_attempts = settings.max_attempts,
                         .visibility_timeout = settings.visibility_timeout,
                         .backoff = settings.backoff}));
  TRY(validate_retention("retention", settings.retention));
  TRY(validate_retention("key_retention", settings.key_retention));
  TRY(validate_limit("rate", settings.rate, kMaxRate));
  TRY(validate_limit("concurrency", settings.concurrency, kMaxConcurrency));
  if (settings.partitions < 1 || settings.partitions > kMaxPartitions) {
    return invalid("partitions",
                   "a queue must have 1 to " + std::to_string(kMaxPartitions) + " partitions");
  }
  return settings.webhook ? validate(*settings.webhook) : ok();
}

}  // namespace detent

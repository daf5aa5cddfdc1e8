#include "task/request.h"

#include <array>
#include <charconv>
#include <string_view>
#include <system_error>

#include "task/limits.h"

namespace detent {

namespace {

using std::chrono::milliseconds;

/// 10 000-01-01T00:00:00Z: the first instant whose year RFC 3339 cannot write.
constexpr WallTime kDueEnd{std::chrono::sys_days{std::chrono::year{10'000} / 1 / 1}};

Error invalid(std::string_view field, std::string message) {
  return {ErrorCode::invalid_argument, std::move(message), std::string(field)};
}

/// The message avoids repeating the name: it may be long and holds whatever bytes the client sent.
Result<void> validate_queue(std::string_view name) {
  if (is_queue_name(name)) return ok();
  return invalid("queue",
                 "a queue name is 1 to 200 bytes of letters, digits and -+/;.$_(), and does not "
                 "start with a hyphen");
}

Result<void> validate_due(const Due& due) {
  if (const milliseconds* delay = std::get_if<milliseconds>(&due)) {
    if (*delay < milliseconds{0}) return invalid("delay", "a delay is not negative");
    if (*delay > kMaxDelay) return invalid("delay", "a delay is at most 4294967295 seconds");
    return ok();
  }
  const WallTime at = std::get<WallTime>(due);
  if (at < WallTime{}) return invalid("due_at", "a due time is not before 1970");
  if (at >= kDueEnd) return invalid("due_at", "a due time is not after the year 9999");
  return ok();
}

Result<void> validate_visibility_timeout(const std::optional<milliseconds>& timeout) {
  if (!timeout || (*timeout >= milliseconds{1} && *timeout <= kMaxVisibilityTimeout)) return ok();
  return invalid("visibility_timeout", "a visibility timeout is 1 ms to 30 days");
}

Result<void> validate_backoff(const std::optional<Backoff>& backoff) {
  if (!backoff) return ok();
  if (backoff->initial < milliseconds{0}) return invalid("backoff", "a backoff is not negative");
  if (backoff->max < backoff->initial) {
    return invalid("backoff", "the longest backoff is not below the first");
  }
  if (backoff->max > kMaxDelay)
    return invalid("backoff", "a backoff is at most 4294967295 seconds");
  return ok();
}

Result<void> validate_rules(const TaskRules& rules) {
  if (rules.max_attempts && (*rules.max_attempts < 1 || *rules.max_attempts > kMaxAttempts)) {
    return invalid("max_attempts", "a task has 1 to " + std::to_string(kMaxAttempts) + " attempts");
  }
  TRY(validate_visibility_timeout(rules.visibility_timeout));
  return validate_backoff(rules.backoff);
}

/// Reads all of `text` as the hexadecimal number to_string writes, and nothing else.
std::optional<std::uint64_t> parse_hex(std::string_view text) noexcept {
  if (text.empty() || (text.front() == '0' && text.size() > 1)) return std::nullopt;
  for (const char c : text) {
    if (c >= 'A' && c <= 'F') return std::nullopt;  // from_chars would take these
  }
  std::uint64_t value = 0;
  const char* const end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, value, 16);
  if (error != std::errc{} || stop != end) return std::nullopt;
  return value;
}

char* write_hex(char* begin, char* end, std::uint64_t value) noexcept {
  return std::to_chars(begin, end, value, 16).ptr;
}

}  // namespace

Result<void> validate(const ScheduleRequest& request) {
  TRY(validate_queue(request.queue));
  if (request.payload.data.size() > kMaxPayloadBytes) {
    return Error{ErrorCode::too_large,
                 "a payload is at most " + std::to_string(kMaxPayloadBytes) + " bytes", "payload"};
  }
  TRY(validate_due(request.due));
  return validate_rules(request.rules);
}

Result<void> validate(const LeaseRequest& request) {
  TRY(validate_queue(request.queue));
  if (request.max < 1 || request.max > kMaxLeaseTasks) {
    return invalid("max", "a lease takes 1 to " + std::to_string(kMaxLeaseTasks) + " tasks");
  }
  if (request.worker.size() > kMaxWorkerBytes) {
    return invalid("worker",
                   "a worker's name is at most " + std::to_string(kMaxWorkerBytes) + " bytes");
  }
  return validate_visibility_timeout(request.visibility_timeout);
}

std::string to_string(LeaseToken token) {
  std::array<char, 33> text{};  // 16 digits, a hyphen, 16 digits
  char* const end = text.data() + text.size();
  char* stop = write_hex(text.data(), end, token.epoch);
  *stop++ = '-';
  stop = write_hex(stop, end, token.number);
  return {text.data(), stop};
}

std::optional<LeaseToken> parse_lease_token(std::string_view text) noexcept {
  const std::size_t hyphen = text.find('-');
  if (hyphen == std::string_view::npos) return std::nullopt;
  const auto epoch = parse_hex(text.substr(0, hyphen));
  const auto number = parse_hex(text.substr(hyphen + 1));
  if (!epoch || !number) return std::nullopt;
  return LeaseToken{*epoch, *number};
}

std::string_view to_string(LeaseOutcome outcome) noexcept {
  switch (outcome) {
    case LeaseOutcome::done:
      return "done";
    case LeaseOutcome::dead:
      return "dead";
    case LeaseOutcome::conflict:
      return "conflict";
  }
  return "unknown";
}

}  // namespace detent

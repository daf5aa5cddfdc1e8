#include "task/request.h"

#include <array>
#include <charconv>
#include <string_view>
#include <system_error>

#include "base/fnv.h"
#include "base/utf8.h"
#include "task/limits.h"

namespace detent {

namespace {

using std::chrono::milliseconds;

/// 10 000-01-01T00:00:00Z: the first instant whose year RFC 3339 cannot write.
constexpr WallTime kDueEnd{std::chrono::sys_days{std::chrono::year{10'000} / 1 / 1}};

/// Ids of another store must be below this, which is half of all ids. At least 10^13 ids for each
/// shard then remain for this store.
constexpr TaskId kEndOfForeignIds{TaskId::kEnd / 2};

/// Attempts of another store must be at most this, so that their count cannot overflow.
constexpr std::uint32_t kMostAttempts = std::uint32_t{1} << 31;

Error invalid(std::string_view field, std::string message) {
  return {ErrorCode::invalid_argument, std::move(message), std::string(field)};
}

/// The message does not repeat the name, because the name may be long and may have any bytes that
/// the client sent.
Result<void> validate_queue(std::string_view name) {
  if (is_queue_name(name)) return ok();
  return invalid(
      "queue",
      "a queue name must be 1 to 200 bytes of letters, digits and -+/;:.$_(), and must not "
      "start with a hyphen");
}

Result<void> validate_payload(const Payload& payload) {
  if (payload.data.size() <= kMaxPayloadBytes) return ok();
  return Error{ErrorCode::too_large,
               "a payload must be at most " + std::to_string(kMaxPayloadBytes) + " bytes",
               "payload"};
}

Result<void> validate_visibility_timeout(const std::optional<milliseconds>& timeout) {
  if (!timeout || (*timeout >= milliseconds{1} && *timeout <= kMaxVisibilityTimeout)) return ok();
  return invalid("visibility_timeout", "a visibility timeout must be 1 ms to 30 days");
}

Result<void> validate_backoff(const std::optional<Backoff>& backoff) {
  if (!backoff) return ok();
  if (backoff->initial < milliseconds{0}) {
    return invalid("backoff", "a backoff must not be negative");
  }
  if (backoff->max < backoff->initial) {
    return invalid("backoff", "the longest backoff must not be shorter than the first");
  }
  if (backoff->max > kMaxDelay)
    return invalid("backoff", "a backoff must be at most 4294967295 seconds");
  return ok();
}

/// C0 and C1 controls, and DEL. A key with these could control the terminal on which it is listed.
bool is_control(std::string_view character) noexcept {
  const auto byte = static_cast<std::uint8_t>(character.back());
  if (character.size() == 1) return byte < 0x20 || byte == 0x7F;
  return character.size() == 2 && character.front() == '\xC2' && byte < 0xA0;
}

/// A task may also have no webhook.
Result<void> validate_webhook(std::string_view url) {
  return url.empty() ? ok() : validate_webhook_url(url);
}

Result<void> validate_key(std::string_view key) {
  if (key.size() > kMaxKeyBytes) {
    return invalid("key", "a key must be at most " + std::to_string(kMaxKeyBytes) + " bytes");
  }
  while (!key.empty()) {
    const std::size_t size = utf8_character_size(key);
    if (size == 0 || is_control(key.substr(0, size))) {
      return invalid("key", "a key must be valid UTF-8 without control characters");
    }
    key.remove_prefix(size);
  }
  return ok();
}

/// FNV-1a over the fields. Each field begins with its own tag, and has a fixed size or begins with
/// its size. So different requests always have different bytes. A field that is not given adds no
/// bytes.
class ContentHash {
 public:
  void number(char tag, std::uint64_t value) noexcept {
    hash_.byte(static_cast<std::uint8_t>(tag));
    for (int shift = 0; shift < 64; shift += 8) {
      hash_.byte(static_cast<std::uint8_t>(value >> shift));
    }
  }
  void duration(char tag, milliseconds value) noexcept {
    number(tag, static_cast<std::uint64_t>(value.count()));
  }
  void text(char tag, std::string_view value) noexcept {
    number(tag, value.size());
    hash_.bytes(value);
  }
  std::uint64_t value() const noexcept { return hash_.value(); }

 private:
  Fnv1a hash_;
};

/// Parses `text` as a hexadecimal number in exactly the form that to_string writes.
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

Error wrong_shard(std::string why, std::string field) {
  return {ErrorCode::invalid_argument,
          std::move(why) +
              ": a dump can be restored only into a cluster with the same number of shards as the "
              "cluster of the dump",
          std::move(field)};
}

Result<void> validate(const Task& task) {
  TRY(validate(ScheduleRequest{.queue = task.queue,
                               .payload = task.payload,
                               .rules = task.rules,
                               .due = task.due_at,
                               .key = task.key,
                               .webhook = task.webhook,
                               .headers = task.headers}));
  if (task.id.value == 0 || task.id >= kEndOfForeignIds) {
    return invalid("id", "the id of a task from a dump must be greater than 0 and less than 2^52");
  }
  if (task.created_at < WallTime{} || task.created_at >= kDueEnd) {
    return invalid("created_at", "created_at must be in the years 1970 to 9999");
  }
  // This is more than kMaxAttempts: a beanstalk job becomes ready again each time its reservation
  // expires, without a limit of attempts.
  if (task.attempts > kMostAttempts)
    return invalid("attempts", "a task cannot have more than 2^31 attempts");
  if (task.history.size() > kMaxHistory) {
    return invalid("history", "a history must have at most 10 attempts");
  }
  for (const Attempt& attempt : task.history) {
    if (attempt.worker.size() > kMaxWorkerBytes || attempt.error.size() > kMaxErrorBytes) {
      return invalid("history",
                     "a worker's name must be at most 200 bytes, and an error at most 500 bytes");
    }
  }
  return ok();
}

Result<void> validate(const TaskEdit& edit) {
  if (edit.due) TRY(validate(*edit.due));
  if (edit.webhook) TRY(validate_webhook(*edit.webhook));
  if (edit.headers) TRY(validate_headers(*edit.headers));
  return edit.payload ? validate_payload(*edit.payload) : ok();
}

Result<void> validate(const ScheduleRequest& request) {
  TRY(validate_queue(request.queue));
  TRY(validate_payload(request.payload));
  TRY(validate(request.due));
  TRY(validate(request.rules));
  TRY(validate_webhook(request.webhook));
  TRY(validate_headers(request.headers));
  TRY(validate_key(request.key));
  if (request.on_key != OnKey::keep && request.key.empty()) {
    return invalid("on_key", "on_key needs a key");
  }
  if (!request.max_wait) return ok();
  if (request.on_key == OnKey::keep) {
    return invalid("max_wait", R"(max_wait needs an on_key of "replace" or "postpone")");
  }
  if (*request.max_wait < milliseconds{0} || *request.max_wait > kMaxDelay) {
    return invalid("max_wait", "max_wait must be 0 to 4294967295 seconds");
  }
  return ok();
}

std::string_view to_string(OnKey on_key) noexcept {
  switch (on_key) {
    case OnKey::keep:
      return "keep";
    case OnKey::replace:
      return "replace";
    case OnKey::postpone:
      return "postpone";
  }
  return {};
}

Result<void> validate(const Due& due) {
  if (const milliseconds* delay = std::get_if<milliseconds>(&due)) {
    if (*delay < milliseconds{0}) return invalid("delay", "a delay must not be negative");
    if (*delay > kMaxDelay) return invalid("delay", "a delay must be at most 4294967295 seconds");
    return ok();
  }
  const WallTime at = std::get<WallTime>(due);
  if (at < WallTime{}) return invalid("due_at", "a due time must not be before 1970");
  if (at >= kDueEnd) return invalid("due_at", "a due time must not be after the year 9999");
  return ok();
}

Result<void> validate(const TaskRules& rules) {
  if (rules.max_attempts && (*rules.max_attempts < 1 || *rules.max_attempts > kMaxAttempts)) {
    return invalid("max_attempts", "max_attempts must be 1 to " + std::to_string(kMaxAttempts));
  }
  TRY(validate_visibility_timeout(rules.visibility_timeout));
  return validate_backoff(rules.backoff);
}

std::uint64_t content_hash(const ScheduleRequest& request) noexcept {
  ContentHash hash;
  hash.text('q', request.queue);
  hash.text(request.payload.kind == Payload::Kind::json ? 'j' : 'b', request.payload.data);
  if (const milliseconds* delay = std::get_if<milliseconds>(&request.due)) {
    hash.duration('d', *delay);
  } else {
    hash.duration('a', std::get<WallTime>(request.due).time_since_epoch());
  }
  hash.text('k', request.key);
  const TaskRules& rules = request.rules;
  hash.number('p', rules.priority);
  if (rules.max_attempts) hash.number('m', *rules.max_attempts);
  if (rules.visibility_timeout) hash.duration('v', *rules.visibility_timeout);
  if (rules.backoff) {
    hash.duration('i', rules.backoff->initial);
    hash.duration('l', rules.backoff->max);
  }
  if (!request.webhook.empty()) hash.text('w', request.webhook);
  for (const TaskHeader& header : request.headers) {
    if (is_trace_header(header.name)) continue;  // a repeated request has a different trace
    hash.text('h', header.name);
    hash.text('=', header.value);
  }
  return hash.value();
}

Result<void> validate(const LeaseRequest& request) {
  TRY(validate_queue(request.queue));
  for (const std::string& queue : request.other_queues) TRY(validate_queue(queue));
  return validate(DeliveryRequest{.max = request.max,
                                  .visibility_timeout = request.visibility_timeout,
                                  .worker = request.worker});
}

Result<void> validate(const DeliveryRequest& request) {
  if (request.max < 1 || request.max > kMaxLeaseTasks) {
    return invalid("max", "max must be 1 to " + std::to_string(kMaxLeaseTasks) + " tasks");
  }
  if (request.worker.size() > kMaxWorkerBytes) {
    return invalid("worker",
                   "a worker's name must be at most " + std::to_string(kMaxWorkerBytes) + " bytes");
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

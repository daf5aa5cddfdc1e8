#include "cli/arguments/argument_values.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <optional>
#include <string_view>
#include <system_error>
#include <utility>

#include "base/wall_time.h"
#include "task/lifecycle.h"
#include "task/task.h"
#include "task/webhook.h"

namespace detent::cli {

namespace {

using std::chrono::milliseconds;

constexpr milliseconds kMaxSyncInterval{60'000};
constexpr std::size_t kLeastMemory = std::size_t{64} << 20;

/// Reads the whole `text` as a decimal number.
template <class Number>
std::optional<Number> parse_number(std::string_view text) noexcept {
  Number value{};
  const char* const end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, value);
  if (error != std::errc{} || stop != end) return std::nullopt;
  return value;
}

bool has_end(NumberRange range) noexcept { return range.most != NumberRange{}.most; }

/// A word for a unit of time, and the number of units of parse_duration() that it means.
struct UnitWord {
  std::string_view word;
  std::uint64_t count;
  const char* unit;
};
constexpr std::array<UnitWord, 20> kUnitWords{
    {{"sec", 1, "s"},   {"secs", 1, "s"}, {"second", 1, "s"}, {"seconds", 1, "s"},
     {"min", 1, "m"},   {"mins", 1, "m"}, {"minute", 1, "m"}, {"minutes", 1, "m"},
     {"hr", 1, "h"},    {"hrs", 1, "h"},  {"hour", 1, "h"},   {"hours", 1, "h"},
     {"day", 1, "d"},   {"days", 1, "d"}, {"w", 7, "d"},      {"week", 7, "d"},
     {"weeks", 7, "d"}, {"y", 365, "d"},  {"year", 365, "d"}, {"years", 365, "d"}}};

/// Writes "5mins" as "5m" and "1y" as "365d". Other texts stay as they are.
std::string with_short_unit(const std::string& text) {
  constexpr std::uint64_t kTooMany = 1'000'000'000'000;  // parse_duration() refuses so many days
  const std::size_t word = std::min(text.find_first_not_of("0123456789"), text.size());
  const auto count = parse_number<std::uint64_t>(std::string_view(text).substr(0, word));
  const auto known = std::ranges::find(kUnitWords, text.substr(word), &UnitWord::word);
  if (!count || known == kUnitWords.end()) return text;
  return std::to_string(std::min(*count, kTooMany) * known->count) + known->unit;
}

/// "1M" … "1024G", as a number of bytes.
std::optional<std::size_t> bytes_of(std::string_view text) noexcept {
  if (text.size() < 2) return std::nullopt;
  const char unit = text.back();
  const auto number = parse_number<std::uint32_t>(text.substr(0, text.size() - 1));
  if (!number || (unit != 'M' && unit != 'G')) return std::nullopt;
  const std::size_t bytes = std::size_t{*number} << (unit == 'M' ? 20 : 30);
  if (bytes == 0 || bytes > (std::size_t{1024} << 30)) return std::nullopt;
  return bytes;
}

}  // namespace

Result<WallTime> parse_due_at(const std::string& text) {
  constexpr std::int64_t kEnd = kWallTimeEnd.time_since_epoch().count();
  constexpr std::size_t kDateSize = 10;  // of "2030-01-31"
  const auto count = parse_number<std::int64_t>(text);
  if (!count) return parse_rfc3339(text.size() == kDateSize ? text + "T00:00:00Z" : text);
  if (*count >= 0 && *count < kEnd) return WallTime{milliseconds{*count}};
  return Error{ErrorCode::invalid_argument, "must be a time in the years 1970 to 9999", ""};
}

Result<milliseconds> parse_any_duration(const std::string& text) {
  return parse_duration(with_short_unit(text));
}

Result<milliseconds> parse_positive_duration(const std::string& text) {
  ASSIGN_OR_RETURN(const milliseconds duration, parse_any_duration(text));
  if (duration > milliseconds{0}) return duration;
  return Error{ErrorCode::invalid_argument, "must be greater than 0", ""};
}

Result<milliseconds> parse_look_interval(const std::string& text) {
  ASSIGN_OR_RETURN(const milliseconds interval, parse_any_duration(text));
  if (interval >= milliseconds{100} && interval <= std::chrono::hours{1}) return interval;
  return Error{ErrorCode::invalid_argument, "must be 100ms to 1h", ""};
}

Result<std::uint64_t> parse_whole_number(const std::string& text, NumberRange range) {
  const auto number = parse_number<std::uint64_t>(text);
  if (number && *number >= range.least && *number <= range.most) return *number;
  const std::string allowed = (has_end(range) ? "from " : "of ") + to_string(range);
  return Error{ErrorCode::invalid_argument, "must be a whole number " + allowed, ""};
}

std::string to_string(NumberRange range) {
  if (!has_end(range)) return "at least " + std::to_string(range.least);
  return std::to_string(range.least) + " to " + std::to_string(range.most);
}

Result<client::TaskState> parse_state(const std::string& text) {
  if (const auto state = parse_task_state(text)) return static_cast<client::TaskState>(*state);
  return Error{ErrorCode::invalid_argument,
               "must be scheduled, ready, leased, dead, completed or cancelled", ""};
}

Result<std::uint64_t> parse_id(const std::string& text) {
  if (const auto id = parse_task_id(text)) return id->value;
  return Error{ErrorCode::invalid_argument, "must be a task id, such as 256", ""};
}

Result<std::string> parse_webhook(const std::string& text) {
  TRY(validate_webhook_url(text));
  return text;
}

Result<std::string> parse_webhook_or_none(const std::string& text) {
  return text == "none" ? Result<std::string>(std::string()) : parse_webhook(text);
}

Result<client::Header> parse_header(const std::string& text) {
  const std::size_t colon = text.find(':');
  if (colon == std::string::npos) {
    return Error{ErrorCode::invalid_argument, "must be NAME: VALUE, such as 'X-Tenant: a'", ""};
  }
  const std::size_t value = std::min(text.find_first_not_of(' ', colon + 1), text.size());
  client::Header header{text.substr(0, colon), text.substr(value)};
  TRY(validate_headers({{header.name, header.value}}));
  return header;
}

Result<LogFormat> parse_log_format(const std::string& text) {
  if (text == "text") return LogFormat::text;
  if (text == "json") return LogFormat::json;
  return Error{ErrorCode::invalid_argument, "must be text or json", ""};
}

Result<LogLevel> parse_log_level(const std::string& text) {
  if (text == "debug") return LogLevel::debug;
  if (text == "info") return LogLevel::info;
  if (text == "warning") return LogLevel::warning;
  if (text == "error") return LogLevel::error;
  return Error{ErrorCode::invalid_argument, "must be debug, info, warning or error", ""};
}

Result<Shell> parse_shell(const std::string& text) {
  if (text == "bash") return Shell::bash;
  if (text == "zsh") return Shell::zsh;
  if (text == "fish") return Shell::fish;
  return Error{ErrorCode::invalid_argument, "must be bash, zsh or fish", ""};
}

Result<HostAndPort> parse_address(const std::string& text) {
  const std::size_t colon = text.rfind(':');
  const Error wrong{ErrorCode::invalid_argument, "must be HOST:PORT, such as 127.0.0.1:7070", ""};
  if (colon == std::string::npos) return wrong;
  std::string host = text.substr(0, colon);
  const auto port = parse_number<std::uint16_t>(std::string_view(text).substr(colon + 1));
  if (host.size() > 2 && host.front() == '[' && host.back() == ']') {
    host = host.substr(1, host.size() - 2);
  } else if (host.find(':') != std::string::npos) {
    return wrong;
  }
  if (host.empty() || !port) return wrong;
  if (host == "localhost") host = "127.0.0.1";
  return HostAndPort{std::move(host), *port};
}

Result<std::string> parse_origin(const std::string& text) {
  if (text == "*") return text;
  for (const std::string_view scheme : {"http://", "https://"}) {
    if (!text.starts_with(scheme)) continue;
    const std::string_view host = std::string_view(text).substr(scheme.size());
    constexpr std::string_view kAllowed = "abcdefghijklmnopqrstuvwxyz0123456789-.:[]";
    if (!host.empty() && host.find_first_not_of(kAllowed) == std::string_view::npos) return text;
  }
  return Error{ErrorCode::invalid_argument,
               "must be http://HOST or https://HOST in lower case, with or without a port, or *",
               ""};
}

Result<std::vector<std::string>> parse_host_names(const std::string& text) {
  constexpr std::string_view kAllowed = "abcdefghijklmnopqrstuvwxyz0123456789-.";
  std::vector<std::string> names;
  for (std::string_view rest = text;;) {
    const std::size_t end = rest.find(',');
    const std::string_view name = rest.substr(0, end);
    if (name.empty() || name.find_first_not_of(kAllowed) != std::string_view::npos) {
      return Error{ErrorCode::invalid_argument,
                   "must be host names in lower case without ports, separated by commas, such as "
                   "detent.example.org,tasks.lan",
                   ""};
    }
    names.emplace_back(name);
    if (end == std::string_view::npos) return names;
    rest.remove_prefix(end + 1);
  }
}

Result<HostAndPort> parse_address_or_off(const std::string& text) {
  if (text.empty() || text == "off") return HostAndPort{};
  Result<HostAndPort> address = parse_address(text);
  if (address) return address;
  return Error{ErrorCode::invalid_argument, "must be HOST:PORT, such as 127.0.0.1:11300, or off",
               ""};
}

Result<milliseconds> parse_sync(const std::string& text) {
  constexpr std::string_view kInterval = "interval=";
  if (text == "always") return milliseconds{0};
  if (text.starts_with(kInterval)) {
    Result<milliseconds> interval = parse_any_duration(text.substr(kInterval.size()));
    if (interval && *interval >= milliseconds{1} && *interval <= kMaxSyncInterval) return interval;
  }
  return Error{ErrorCode::invalid_argument,
               "must be always, or interval=DURATION from 1ms to 60s, such as interval=10ms", ""};
}

Result<bool> parse_yes_or_no(const std::string& text) {
  if (text == "yes") return true;
  if (text == "no") return false;
  return Error{ErrorCode::invalid_argument, "must be yes or no", ""};
}

Result<client::Backoff> parse_backoff(const std::string& text) {
  const std::size_t dots = text.find("..");
  if (dots == std::string::npos) {
    return Error{ErrorCode::invalid_argument, "must be two durations FIRST..MOST, such as 5s..1h",
                 ""};
  }
  ASSIGN_OR_RETURN(const milliseconds first, parse_any_duration(text.substr(0, dots)));
  ASSIGN_OR_RETURN(const milliseconds most, parse_any_duration(text.substr(dots + 2)));
  return client::Backoff{.initial = first, .max = most};
}

Result<std::string> parse_method(const std::string& text) {
  for (const std::string_view method : {"GET", "POST", "PUT", "PATCH", "DELETE"}) {
    const auto is_same = [](char typed, char known) { return (typed & ~0x20) == known; };
    if (std::ranges::equal(text, method, is_same)) return std::string(method);
  }
  return Error{ErrorCode::invalid_argument, "must be GET, POST, PUT, PATCH or DELETE", ""};
}

Result<std::string> parse_target(const std::string& text) {
  const bool is_clean = std::ranges::all_of(text, [](char c) { return c > ' ' && c <= '~'; });
  if (text.starts_with('/') && is_clean) return text;
  return Error{
      ErrorCode::invalid_argument,
      "must begin with a slash and be printable ASCII without spaces (write a space as %20)", ""};
}

Result<double> parse_ratio(const std::string& text) {
  const auto number = parse_number<double>(text);
  if (number && *number >= 0 && *number <= 1) return *number;
  return Error{ErrorCode::invalid_argument, "must be a number from 0 to 1, such as 0.1", ""};
}

Result<std::size_t> parse_memory(const std::string& text) {
  const std::optional<std::size_t> bytes = bytes_of(text);
  if (bytes && *bytes >= kLeastMemory) return *bytes;
  return Error{ErrorCode::invalid_argument,
               "must be a number of megabytes or gigabytes from 64M to 1024G, such as 512M", ""};
}

Result<std::uint64_t> parse_free_disk(const std::string& text) {
  if (text == "0") return std::uint64_t{0};
  const std::optional<std::size_t> bytes = bytes_of(text);
  if (bytes) return std::uint64_t{*bytes};
  return Error{ErrorCode::invalid_argument,
               "must be 0, or a number of megabytes or gigabytes from 1M to 1024G, such as 256M",
               ""};
}

}  // namespace detent::cli

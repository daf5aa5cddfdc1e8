// Parsers for the values of options: a time, an id, an address and so on. The message of an error
// says which values are allowed. argument_options.h adds the name of the option and the value.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <string>

#include "base/log/log.h"
#include "base/result.h"
#include "cli/help/completion.h"
#include "cli/options/serve_options.h"
#include "detent/client.h"
#include "detent/clock.h"

namespace detent::cli {

/// RFC 3339, a date such as "2030-01-31" (its start in UTC), or milliseconds since 1970.
Result<WallTime> parse_due_at(const std::string& text);
/// The forms of parse_duration(), and words such as "5mins", "2weeks" and "1y". A year is 365 days.
Result<std::chrono::milliseconds> parse_any_duration(const std::string& text);
Result<std::chrono::milliseconds> parse_positive_duration(const std::string& text);
/// 100ms to 1h.
Result<std::chrono::milliseconds> parse_look_interval(const std::string& text);
/// The smallest and the largest number that an option accepts.
struct NumberRange {
  std::uint64_t least = 0;
  std::uint64_t most = std::numeric_limits<std::uint64_t>::max();
};
/// A whole number in `range`.
Result<std::uint64_t> parse_whole_number(const std::string& text, NumberRange range);
/// A whole number that fits into a Number.
template <class Number>
Result<Number> parse_number_of(const std::string& text) {
  ASSIGN_OR_RETURN(const std::uint64_t number,
                   parse_whole_number(text, {.most = std::numeric_limits<Number>::max()}));
  return static_cast<Number>(number);
}
/// "1 to 1000"; without an upper limit "at least 1".
std::string to_string(NumberRange range);
Result<client::TaskState> parse_state(const std::string& text);
Result<std::uint64_t> parse_id(const std::string& text);
/// The URL of a webhook.
Result<std::string> parse_webhook(const std::string& text);
/// Like parse_webhook(), but "none" gives an empty string.
Result<std::string> parse_webhook_or_none(const std::string& text);
/// "Name: value".
Result<client::Header> parse_header(const std::string& text);
Result<LogFormat> parse_log_format(const std::string& text);
Result<LogLevel> parse_log_level(const std::string& text);

Result<Shell> parse_shell(const std::string& text);

struct HostAndPort {
  std::string host;
  std::uint16_t port = 0;
};
/// "127.0.0.1:7070" or "[::1]:7070". The host "localhost" becomes 127.0.0.1.
Result<HostAndPort> parse_address(const std::string& text);
/// Names of hosts in lower case, separated by commas; at least one.
Result<std::vector<std::string>> parse_host_names(const std::string& text);
/// Like parse_address(), but "off" and an empty text give an empty host.
Result<HostAndPort> parse_address_or_off(const std::string& text);

/// "*", or an origin as browsers write it: "http://HOST" or "https://HOST", with or without a port.
Result<std::string> parse_origin(const std::string& text);

/// "always" gives 0, "interval=10ms" gives the interval.
Result<std::chrono::milliseconds> parse_sync(const std::string& text);

/// A decimal number from 0 to 1.
Result<double> parse_ratio(const std::string& text);
Result<bool> parse_yes_or_no(const std::string& text);
/// "5s..1h": the wait after the first failed attempt, and the longest wait.
Result<client::Backoff> parse_backoff(const std::string& text);

/// The method of a request in either case; "get" gives "GET".
Result<std::string> parse_method(const std::string& text);
/// The path of a request, such as "/v1/wheel".
Result<std::string> parse_target(const std::string& text);

/// "512M" or "4G", as a number of bytes.
Result<std::size_t> parse_memory(const std::string& text);
/// "0", or "1M" … "1024G".
Result<std::uint64_t> parse_free_disk(const std::string& text);

}  // namespace detent::cli

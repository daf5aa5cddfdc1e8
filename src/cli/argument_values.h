// What the text of an option says, by type: a time, an id, an address. Errors say what is allowed;
// who reads the command line (arguments.cc) puts the option's name before them.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <string>

#include "base/log/log.h"
#include "base/result.h"
#include "cli/completion.h"
#include "cli/serve_options.h"
#include "detent/clock.h"
#include "task/lifecycle.h"
#include "task/task.h"

namespace detent::cli {

/// RFC 3339, or milliseconds since 1970.
Result<WallTime> parse_due_at(const std::string& text);
Result<std::chrono::milliseconds> parse_any_duration(const std::string& text);
Result<std::chrono::milliseconds> parse_positive_duration(const std::string& text);
/// 100ms to 1h.
Result<std::chrono::milliseconds> parse_look_interval(const std::string& text);
/// A whole number, at least 1.
Result<std::uint64_t> parse_positive(const std::string& text);
Result<TaskState> parse_state(const std::string& text);
Result<TaskId> parse_id(const std::string& text);
/// A URL that a task may be delivered to; a header as "Name: value".
Result<std::string> parse_webhook(const std::string& text);
/// As parse_webhook(), or "none", which is empty.
Result<std::string> parse_webhook_or_none(const std::string& text);
Result<TaskHeader> parse_header(const std::string& text);
Result<LogFormat> parse_log_format(const std::string& text);
Result<LogLevel> parse_log_level(const std::string& text);

Result<Shell> parse_shell(const std::string& text);

struct HostAndPort {
  std::string host;
  std::uint16_t port = 0;
};
/// "127.0.0.1:7070" or "[::1]:7070".
Result<HostAndPort> parse_address(const std::string& text);
/// The same, or "off" or nothing at all, which is no host.
/// Names of hosts in lower case, joined by commas; at least one.
Result<std::vector<std::string>> parse_host_names(const std::string& text);
Result<HostAndPort> parse_address_or_off(const std::string& text);

/// "*", or "http://HOST" or "https://HOST" with or without a port, as browsers write it.
Result<std::string> parse_origin(const std::string& text);

/// "always", which is 0, or "interval=10ms".
Result<std::chrono::milliseconds> parse_sync(const std::string& text);

/// How many tasks.
Result<std::uint64_t> parse_task_count(const std::string& text);
/// How many of whatever it is.
Result<std::uint64_t> parse_count(const std::string& text);
Result<std::uint32_t> parse_small_count(const std::string& text);
Result<bool> parse_yes_or_no(const std::string& text);
/// "5s..1h": the rest after the first failed attempt, and the longest.
Result<Backoff> parse_backoff(const std::string& text);

/// "get" or "GET", as "GET". What a request asks for: "/v1/wheel", without blanks.
Result<std::string> parse_method(const std::string& text);
Result<std::string> parse_target(const std::string& text);

/// Bytes: "512M" or "4G".
Result<std::size_t> parse_memory(const std::string& text);

}  // namespace detent::cli

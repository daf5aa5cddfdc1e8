// The server's log on stderr: one line per event, as text for people or as JSON for programs.
//
//   log_info("listening", {{"address", address}, {"tls", true}});
//   2026-01-02T03:04:05.678Z info listening address=127.0.0.1:7070 tls=true
//   {"time":"2026-01-02T03:04:05.678Z","level":"info","message":"listening","address":…}
//
// An event may contain text from outside. To keep it on one line, control bytes and bytes that are
// not UTF-8 are escaped, and the length is limited. Do not log secrets and task payloads. As a
// second defence, texts that look like secrets are masked (redact.h).
//
// Only this folder includes spdlog. spdlog's default logger is the only mutable global of the
// project, and this header hides it. The library does not log: it passes errors to callbacks.
#pragma once

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <iosfwd>
#include <optional>
#include <string>
#include <string_view>

#include "detent/clock.h"

namespace detent {

enum class LogLevel : std::uint8_t { debug, info, warning, error };
enum class LogFormat : std::uint8_t { text, json };

struct LogOptions {
  LogLevel level = LogLevel::info;  // events below this level are dropped
  LogFormat format = LogFormat::text;
  const Clock* clock = nullptr;  // null: the system clock; otherwise must outlive all logging
  std::ostream* out = nullptr;   // null: stderr; otherwise must outlive all logging (for tests)
};

/// Sets the destination, the format and the level. Call it before other threads log. Without this
/// call, events of level info and above go to stderr as text.
void configure_log(const LogOptions& options);

/// Changes the lowest level that is logged. Thread-safe.
void set_log_level(LogLevel level);

/// The longest message with fields, in bytes after escaping. A longer event is cut, and the line
/// says so. The time and the level come on top.
inline constexpr std::size_t kLongestLogEvent = 8192;

/// A key and a value of an event. The key must be a literal in our code. The value may be any text.
/// A line leaves out a field with std::nullopt.
class LogField {
 public:
  LogField(std::string_view key, std::string_view value) : key_(key), value_(value) {}
  LogField(std::string_view key, const char* value) : key_(key), value_(value) {}
  LogField(std::string_view key, const std::string& value) : key_(key), value_(value) {}
  LogField(std::string_view key, const std::optional<std::string>& value)
      : key_(key), value_(value.value_or("")), is_there_(value.has_value()) {}
  LogField(std::string_view key, std::same_as<bool> auto value)
      : key_(key), value_(value ? "true" : "false"), quoted_(false) {}
  template <std::integral Integer>
  requires(!std::same_as<Integer, bool>) LogField(std::string_view key, Integer value)
      : key_(key), value_(std::to_string(value)), quoted_(false) {}

  std::string_view key() const noexcept { return key_; }
  std::string_view value() const noexcept { return value_; }
  /// True if JSON shows the value as a string.
  bool quoted() const noexcept { return quoted_; }
  /// False if the line leaves the field out.
  bool is_there() const noexcept { return is_there_; }

 private:
  std::string_view key_;
  std::string value_;
  bool quoted_ = true;
  bool is_there_ = true;
};

using LogFields = std::initializer_list<LogField>;

/// Thread-safe. An event below the level costs one comparison, and its arguments.
void log_event(LogLevel level, std::string_view message, LogFields fields);

inline void log_debug(std::string_view message, LogFields fields = {}) {
  log_event(LogLevel::debug, message, fields);
}
inline void log_info(std::string_view message, LogFields fields = {}) {
  log_event(LogLevel::info, message, fields);
}
inline void log_warning(std::string_view message, LogFields fields = {}) {
  log_event(LogLevel::warning, message, fields);
}
inline void log_error(std::string_view message, LogFields fields = {}) {
  log_event(LogLevel::error, message, fields);
}

}  // namespace detent

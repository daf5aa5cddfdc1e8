// The server's log: one line an event, for people (text) or for machines (JSON), on stderr.
//
//   log_info("listening", {{"address", address}, {"tls", true}});
//   2026-01-02T03:04:05.678Z info listening address=127.0.0.1:7070 tls=true
//   {"time":"2026-01-02T03:04:05.678Z","level":"info","message":"listening","address":…}
//
// What is logged may come from outside, so a line stays a line: control bytes and bytes that are
// not UTF-8 are escaped and the length is capped. Secrets and task payloads do not belong in it;
// what looks like a secret all the same is masked (redact.h).
// This folder is the only one that includes spdlog; its default logger is the one mutable global
// of the project, hidden here. The library does not log: it hands errors to callbacks.
#pragma once

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <iosfwd>
#include <string>
#include <string_view>

#include "detent/clock.h"

namespace detent {

enum class LogLevel : std::uint8_t { debug, info, warning, error };
enum class LogFormat : std::uint8_t { text, json };

struct LogOptions {
  LogLevel level = LogLevel::info;  // events below it are dropped
  LogFormat format = LogFormat::text;
  const Clock* clock = nullptr;  // null: the machine's clock; else must outlive all logging
  std::ostream* out = nullptr;   // null: stderr; else must outlive all logging (tests)
};

/// Sets where and how events are written. Call it before other threads log. Without it events of
/// info and above go to stderr as text.
void configure_log(const LogOptions& options);

/// Changes the lowest level that is logged. Thread-safe.
void set_log_level(LogLevel level);

/// Message and fields of one event together are cut at this many bytes (as escaped), and the line
/// then says so; time and level come on top.
inline constexpr std::size_t kLongestLogEvent = 8192;

/// key=value of an event. Keys are our own literals; values may be anything.
class LogField {
 public:
  LogField(std::string_view key, std::string_view value) : key_(key), value_(value) {}
  LogField(std::string_view key, const char* value) : key_(key), value_(value) {}
  LogField(std::string_view key, const std::string& value) : key_(key), value_(value) {}
  LogField(std::string_view key, std::same_as<bool> auto value)
      : key_(key), value_(value ? "true" : "false"), quoted_(false) {}
  template <std::integral Integer>
  requires(!std::same_as<Integer, bool>) LogField(std::string_view key, Integer value)
      : key_(key), value_(std::to_string(value)), quoted_(false) {}

  std::string_view key() const noexcept { return key_; }
  std::string_view value() const noexcept { return value_; }
  /// Whether JSON shows the value as a string.
  bool quoted() const noexcept { return quoted_; }

 private:
  std::string_view key_;
  std::string value_;
  bool quoted_ = true;
};

using LogFields = std::initializer_list<LogField>;

/// Thread-safe; an event below the level costs a comparison (and its arguments).
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

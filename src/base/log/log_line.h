// Renders one event of the log as one line. Pure, so that the escaping and the cap are tested
// without a logger.
#pragma once

#include <string>
#include <string_view>

#include "base/log/log.h"

namespace detent {

/// What a line says. The views must stay valid during the call only.
struct LogEvent {
  WallTime time;
  LogLevel level = LogLevel::info;
  std::string_view message;
  LogFields fields;
};

std::string_view to_string(LogLevel level) noexcept;

/// Without the newline at the end, and without what looks like a secret (redact.h). Valid UTF-8 and
/// free of control characters whatever goes in; in JSON format one valid object. At most
/// kLongestLogEvent bytes and 100 for time, level and the note that the event was cut.
std::string render_log_line(LogFormat format, const LogEvent& event);

}  // namespace detent

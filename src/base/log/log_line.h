// Renders one event of the log as one line. Pure, so that the escaping and the cap are tested
// without a logger.
#pragma once

#include <string>
#include <string_view>

#include "base/log/log.h"

namespace detent {

/// The content of a line. The views must stay valid only during the call.
struct LogEvent {
  WallTime time;
  LogLevel level = LogLevel::info;
  std::string_view message;
  LogFields fields;
};

std::string_view to_string(LogLevel level) noexcept;

/// The line without the newline at the end. Texts that look like a secret are masked (redact.h).
/// The line is valid UTF-8 without control characters for any input; in JSON format it is one valid
/// object. Its size is at most kLongestLogEvent bytes, plus 100 for time, level and the note that
/// the event was cut.
std::string render_log_line(LogFormat format, const LogEvent& event);

}  // namespace detent

// Renders one event of the log as one line. Pure, so tests can check the escaping and the limit
// without a logger.
#pragma once

#include <string>
#include <string_view>

#include "base/log/log.h"

namespace detent {

/// The content of a line. The views need to be valid only during the call.
struct LogEvent {
  WallTime time;
  LogLevel level = LogLevel::info;
  std::string_view message;
  LogFields fields;
};

std::string_view to_string(LogLevel level) noexcept;

/// Returns the line without the line feed at its end. Texts that look like secrets are masked
/// (redact.h). For any input, the line is valid UTF-8 without control characters; in JSON format,
/// it is one valid object. Its size is at most kLongestLogEvent bytes, plus 100 for the time, the
/// level and the note that the event was cut.
std::string render_log_line(LogFormat format, const LogEvent& event);

}  // namespace detent

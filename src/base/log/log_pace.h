// Limits how often a continuing problem is logged: immediately when its cause changes, otherwise
// once per minute. Numbers in the text, such as remaining seconds, do not count as a change. A long
// outage is therefore visible in the log without filling the disk.
#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "base/wall_time.h"
#include "detent/clock.h"

namespace detent {

/// The time since `began`, for a field of a log line. No value in the first second, so that the
/// first line about a problem has no such field.
inline std::optional<std::string> shown_since(MonotonicTime began, MonotonicTime now) {
  const auto passed = std::chrono::floor<std::chrono::seconds>(now - began);
  if (passed < std::chrono::seconds{1}) return std::nullopt;
  return show_duration(passed);
}

/// Thread-compatible.
class LogPace {
 public:
  static constexpr std::chrono::seconds kPeriod{60};

  /// Returns true if this cause should be logged now, and then counts it as logged.
  bool is_worth_a_line(std::string_view cause, MonotonicTime now) {
    std::string words(cause);
    std::erase_if(words, [](char c) { return c >= '0' && c <= '9'; });
    if (told_at_ && words == words_ && now < *told_at_ + kPeriod) return false;
    words_ = std::move(words);
    told_at_ = now;
    return true;
  }

 private:
  std::string words_;  // of the cause, without its digits
  std::optional<MonotonicTime> told_at_;
};

}  // namespace detent

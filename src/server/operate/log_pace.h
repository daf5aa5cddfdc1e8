// Limits how often a continuing problem is logged: immediately when its cause changes, otherwise
// once per minute. Numbers in the text, such as remaining seconds, do not count as a change. A long
// outage is therefore visible in the log without filling the disk.
#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "detent/clock.h"

namespace detent::server {

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

}  // namespace detent::server

// How often something that goes on is logged: at once, when its cause is another, and else at most
// once a minute. So a log that a disk has to hold tells of an outage without being filled by it.
#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <string_view>

#include "detent/clock.h"

namespace detent::server {

/// Thread-compatible.
class LogPace {
 public:
  static constexpr std::chrono::seconds kPeriod{60};

  /// True when it is to be logged that this is the cause, and then counts as logged.
  bool is_worth_a_line(std::string_view cause, MonotonicTime now) {
    if (told_at_ && cause == cause_ && now < *told_at_ + kPeriod) return false;
    cause_ = cause;
    told_at_ = now;
    return true;
  }

 private:
  std::string cause_;
  std::optional<MonotonicTime> told_at_;
};

}  // namespace detent::server

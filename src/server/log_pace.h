// How often something that goes on is logged: at once, when its cause is another, and else at most
// once a minute. Numbers, as of the seconds that are left, make no other cause. So a log that a
// disk has to hold tells of an outage without being filled by it.
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

  /// True when it is to be logged that this is the cause, and then counts as logged.
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

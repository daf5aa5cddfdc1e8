// A clock on which each wait ends immediately: the time jumps to its end. The clock notes the
// lengths of the waits. For tests of code that waits between attempts. Thread-compatible.
#pragma once

#include <chrono>
#include <optional>
#include <vector>

#include "detent/clock.h"

namespace detent::test {

class PassingClock final : public Clock {
 public:
  MonotonicTime now() const noexcept override { return now_; }
  WallInstant wall_now() const noexcept override { return {}; }
  bool wait(Doorbell&, std::optional<MonotonicTime> until) noexcept override {
    pauses.push_back(std::chrono::duration_cast<std::chrono::milliseconds>(*until - now_));
    now_ = *until;
    return false;
  }

  std::vector<std::chrono::milliseconds> pauses;

 private:
  MonotonicTime now_{};
};

}  // namespace detent::test

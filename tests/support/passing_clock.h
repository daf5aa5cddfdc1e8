// A clock on which whoever waits is there at once, and the pauses are noted: for what waits between
// two tries. Thread-compatible.
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

// When somebody must be told: figures of the server that are above their thresholds, and that are
// well below again.
//
// With hysteresis, so that a figure that wavers about its threshold is told once: it fires above
// the threshold, and has recovered at four fifths of it. Of lateness, what counts is how late 99 of
// 100 tasks fired in the last minute, to within its histogram's buckets (the bucket's lower bound:
// what fires is above the threshold for sure); a minute in which nothing fired is not late.
#pragma once

#include <chrono>
#include <cstdint>
#include <deque>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "detent/clock.h"
#include "server/stats_history.h"

namespace detent::server {

/// A figure without a threshold is not watched. A store that has failed always is.
struct Thresholds {
  std::optional<std::uint64_t> pending;               // tasks that are due and not taken
  std::optional<std::uint64_t> dead;                  // tasks out of attempts
  std::optional<std::chrono::milliseconds> lateness;  // due to fired

  bool empty() const noexcept { return !pending && !dead && !lateness; }
};

enum class AlertFigure : std::uint8_t { pending, dead, lateness, store };
enum class AlertState : std::uint8_t { firing, recovered };
std::string_view to_string(AlertFigure figure) noexcept;
std::string_view to_string(AlertState state) noexcept;

/// A figure that has crossed its threshold.
struct Alert {
  AlertFigure figure = AlertFigure::pending;
  AlertState state = AlertState::firing;
  std::uint64_t value = 0;  // tasks, milliseconds, or failed stores
  std::uint64_t threshold = 0;
  WallTime at{};

  friend bool operator==(const Alert&, const Alert&) = default;
};

/// For people: "120 tasks are due and not taken (the threshold is 100)".
std::string text_of(const Alert& alert);
/// As JSON: an event of Standard Webhooks, with type, timestamp and data.
std::string render_alert(const Alert& alert);

/// Thread-compatible.
class ThresholdWatch {
 public:
  static constexpr std::chrono::seconds kLatenessSpan{60};

  explicit ThresholdWatch(Thresholds thresholds) : thresholds_(thresholds) {}

  /// What crossed its threshold since the sample before. Samples come in the order of their times.
  std::vector<Alert> look(const StatsSample& sample);

 private:
  std::uint64_t lateness_ms(const StatsSample& sample);

  const Thresholds thresholds_;
  std::deque<StatsSample> recent_;  // a minute of them, and the one before
  bool is_firing_[4] = {};          // by AlertFigure
};

}  // namespace detent::server

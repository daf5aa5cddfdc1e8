// Checks the figures of the server against thresholds, and reports when a figure crosses its
// threshold or has recovered.
//
// A figure fires above its threshold, and recovers at four fifths of the threshold. The gap
// (hysteresis) prevents repeated alerts for a figure that varies around its threshold.
//
// The lateness figure is the 99th percentile of the last minute. It is as exact as the histogram's
// buckets. It uses the lower bound of the bucket, so an alert is never false. A minute without
// fired tasks is not late.
#pragma once

#include <chrono>
#include <cstdint>
#include <deque>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "detent/clock.h"
#include "server/operate/stats_history.h"

namespace detent::server {

/// A figure without a threshold is not watched. A failed store and a nearly full disk always cause
/// an alert.
struct Thresholds {
  std::optional<std::uint64_t> pending;               // tasks that are ready and not leased
  std::optional<std::uint64_t> dead;                  // tasks that are dead
  std::optional<std::chrono::milliseconds> lateness;  // due to fired

  bool empty() const noexcept { return !pending && !dead && !lateness; }
};

enum class AlertFigure : std::uint8_t { pending, dead, lateness, store, disk };
enum class AlertState : std::uint8_t { firing, recovered };
std::string_view to_string(AlertFigure figure) noexcept;
std::string_view to_string(AlertState state) noexcept;

/// A figure that has crossed its threshold.
struct Alert {
  AlertFigure figure = AlertFigure::pending;
  AlertState state = AlertState::firing;
  std::uint64_t value = 0;  // tasks, milliseconds, failed stores, or nearly full disks
  std::uint64_t threshold = 0;
  WallTime at{};

  friend bool operator==(const Alert&, const Alert&) = default;
};

/// The alert as text for people: "120 tasks are ready and not leased (the threshold is 100)".
std::string text_of(const Alert& alert);
/// The alert as JSON: an event of Standard Webhooks, with type, timestamp and data.
std::string render_alert(const Alert& alert);

/// Thread-compatible.
class ThresholdWatch {
 public:
  static constexpr std::chrono::seconds kLatenessSpan{60};

  explicit ThresholdWatch(Thresholds thresholds) : thresholds_(thresholds) {}

  /// Returns the thresholds that were crossed since the previous sample. Samples must arrive in the
  /// order of their times.
  std::vector<Alert> look(const StatsSample& sample);

 private:
  std::uint64_t lateness_ms(const StatsSample& sample);

  const Thresholds thresholds_;
  std::deque<StatsSample> recent_;  // the samples of the last minute, and the sample before them
  bool is_firing_[5] = {};          // by AlertFigure
};

}  // namespace detent::server

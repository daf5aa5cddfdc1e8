#include "server/operate/thresholds.h"

#include "base/wall_time.h"
#include "protocol/json/json_writer.h"

namespace detent::server {
namespace {

using std::chrono::milliseconds;

/// Where a figure that was above has recovered.
std::uint64_t recovered_at(std::uint64_t threshold) { return threshold - threshold / 5; }

std::string words_of(AlertFigure figure, const std::string& value) {
  switch (figure) {
    case AlertFigure::pending:
      return value + " tasks are ready and not leased";
    case AlertFigure::dead:
      return value + " tasks are dead";
    case AlertFigure::lateness:
      return "1 in 100 tasks fires more than " + value + " ms late";
    case AlertFigure::store:
      return value + " stores have failed and refuse requests until they are open again";
    case AlertFigure::disk:
      return value + " disks are nearly full, and new tasks are refused until there is space";
  }
  return "";
}

std::string_view unit_of(AlertFigure figure) noexcept {
  if (figure == AlertFigure::lateness) return "ms";
  if (figure == AlertFigure::disk) return "disks";
  return figure == AlertFigure::store ? "stores" : "tasks";
}

}  // namespace

std::string_view to_string(AlertFigure figure) noexcept {
  switch (figure) {
    case AlertFigure::pending:
      return "pending";
    case AlertFigure::dead:
      return "dead";
    case AlertFigure::lateness:
      return "lateness";
    case AlertFigure::store:
      return "store";
    case AlertFigure::disk:
      return "disk";
  }
  return "";
}

std::string_view to_string(AlertState state) noexcept {
  switch (state) {
    case AlertState::firing:
      return "firing";
    case AlertState::recovered:
      return "recovered";
  }
  return "";
}

std::string text_of(const Alert& alert) {
  return (alert.state == AlertState::recovered ? "recovered: " : "") +
         words_of(alert.figure, std::to_string(alert.value)) + " (the threshold is " +
         std::to_string(alert.threshold) + ")";
}

std::string render_alert(const Alert& alert) {
  std::string body;
  json::JsonWriter writer(body);
  writer.begin_object();
  writer.name("type").string("alert." + std::string(to_string(alert.state)));
  writer.name("timestamp").string(format_rfc3339(alert.at));
  writer.name("data").begin_object();
  writer.name("alert").string(to_string(alert.figure));
  writer.name("unit").string(unit_of(alert.figure));
  writer.name("value").number(alert.value);
  writer.name("threshold").number(alert.threshold);
  writer.name("text").string(text_of(alert));
  writer.end_object().end_object();
  return body;
}

std::vector<Alert> ThresholdWatch::look(const StatsSample& sample) {
  std::vector<Alert> alerts;
  const auto see = [&](AlertFigure figure, std::uint64_t threshold, std::uint64_t value) {
    bool& is_firing = is_firing_[static_cast<std::size_t>(figure)];
    const bool crosses = is_firing ? value <= recovered_at(threshold) : value > threshold;
    if (!crosses) return;
    is_firing = !is_firing;
    alerts.push_back({.figure = figure,
                      .state = is_firing ? AlertState::firing : AlertState::recovered,
                      .value = value,
                      .threshold = threshold,
                      .at = sample.at});
  };
  see(AlertFigure::store, 0, sample.stats.is_stopped ? 1 : 0);
  see(AlertFigure::disk, 0, sample.stats.refuses_tasks ? 1 : 0);
  if (thresholds_.pending) see(AlertFigure::pending, *thresholds_.pending, sample.stats.all.ready);
  if (thresholds_.dead) see(AlertFigure::dead, *thresholds_.dead, sample.stats.all.dead);
  if (thresholds_.lateness) {
    see(AlertFigure::lateness, static_cast<std::uint64_t>(thresholds_.lateness->count()),
        lateness_ms(sample));
  }
  return alerts;
}

/// The lateness of tasks that fired since the oldest sample of the span.
std::uint64_t ThresholdWatch::lateness_ms(const StatsSample& sample) {
  recent_.push_back(sample);
  while (recent_.size() > 2 && recent_[1].taken_at <= sample.taken_at - kLatenessSpan) {
    recent_.pop_front();
  }
  const auto lateness = difference(recent_.front(), recent_.back()).lateness;
  if (!lateness) return 0;
  return static_cast<std::uint64_t>(std::chrono::floor<milliseconds>(lateness->p99 / 2).count());
}

}  // namespace detent::server

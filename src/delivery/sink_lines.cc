#include "delivery/sink_lines.h"

#include <algorithm>

#include "detent/check.h"
#include "task/sink_name.h"

namespace detent {

SinkLines::SinkLines(const Sinks& sinks, SinkLimits limits, std::uint64_t seed)
    : limits_(limits), rng_(seed) {
  for (const auto& [name, sink] : sinks) {
    lines_.try_emplace(name);
    stats_.try_emplace(name);
  }
}

void SinkLines::begin(const std::string& name) { ++stats_.at(name).under_way; }

bool SinkLines::finish(const std::string& name, SendEnd end, MonotonicTime now) {
  Line& line = lines_.at(name);
  SinkStats& stats = stats_.at(name);
  DETENT_CHECK(stats.under_way > 0);
  --stats.under_way;
  ++stats.ended[static_cast<std::size_t>(end)];
  const bool was_up = stats.is_up;
  stats.is_up = end != SendEnd::failed;
  if (stats.is_up) {
    line.failures = 0;
  } else if (line.failures == 0 || now >= line.try_at) {
    pause(line, now);  // but one for all that fail together
  }
  return stats.is_up != was_up;
}

/// The second half of the pause is random, so that not all sinks return together.
void SinkLines::pause(Line& line, MonotonicTime now) {
  const std::uint32_t doubled = std::min<std::uint32_t>(line.failures, 16);
  const auto longest =
      std::min(limits_.first_pause * (std::int64_t{1} << doubled), limits_.longest_pause);
  line.try_at =
      now + std::chrono::ceil<std::chrono::milliseconds>((0.5 + 0.5 * rng_.unit()) * longest);
  ++line.failures;
}

bool SinkLines::is_held(Line& line, std::size_t under_way, MonotonicTime now) const {
  if (under_way >= limits_.max_under_way) line.is_full = true;
  if (under_way <= limits_.max_under_way / 2) line.is_full = false;
  const bool is_on_trial = line.failures > 0 && (now < line.try_at || under_way > 0);
  return line.is_full || is_on_trial;
}

std::vector<std::string> SinkLines::held(MonotonicTime now) {
  std::vector<std::string> urls;
  for (auto& [name, line] : lines_) {
    if (is_held(line, stats_.at(name).under_way, now))
      urls.push_back(std::string(kSinkScheme) + name);
  }
  return urls;
}

std::optional<MonotonicTime> SinkLines::next_wakeup(MonotonicTime now) const {
  std::optional<MonotonicTime> next;
  for (const auto& [name, line] : lines_) {
    if (line.failures == 0 || line.try_at <= now) continue;
    next = next ? std::min(*next, line.try_at) : line.try_at;
  }
  return next;
}

}  // namespace detent

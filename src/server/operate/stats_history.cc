#include "server/operate/stats_history.h"

#include <algorithm>
#include <optional>

namespace detent::server {
namespace {

using std::chrono::milliseconds;

/// How early a sample may be and still belong to its row. Samples are taken when the thread runs,
/// and without this margin they would slip to every eleventh second.
constexpr milliseconds kEarly{500};

/// Returns the values that a histogram has collected since `before`. Requires: `before` is an
/// earlier state of the same histogram.
std::optional<json::Quantiles> quantiles(const HistogramSnapshot& before, HistogramSnapshot after) {
  after.count -= before.count;
  if (after.count == 0) return std::nullopt;
  std::size_t highest = 0;
  for (std::size_t i = 0; i < after.counts.size(); ++i) {
    if (i < before.counts.size()) after.counts[i] -= before.counts[i];
    if (after.counts[i] > 0) highest = i;
  }
  // Above the last bound the exact value is unknown.
  const auto bounded = [&after](std::chrono::nanoseconds value) {
    return std::min(value, after.bounds.back());
  };
  return json::Quantiles{.p50 = bounded(after.quantile(0.5)),
                         .p99 = bounded(after.quantile(0.99)),
                         .max = after.bounds[std::min(highest, after.bounds.size() - 1)]};
}

TaskCounters operator-(TaskCounters to, const TaskCounters& from) {
  to.scheduled -= from.scheduled;
  to.fired -= from.fired;
  to.leased -= from.leased;
  to.completed -= from.completed;
  to.failed -= from.failed;
  to.cancelled -= from.cancelled;
  to.dead -= from.dead;
  to.leases_expired -= from.leases_expired;
  to.conflicts -= from.conflicts;
  to.quarantined -= from.quarantined;
  return to;
}

ByCause<std::uint64_t> difference_of(ByCause<std::uint64_t> to,
                                     const ByCause<std::uint64_t>& from) {
  for (std::size_t i = 0; i < kLatenessCauses; ++i) to[i] -= from[i];
  return to;
}

}  // namespace

json::StatsPoint difference(const StatsSample& from, const StatsSample& to) {
  const EngineStats none;
  const EngineStats& before = from.stats.epoch == to.stats.epoch ? from.stats : none;
  return {.at = to.at,
          .span = std::chrono::round<milliseconds>(to.taken_at - from.taken_at),
          .counters = to.stats.counters - before.counters,
          .tasks = to.stats.all,
          .loaded = to.stats.loaded,
          .waiting_workers = to.stats.waiting_workers,
          .late = difference_of(to.stats.late.tasks, before.late.tasks),
          .lateness = quantiles(before.lateness, to.stats.lateness),
          .commit = quantiles(before.commit_time, to.stats.commit_time)};
}

void StatsHistory::Ring::add(const StatsSample& sample) {
  if (!samples.empty() && sample.taken_at - samples.back().taken_at < step - kEarly) return;
  samples.push_back(sample);
  if (samples.size() > most) samples.pop_front();
}

void StatsHistory::add(const StatsSample& sample) {
  fine_.add(sample);
  coarse_.add(sample);
}

std::vector<json::StatsPoint> StatsHistory::points(const HistoryRange& range) const {
  const Ring& ring = range.is_fine() ? fine_ : coarse_;
  const std::size_t stride = range.stride();
  const std::size_t most = range.most();
  std::vector<json::StatsPoint> points;
  for (std::size_t at = ring.samples.size(); at > stride && points.size() < most; at -= stride) {
    points.push_back(difference(ring.samples[at - 1 - stride], ring.samples[at - 1]));
  }
  std::ranges::reverse(points);
  return points;
}

}  // namespace detent::server

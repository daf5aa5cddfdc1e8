// The engine's and the server's figures in Prometheus' text format. docs/reference/metrics.md lists
// them.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "base/histogram.h"
#include "engine/engine_stats.h"

namespace detent::server {

/// The largest queues have series of their own; the rest is summed up as queue="other".
inline constexpr std::size_t kMaxQueueSeries = 100;

/// `http` are the durations of requests by route.
std::string render_metrics(const EngineStats& engine,
                           const std::vector<std::pair<std::string, HistogramSnapshot>>& http);

}  // namespace detent::server

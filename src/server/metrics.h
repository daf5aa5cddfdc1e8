// The engine's and the server's figures in Prometheus' text format. docs/reference/metrics.md lists
// them.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/histogram.h"
#include "delivery/deliverer.h"
#include "engine/engine_stats.h"
#include "external/offload_thread.h"

namespace detent::server {

/// Of the page.
inline constexpr std::string_view kMetricsText = "text/plain; version=0.0.4; charset=utf-8";
/// The largest queues have series of their own; the rest is summed up as queue="other".
inline constexpr std::size_t kMaxQueueSeries = 100;

/// `engine` tells at most kMaxQueueSeries queues one by one. `http` are the durations of requests
/// by route; `external` is of far tasks, when another system keeps them; `deliveries` are of
/// webhooks.
std::string render_metrics(const EngineStats& engine,
                           const std::vector<std::pair<std::string, HistogramSnapshot>>& http,
                           const std::optional<OffloadStats>& external = {},
                           const std::optional<DeliveryStats>& deliveries = {});

}  // namespace detent::server

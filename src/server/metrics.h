// The engine's and the server's figures in Prometheus' text format. docs/reference/metrics.md lists
// them.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "delivery/deliverer.h"
#include "engine/engine_stats.h"
#include "external/offload_thread.h"
#include "server/http_reply.h"
#include "server/process_figures.h"

namespace detent::server {

/// Of the page.
inline constexpr std::string_view kMetricsText = "text/plain; version=0.0.4; charset=utf-8";
/// So many queues have series of their own: the largest for their tasks, the ones with the oldest
/// ready tasks for their ages. The rest is queue="other".
inline constexpr std::size_t kMaxQueueSeries = 100;

/// `engine` tells at most kMaxQueueSeries queues one by one, and one more of the oldest. `http` are
/// the durations of requests; `external` is of far tasks, when another system keeps them;
/// `deliveries` are of webhooks.
std::string render_metrics(const EngineStats& engine, const std::vector<HttpDurations>& http,
                           const std::optional<OffloadStats>& external = {},
                           const std::optional<DeliveryStats>& deliveries = {},
                           const ProcessFigures& process = {});

}  // namespace detent::server

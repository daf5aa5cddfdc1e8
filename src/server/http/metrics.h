// The engine's and the server's figures in Prometheus' text format. docs/reference/metrics.md lists
// them.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "delivery/deliverer.h"
#include "engine/values/engine_stats.h"
#include "external/offload_thread.h"
#include "server/http/http_reply.h"
#include "server/operate/process_figures.h"

namespace detent::server {

/// The content type of the page.
inline constexpr std::string_view kMetricsText = "text/plain; version=0.0.4; charset=utf-8";
/// The number of queues with their own series: the largest queues for task counts, and the queues
/// with the oldest ready tasks for ages. All other queues are counted as queue="other". TaskNews
/// selects the queues whose events are counted.
inline constexpr std::size_t kMaxQueueSeries = 100;

/// `engine` has at most kMaxQueueSeries separate queues, and at most one more of the oldest queues,
/// which shows that there are others. `http` has the durations of requests; `external` has the
/// figures of far tasks, if an external scheduler keeps them; `deliveries` has the figures of
/// webhooks.
std::string render_metrics(const EngineStats& engine, const std::vector<HttpDurations>& http,
                           const std::optional<OffloadStats>& external = {},
                           const std::optional<DeliveryStats>& deliveries = {},
                           const ProcessFigures& process = {});

}  // namespace detent::server

#include "server/http/metrics.h"

#include <gtest/gtest.h>

#include "base/histogram.h"

namespace detent::server {
namespace {

bool has_line(const std::string& text, const std::string& line) {
  return ("\n" + text).find("\n" + line + "\n") != std::string::npos;
}

TEST(Metrics, AHistogramsBucketsAreCumulativeAndInSeconds) {
  Histogram lateness({.first = std::chrono::milliseconds{1}, .count = 2});
  lateness.record(std::chrono::microseconds{500});
  lateness.record(std::chrono::milliseconds{2});
  lateness.record(std::chrono::seconds{5});
  const std::string text = render_metrics({.lateness = lateness.snapshot()}, {});
  EXPECT_TRUE(has_line(text, R"(detent_lateness_seconds_bucket{le="0.001"} 1)")) << text;
  EXPECT_TRUE(has_line(text, R"(detent_lateness_seconds_bucket{le="0.002"} 2)"));
  EXPECT_TRUE(has_line(text, R"(detent_lateness_seconds_bucket{le="+Inf"} 3)"));
  EXPECT_TRUE(has_line(text, "detent_lateness_seconds_count 3"));
}

TEST(Metrics, QueuesThatAreNotShownCountAsOther) {
  EngineStats stats{.all = {.scheduled = 5, .ready = 10, .dead = 7},
                    .queue_count = 3,
                    .queues = {{.queue = "a:eu", .ready = 4}, {.queue = "b", .dead = 7}}};
  std::string text = render_metrics(stats, {});
  EXPECT_TRUE(has_line(text, R"(detent_tasks{queue="a:eu",state="ready"} 4)")) << text;
  EXPECT_TRUE(has_line(text, R"(detent_tasks{queue="other",state="scheduled"} 5)"));
  EXPECT_TRUE(has_line(text, R"(detent_tasks{queue="other",state="ready"} 6)"));
  EXPECT_TRUE(has_line(text, R"(detent_tasks{queue="other",state="dead"} 0)"));
  stats.queue_count = 2;
  text = render_metrics(stats, {});
  EXPECT_EQ(text.find(R"(queue="other")"), std::string::npos);
}

// Prometheus refuses a page that has the same series twice.
TEST(Metrics, AQueueOfThatNameIsAmongTheOthers) {
  EngineStats stats{.all = {.ready = 10},
                    .queue_count = 3,
                    .queues = {{.queue = "a", .ready = 4}, {.queue = "other", .ready = 5}}};
  std::string text = render_metrics(stats, {});
  EXPECT_TRUE(has_line(text, R"(detent_tasks{queue="other",state="ready"} 6)")) << text;
  EXPECT_FALSE(has_line(text, R"(detent_tasks{queue="other",state="ready"} 5)"));
  stats.queue_count = 2;
  text = render_metrics(stats, {});
  EXPECT_TRUE(has_line(text, R"(detent_tasks{queue="other",state="ready"} 5)"));
}

TEST(Metrics, EventsAreCountedByQueue) {
  EngineStats stats;
  stats.by_queue["a"] = {.scheduled = 1,
                         .fired = 2,
                         .leased = 3,
                         .completed = 4,
                         .failed = 5,
                         .cancelled = 6,
                         .dead = 7,
                         .leases_expired = 8};
  stats.by_queue["other"] = {.scheduled = 9};
  const std::string text = render_metrics(stats, {});
  const auto has = [&text](const std::string& event, int count) {
    return has_line(text, R"(detent_queue_events_total{queue="a",event=")" + event + "\"} " +
                              std::to_string(count));
  };
  EXPECT_TRUE(has("scheduled", 1)) << text;
  EXPECT_TRUE(has("fired", 2) && has("leased", 3) && has("completed", 4) && has("failed", 5));
  EXPECT_TRUE(has("cancelled", 6) && has("dead", 7) && has("lease_expired", 8));
  EXPECT_TRUE(has_line(text, R"(detent_queue_events_total{queue="other",event="scheduled"} 9)"));
}

QueueStats aged(std::string name, std::chrono::milliseconds age) {
  return {.queue = std::move(name), .ready = 1, .oldest_ready_age = age};
}

TEST(Metrics, TheQueuesWithTheOldestReadyTasksHaveSeries) {
  using namespace std::chrono_literals;
  EngineStats stats{.queue_count = 300, .queues = {{.queue = "large", .dead = 900}}};
  stats.oldest = {aged("small", 1'500ms)};
  std::string text = render_metrics(stats, {});
  EXPECT_TRUE(has_line(text, R"(detent_oldest_ready_age_seconds{queue="small"} 1.5)")) << text;
  EXPECT_EQ(text.find(R"(age_seconds{queue="large"})"), std::string::npos);
  EXPECT_EQ(text.find(R"(age_seconds{queue="other"})"), std::string::npos);
  for (std::size_t i = 1; i < kMaxQueueSeries; ++i) {
    stats.oldest.push_back(aged("q" + std::to_string(i), 1'000ms));
  }
  stats.oldest.push_back(aged("z", 750ms));
  text = render_metrics(stats, {});
  EXPECT_TRUE(has_line(text, R"(detent_oldest_ready_age_seconds{queue="other"} 0.75)")) << text;
  stats.oldest[0].queue = "other";
  text = render_metrics(stats, {});
  EXPECT_TRUE(has_line(text, R"(detent_oldest_ready_age_seconds{queue="other"} 1.5)")) << text;
  EXPECT_FALSE(has_line(text, R"(detent_oldest_ready_age_seconds{queue="other"} 0.75)"));
}

TEST(Metrics, RequestsAreTimedByRouteAndByCode) {
  Histogram fast;
  fast.record(std::chrono::microseconds{500});
  Histogram twice = fast;
  twice.record(std::chrono::milliseconds{500});
  const std::string text = render_metrics(
      {}, {{"/a", 200, twice.snapshot()}, {"/a", 503, fast.snapshot()}, {"/b", 200, {}}});
  const std::string name = "detent_http_request_duration_seconds_count";
  EXPECT_TRUE(has_line(text, name + R"({route="/a",code="200"} 2)")) << text;
  EXPECT_TRUE(has_line(text, name + R"({route="/a",code="503"} 1)"));
  EXPECT_TRUE(has_line(text, R"(detent_http_request_seconds_count{route="/a"} 3)"));
}

TEST(Metrics, AStoreThatFailedOrIsNotReachedIsNotUp) {
  EXPECT_TRUE(has_line(render_metrics({}, {}), "detent_store_up 1"));
  EXPECT_TRUE(has_line(render_metrics({.is_stopped = true}, {}), "detent_store_up 0"));
  EXPECT_TRUE(
      has_line(render_metrics({}, {}, {}, {}, {.is_store_reached = false}), "detent_store_up 0"));
}

TEST(Metrics, AServerThatRefusesTasksTellsIt) {
  EXPECT_TRUE(has_line(render_metrics({}, {}), "detent_refuses_tasks 0"));
  EXPECT_TRUE(has_line(render_metrics({.refuses_tasks = true}, {}), "detent_refuses_tasks 1"));
}

TEST(Metrics, WhatTheSystemAndTheClusterTellIsShownWhereItIsKnown) {
  const std::string text =
      render_metrics({}, {}, {}, {},
                     {.resident_bytes = 4096,
                      .cpu_seconds = 1.5,
                      .start_seconds = 1.75e9,
                      .open_fds = 12,
                      .max_fds = 1024,
                      .memory = MemoryBudget{.bytes = 600, .tasks = 1},
                      .disk = DiskFigures{.free_bytes = 77, .min_free_bytes = 70},
                      .nodes = NodeCounts{.alive = 2, .missing = 1}});
  EXPECT_TRUE(has_line(text, "process_resident_memory_bytes 4096")) << text;
  EXPECT_TRUE(has_line(text, "process_cpu_seconds_total 1.5"));
  EXPECT_TRUE(has_line(text, "process_start_time_seconds 1750000000"));
  EXPECT_TRUE(has_line(text, "process_open_fds 12"));
  EXPECT_TRUE(has_line(text, "process_max_fds 1024"));
  EXPECT_TRUE(has_line(text, "detent_memory_budget_bytes 600"));
  EXPECT_TRUE(has_line(text, "detent_window_limit_tasks 1"));
  EXPECT_TRUE(has_line(text, "detent_data_free_bytes 77"));
  EXPECT_TRUE(has_line(text, "detent_data_min_free_bytes 70"));
  EXPECT_TRUE(has_line(text, R"(detent_cluster_nodes{state="alive"} 2)"));
  EXPECT_TRUE(has_line(text, R"(detent_cluster_nodes{state="missing"} 1)"));
  const std::string none = render_metrics({}, {});
  EXPECT_EQ(none.find("process_"), std::string::npos);
  EXPECT_EQ(none.find("detent_data"), std::string::npos);
  EXPECT_EQ(none.find("detent_cluster"), std::string::npos);
}

TEST(Metrics, SpansAreCountedWithTracing) {
  const std::string text =
      render_metrics({}, {}, {}, {}, {.spans = SpanCounts{.sent = 5, .dropped = 6, .refused = 7}});
  EXPECT_TRUE(has_line(text, R"(detent_trace_spans_total{end="sent"} 5)")) << text;
  EXPECT_TRUE(has_line(text, R"(detent_trace_spans_total{end="dropped"} 6)"));
  EXPECT_TRUE(has_line(text, R"(detent_trace_spans_total{end="refused"} 7)"));
  EXPECT_EQ(render_metrics({}, {}).find("detent_trace"), std::string::npos);
}

TEST(Metrics, FarTasksAreShownWhenAnotherSystemKeepsThem) {
  const OffloadStats external{
      .away = 7, .moves = {.handed_over = 9, .handed_back = 2, .damaged = 4, .errors = 3}};
  const std::string text = render_metrics({}, {}, external);
  EXPECT_TRUE(has_line(text, "detent_external_tasks 7")) << text;
  EXPECT_TRUE(has_line(text, "detent_external_handed_over_total 9"));
  EXPECT_TRUE(has_line(text, "detent_external_handed_back_total 2"));
  EXPECT_TRUE(has_line(text, "detent_external_errors_total 3"));
  EXPECT_TRUE(has_line(text, "detent_external_damaged_total 4"));
  EXPECT_TRUE(has_line(text, "detent_external_lost 0"));
  const OffloadStats lost{.moves = {.lost = Error{ErrorCode::unavailable, "", ""}}};
  EXPECT_TRUE(has_line(render_metrics({}, {}, lost), "detent_external_lost 1"));
  EXPECT_EQ(render_metrics({}, {}).find("external"), std::string::npos);
}

TEST(Metrics, DeliveriesAreShownByHowTheyEnded) {
  DeliveryStats deliveries{.calls = 2, .waiting = 3};
  deliveries.ended[static_cast<std::size_t>(DeliveryEnd::gone)] = 7;
  const std::string text = render_metrics({}, {}, {}, deliveries);
  EXPECT_TRUE(has_line(text, R"(detent_webhook_deliveries_total{end="gone"} 7)")) << text;
  EXPECT_TRUE(has_line(text, R"(detent_webhook_deliveries_total{end="delivered"} 0)"));
  EXPECT_TRUE(has_line(text, "detent_webhook_calls 2"));
  EXPECT_TRUE(has_line(text, "detent_webhook_waiting 3"));
  EXPECT_EQ(render_metrics({}, {}).find("webhook"), std::string::npos);
}

TEST(Metrics, EachSinkIsShown) {
  DeliveryStats deliveries;
  EXPECT_EQ(render_metrics({}, {}, {}, deliveries).find("sink"), std::string::npos);
  deliveries.sinks["a"] = {.ended = {1, 2, 3}, .under_way = 4, .is_up = false};
  deliveries.sinks["b"] = {};
  const std::string text = render_metrics({}, {}, {}, deliveries);
  EXPECT_TRUE(has_line(text, R"(detent_sink_deliveries_total{sink="a",end="refused"} 2)")) << text;
  EXPECT_TRUE(has_line(text, R"(detent_sink_deliveries_total{sink="a",end="failed"} 3)"));
  EXPECT_TRUE(has_line(text, R"(detent_sink_under_way{sink="a"} 4)"));
  EXPECT_TRUE(has_line(text, R"(detent_sink_up{sink="a"} 0)"));
  EXPECT_TRUE(has_line(text, R"(detent_sink_up{sink="b"} 1)"));
}

}  // namespace
}  // namespace detent::server

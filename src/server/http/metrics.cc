#include "server/http/metrics.h"

#include <prometheus/metric_family.h>
#include <prometheus/text_serializer.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstddef>
#include <limits>
#include <map>
#include <string>

#include "server/operate/version.h"

namespace detent::server {
namespace {

using prometheus::ClientMetric;
using prometheus::MetricFamily;
using prometheus::MetricType;

MetricFamily family(std::string name, std::string help, MetricType type) {
  MetricFamily made;
  made.name = std::move(name);
  made.help = std::move(help);
  made.type = type;
  return made;
}

template <class Number>
MetricFamily counter(std::string name, std::string help, Number value) {
  MetricFamily made = family(std::move(name), std::move(help), MetricType::Counter);
  made.metric.emplace_back().counter.value = static_cast<double>(value);
  return made;
}

template <class Number>
MetricFamily gauge(std::string name, std::string help, Number value) {
  MetricFamily made = family(std::move(name), std::move(help), MetricType::Gauge);
  made.metric.emplace_back().gauge.value = static_cast<double>(value);
  return made;
}

double seconds(std::chrono::nanoseconds duration) {
  return std::chrono::duration<double>(duration).count();
}

ClientMetric histogram_metric(const HistogramSnapshot& snapshot) {
  ClientMetric metric;
  metric.histogram.sample_count = snapshot.count;
  metric.histogram.sample_sum = static_cast<double>(snapshot.sum_ns) * 1e-9;
  std::uint64_t cumulative = 0;
  for (std::size_t i = 0; i < snapshot.counts.size(); ++i) {
    cumulative += snapshot.counts[i];
    const bool is_last = i == snapshot.bounds.size();
    metric.histogram.bucket.push_back({.cumulative_count = cumulative,
                                       .upper_bound = is_last
                                                          ? std::numeric_limits<double>::infinity()
                                                          : seconds(snapshot.bounds[i])});
  }
  return metric;
}

MetricFamily histogram(std::string name, std::string help, const HistogramSnapshot& snapshot) {
  MetricFamily made = family(std::move(name), std::move(help), MetricType::Histogram);
  made.metric.push_back(histogram_metric(snapshot));
  return made;
}

/// The label of the sum of all queues without their own series.
constexpr const char* kOther = "other";

/// The total of all queues minus the queues with their own series. A queue named "other" is
/// included.
QueueStats others(const EngineStats& engine) {
  QueueStats other = engine.all;
  other.queue = kOther;
  for (const QueueStats& queue : engine.queues) {
    if (queue.queue == kOther) continue;
    other.scheduled -= queue.scheduled;
    other.ready -= queue.ready;
    other.leased -= queue.leased;
    other.dead -= queue.dead;
  }
  return other;
}

MetricFamily tasks_by_queue(const EngineStats& engine) {
  MetricFamily made = family("detent_tasks", "Tasks by queue and state.", MetricType::Gauge);
  const auto add = [&made](const std::string& queue, const char* state, std::uint64_t count) {
    ClientMetric& metric = made.metric.emplace_back();
    metric.label = {{"queue", queue}, {"state", state}};
    metric.gauge.value = static_cast<double>(count);
  };
  const auto add_queue = [&add](const QueueStats& queue) {
    add(queue.queue, "scheduled", queue.scheduled);
    add(queue.queue, "ready", queue.ready);
    add(queue.queue, "leased", queue.leased);
    add(queue.queue, "dead", queue.dead);
  };
  const bool has_others = engine.queue_count > engine.queues.size();
  for (const QueueStats& queue : engine.queues) {
    if (!has_others || queue.queue != kOther) add_queue(queue);
  }
  if (has_others) add_queue(others(engine));
  return made;
}

/// A queue without a ready task in memory has no series. The first queue after the separate queues
/// is the oldest of the others.
MetricFamily oldest_ready(const EngineStats& engine) {
  MetricFamily made =
      family("detent_oldest_ready_age_seconds",
             "How long the most urgent ready task of a queue has been due.", MetricType::Gauge);
  const auto add = [&made](const std::string& queue, std::chrono::milliseconds age) {
    ClientMetric& metric = made.metric.emplace_back();
    metric.label = {{"queue", queue}};
    metric.gauge.value = seconds(age);
  };
  const bool has_others = engine.oldest.size() > kMaxQueueSeries;
  std::optional<std::chrono::milliseconds> other;
  for (std::size_t i = 0; i < engine.oldest.size(); ++i) {
    const QueueStats& queue = engine.oldest[i];
    if (i >= kMaxQueueSeries || (has_others && queue.queue == kOther)) {
      other = std::max(other, queue.oldest_ready_age);
    } else {
      add(queue.queue, *queue.oldest_ready_age);
    }
  }
  if (other) add(kOther, *other);
  return made;
}

/// The events of tasks by queue.
MetricFamily events_by_queue(const EngineStats& engine) {
  MetricFamily made =
      family("detent_queue_events_total",
             "Events of tasks by queue, for at most 100 queues and other.", MetricType::Counter);
  struct Event {
    const char* name;
    std::uint64_t TaskCounters::*count;
  };
  constexpr std::array<Event, 8> kEvents{{{"scheduled", &TaskCounters::scheduled},
                                          {"fired", &TaskCounters::fired},
                                          {"leased", &TaskCounters::leased},
                                          {"completed", &TaskCounters::completed},
                                          {"failed", &TaskCounters::failed},
                                          {"lease_expired", &TaskCounters::leases_expired},
                                          {"cancelled", &TaskCounters::cancelled},
                                          {"dead", &TaskCounters::dead}}};
  for (const auto& [queue, counts] : engine.by_queue) {
    for (const Event& event : kEvents) {
      ClientMetric& metric = made.metric.emplace_back();
      metric.label = {{"queue", queue}, {"event", event.name}};
      metric.counter.value = static_cast<double>(counts.*event.count);
    }
  }
  return made;
}

/// A counter with a series for each cause of lateness.
template <class Value>
MetricFamily by_cause(std::string name, std::string help, Value value) {
  MetricFamily made = family(std::move(name), std::move(help), MetricType::Counter);
  for (std::size_t i = 0; i < kLatenessCauses; ++i) {
    ClientMetric& metric = made.metric.emplace_back();
    metric.label = {{"cause", std::string(to_string(static_cast<LatenessCause>(i)))}};
    metric.counter.value = value(i);
  }
  return made;
}

/// Commits and the tasks they changed: a summary without quantiles.
MetricFamily batch_size(const EngineStats& engine) {
  MetricFamily made = family("detent_store_batch_size", "Tasks changed by one write to the store.",
                             MetricType::Summary);
  ClientMetric& metric = made.metric.emplace_back();
  metric.summary.sample_count = engine.commits;
  metric.summary.sample_sum = static_cast<double>(engine.committed_tasks);
  return made;
}

void add_http(std::vector<MetricFamily>& families, const std::vector<HttpDurations>& http) {
  MetricFamily by_code =
      family("detent_http_request_duration_seconds",
             "Time from a request to its answer, long polls included.", MetricType::Histogram);
  MetricFamily by_route = by_code;
  by_route.name = "detent_http_request_seconds";
  std::map<std::string, HistogramSnapshot> routes;
  for (const auto& [route, status, durations] : http) {
    ClientMetric& metric = by_code.metric.emplace_back(histogram_metric(durations));
    metric.label = {{"route", route}, {"code", std::to_string(status)}};
    routes[route].add(durations);
  }
  for (const auto& [route, durations] : routes) {
    by_route.metric.emplace_back(histogram_metric(durations)).label = {{"route", route}};
  }
  families.push_back(std::move(by_code));
  families.push_back(std::move(by_route));
}

void add_spans(std::vector<MetricFamily>& families, const SpanCounts& spans) {
  MetricFamily ended =
      family("detent_trace_spans_total", "Spans of traced tasks, by what became of them.",
             MetricType::Counter);
  const auto add = [&ended](const char* end, std::uint64_t count) {
    ClientMetric& metric = ended.metric.emplace_back();
    metric.label = {{"end", end}};
    metric.counter.value = static_cast<double>(count);
  };
  add("sent", spans.sent);
  add("dropped", spans.dropped);
  add("refused", spans.refused);
  families.push_back(std::move(ended));
}

void add_process(std::vector<MetricFamily>& families, const ProcessFigures& process) {
  if (process.cpu_seconds) {
    families.push_back(counter("process_cpu_seconds_total",
                               "Total user and system CPU time spent in seconds.",
                               *process.cpu_seconds));
  }
  const auto add_gauge = [&families](const char* name, const char* help, const auto& value) {
    if (value) families.push_back(gauge(name, help, *value));
  };
  add_gauge("process_start_time_seconds", "Start time of the process since unix epoch in seconds.",
            process.start_seconds);
  add_gauge("process_resident_memory_bytes", "Resident memory size in bytes.",
            process.resident_bytes);
  add_gauge("process_open_fds", "Number of open file descriptors.", process.open_fds);
  add_gauge("process_max_fds", "Maximum number of open file descriptors.", process.max_fds);
  if (process.memory) {
    families.push_back(gauge("detent_memory_budget_bytes",
                             "Memory that the server may use, as set with --memory.",
                             process.memory->bytes));
    families.push_back(
        gauge("detent_window_limit_tasks", "The most tasks in memory.", process.memory->tasks));
  }
  if (process.disk) {
    families.push_back(gauge("detent_data_free_bytes", "Free space on the disk of the data folder.",
                             process.disk->free_bytes));
    families.push_back(gauge("detent_data_min_free_bytes",
                             "With less free space, new tasks are refused (--min-free-disk).",
                             process.disk->min_free_bytes));
  }
  if (process.backup) {
    const std::chrono::duration<double> made_at = process.backup->made_at.time_since_epoch();
    families.push_back(gauge("detent_backup_last_success_timestamp_seconds",
                             "Time of the last complete backup in seconds since unix epoch.",
                             made_at.count()));
    families.push_back(gauge("detent_backup_last_bytes", "Size of the last complete backup.",
                             process.backup->bytes));
    families.push_back(gauge("detent_backup_last_copied_bytes",
                             "Bytes of the last complete backup that no earlier backup had.",
                             process.backup->copied_bytes));
  }
  if (process.spans) add_spans(families, *process.spans);
  if (!process.nodes) return;
  MetricFamily nodes =
      family("detent_cluster_nodes", "Nodes of the cluster: alive, or missing.", MetricType::Gauge);
  const auto add = [&nodes](const char* state, std::uint64_t count) {
    ClientMetric& metric = nodes.metric.emplace_back();
    metric.label = {{"state", state}};
    metric.gauge.value = static_cast<double>(count);
  };
  add("alive", process.nodes->alive);
  add("missing", process.nodes->missing);
  families.push_back(std::move(nodes));
}

MetricFamily build_info() {
  MetricFamily made = gauge("detent_build_info", "Always 1; the labels name the build.", 1);
  made.metric.front().label = {{"version", kVersion}};
  return made;
}

void add_external(std::vector<MetricFamily>& families, const OffloadStats& external) {
  const FarTasksStats& moves = external.moves;
  families.push_back(gauge("detent_external_tasks",
                           "Far tasks that the external scheduler keeps, as counted last.",
                           external.away));
  families.push_back(counter("detent_external_handed_over_total",
                             "Far tasks handed over to the external scheduler.",
                             moves.handed_over));
  families.push_back(counter("detent_external_handed_back_total",
                             "Far tasks that the external scheduler gave back.",
                             moves.handed_back));
  families.push_back(counter("detent_external_errors_total",
                             "Failed attempts to hand tasks over or back.", moves.errors));
  families.push_back(counter("detent_external_damaged_total",
                             "Far tasks that came back damaged and were set aside.",
                             moves.damaged));
  families.push_back(gauge("detent_external_lost",
                           "1 while far tasks that the external scheduler had stored are missing.",
                           moves.lost ? 1 : 0));
}

void add_sinks(std::vector<MetricFamily>& families, const std::map<std::string, SinkStats>& sinks) {
  constexpr std::array<const char*, kSendEnds> kEnds{"delivered", "refused", "failed"};
  MetricFamily ended = family("detent_sink_deliveries_total",
                              "Messages to a sink, by how they ended.", MetricType::Counter);
  MetricFamily under_way = family("detent_sink_under_way",
                                  "Messages that a sink has not answered yet.", MetricType::Gauge);
  MetricFamily up =
      family("detent_sink_up", "1 if the sink accepted the last message that it answered.",
             MetricType::Gauge);
  for (const auto& [name, stats] : sinks) {
    for (std::size_t i = 0; i < kSendEnds; ++i) {
      ClientMetric& metric = ended.metric.emplace_back();
      metric.label = {{"sink", name}, {"end", kEnds[i]}};
      metric.counter.value = static_cast<double>(stats.ended[i]);
    }
    ClientMetric& count = under_way.metric.emplace_back();
    count.label = {{"sink", name}};
    count.gauge.value = static_cast<double>(stats.under_way);
    ClientMetric& state = up.metric.emplace_back();
    state.label = {{"sink", name}};
    state.gauge.value = stats.is_up ? 1 : 0;
  }
  families.push_back(std::move(ended));
  families.push_back(std::move(under_way));
  families.push_back(std::move(up));
}

void add_deliveries(std::vector<MetricFamily>& families, const DeliveryStats& deliveries) {
  MetricFamily ended =
      family("detent_webhook_deliveries_total",
             "Attempts to deliver to a webhook, by how they ended.", MetricType::Counter);
  for (std::size_t i = 0; i < deliveries.ended.size(); ++i) {
    ClientMetric& metric = ended.metric.emplace_back();
    metric.label = {{"end", std::string(to_string(static_cast<DeliveryEnd>(i)))}};
    metric.counter.value = static_cast<double>(deliveries.ended[i]);
  }
  families.push_back(std::move(ended));
  families.push_back(
      gauge("detent_webhook_calls", "Webhooks that are being called.", deliveries.calls));
  families.push_back(gauge("detent_webhook_waiting",
                           "Tasks that are due and wait for their webhook's host.",
                           deliveries.waiting));
  if (!deliveries.sinks.empty()) add_sinks(families, deliveries.sinks);
}

}  // namespace

std::string render_metrics(const EngineStats& engine, const std::vector<HttpDurations>& http,
                           const std::optional<OffloadStats>& external,
                           const std::optional<DeliveryStats>& deliveries,
                           const ProcessFigures& process) {
  const TaskCounters& counts = engine.counters;
  std::vector<MetricFamily> families{
      tasks_by_queue(engine),
      oldest_ready(engine),
      events_by_queue(engine),
      gauge("detent_window_tasks", "Tasks in memory.", engine.loaded),
      gauge("detent_waiting_workers", "Workers that wait for a task.", engine.waiting_workers),
      gauge("detent_schedules", "Recurring schedules.", engine.schedules),
      counter("detent_scheduled_total", "Tasks accepted.", counts.scheduled),
      counter("detent_fired_total", "Tasks that became due, retries included.", counts.fired),
      counter("detent_leased_total", "Tasks handed out.", counts.leased),
      counter("detent_completed_total", "Tasks completed.", counts.completed),
      counter("detent_failed_total", "Failed attempts that workers reported.", counts.failed),
      counter("detent_cancelled_total", "Tasks cancelled.", counts.cancelled),
      counter("detent_dead_total", "Tasks that became dead.", counts.dead),
      counter("detent_lease_expired_total", "Expired leases.", counts.leases_expired),
      counter("detent_lease_conflicts_total", "Requests with a lease that was no longer valid.",
              counts.conflicts),
      counter("detent_quarantined_total", "Damaged records set aside.", counts.quarantined),
      counter("detent_orphans_total", "Tasks in memory that are stuck because of a bug.",
              engine.orphans),
      histogram("detent_lateness_seconds", "Time from the due time of a task to its firing.",
                engine.lateness),
      by_cause("detent_late_tasks_total", "Tasks handed out a second or more late, by main cause.",
               [&](std::size_t i) { return static_cast<double>(engine.late.tasks[i]); }),
      by_cause("detent_late_seconds_total",
               "Time from the due times of tasks to their hand-outs, by cause.",
               [&](std::size_t i) { return seconds(engine.late.time[i]); }),
      histogram("detent_store_commit_seconds", "Time of one write to the store.",
                engine.commit_time),
      batch_size(engine),
      gauge("detent_store_up",
            "1 while the store works; 0 after a failure, until it is open again.",
            !engine.is_stopped && process.is_store_reached ? 1 : 0),
      gauge("detent_refuses_tasks",
            "1 while new tasks are refused because the disk is nearly full.",
            engine.refuses_tasks ? 1 : 0),
      gauge("detent_shard_epoch", "Epoch of the engine; it rises each time the store is opened.",
            engine.epoch),
      build_info()};
  add_http(families, http);
  add_process(families, process);
  if (external) add_external(families, *external);
  if (deliveries) add_deliveries(families, *deliveries);
  return prometheus::TextSerializer().Serialize(families);
}

}  // namespace detent::server

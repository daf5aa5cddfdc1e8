#include "protocol/json/stats_point.h"

#include "base/wall_time.h"
#include "protocol/json/json_writer.h"
#include "protocol/json/lateness_json.h"
#include "protocol/json/queue_renderer.h"

namespace detent::json {
namespace {

using std::chrono::microseconds;

void write_quantiles(JsonWriter& writer, const std::optional<Quantiles>& quantiles) {
  if (!quantiles) {
    writer.null();
    return;
  }
  writer.begin_object();
  writer.name("p50").number(std::chrono::ceil<microseconds>(quantiles->p50).count());
  writer.name("p99").number(std::chrono::ceil<microseconds>(quantiles->p99).count());
  writer.name("max").number(std::chrono::ceil<microseconds>(quantiles->max).count());
  writer.end_object();
}

void write_latencies(JsonWriter& writer, const StatsPoint& point) {
  writer.name("late");
  write_by_cause(writer, point.late);
  writer.name("lateness_us");
  write_quantiles(writer, point.lateness);
  writer.name("commit_us");
  write_quantiles(writer, point.commit);
}

/// Writes the members of a point into an object that the caller has begun.
void write_point(JsonWriter& writer, const StatsPoint& point) {
  writer.name("at").string(format_rfc3339(point.at));
  writer.name("span_ms").number(point.span.count());
  writer.name("accepted").number(point.counters.scheduled);
  writer.name("fired").number(point.counters.fired);
  writer.name("leased").number(point.counters.leased);
  writer.name("completed").number(point.counters.completed);
  writer.name("failed").number(point.counters.failed);
  writer.name("died").number(point.counters.dead);
  writer.name("tasks");
  write_task_counts(writer, point.tasks);
  writer.name("loaded").number(point.loaded);
  writer.name("waiting_workers").number(point.waiting_workers);
  write_latencies(writer, point);
}

}  // namespace

std::string render_stats_event(const StatsPoint& point, const StatsPoint& recent) {
  std::string data;
  JsonWriter writer(data);
  writer.begin_object();
  write_point(writer, point);
  writer.name("recent").begin_object();
  writer.name("span_ms").number(recent.span.count());
  write_latencies(writer, recent);
  writer.end_object().end_object();
  return data;
}

std::string render_task_event(const TaskChange& change) {
  std::string data;
  JsonWriter writer(data);
  writer.begin_object();
  writer.name("id").string(to_string(change.id));
  writer.name("queue").string(change.queue);
  writer.name("change").string(to_string(change.event));
  writer.name("state").string(to_string(change.state));
  writer.name("at").string(format_rfc3339(change.at));
  writer.end_object();
  return data;
}

std::string render_missed_event(std::optional<std::uint64_t> missed) {
  std::string data;
  JsonWriter writer(data);
  writer.begin_object().name("missed");
  if (missed) {
    writer.number(*missed);
  } else {
    writer.null();
  }
  writer.end_object();
  return data;
}

std::string render_history(std::chrono::milliseconds step, std::span<const StatsPoint> points) {
  std::string body;
  JsonWriter writer(body);
  writer.begin_object();
  writer.name("step_ms").number(step.count());
  writer.name("points").begin_array();
  for (const StatsPoint& point : points) {
    writer.begin_object();
    write_point(writer, point);
    writer.end_object();
  }
  writer.end_array().end_object();
  return body;
}

}  // namespace detent::json

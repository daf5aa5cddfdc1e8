#include "protocol/json/stats_point.h"

#include "protocol/json/field_table.h"
#include "protocol/json/queue_fields.h"
#include "protocol/json/task_fields.h"
#include "task/limits.h"

namespace detent::json {
namespace {

/// Writes nanoseconds as whole microseconds, rounded up.
struct Microseconds {
  static void write(auto /*form*/, JsonWriter& writer, std::chrono::nanoseconds value) {
    writer.number(std::chrono::ceil<std::chrono::microseconds>(value).count());
  }
};
using QuantileFields = Table<Required<"p50", &Quantiles::p50, Microseconds>,
                             Required<"p99", &Quantiles::p99, Microseconds>,
                             Required<"max", &Quantiles::max, Microseconds>>;
using LatencyFields = Table<Required<"late", &StatsPoint::late>,
                            Nullable<"lateness_us", &StatsPoint::lateness, Object<QuantileFields>>,
                            Nullable<"commit_us", &StatsPoint::commit, Object<QuantileFields>>>;
template <FixedText kName, auto kCounter>
using Counter = Required<kName, kAt<&StatsPoint::counters, kCounter>>;
using SpanField = Required<"span_ms", &StatsPoint::span>;
using PointFields =
    Table<Required<"at", &StatsPoint::at>, SpanField, Counter<"accepted", &TaskCounters::scheduled>,
          Counter<"fired", &TaskCounters::fired>, Counter<"leased", &TaskCounters::leased>,
          Counter<"completed", &TaskCounters::completed>, Counter<"failed", &TaskCounters::failed>,
          Counter<"died", &TaskCounters::dead>,
          Required<"tasks", &StatsPoint::tasks, Object<TaskCountFields>>,
          Required<"loaded", &StatsPoint::loaded>,
          Required<"waiting_workers", &StatsPoint::waiting_workers>, LatencyFields>;

using ChangeFields =
    AnswerBody<TaskChange, Required<"id", &TaskChange::id>, Required<"queue", &TaskChange::queue>,
               Required<"change", &TaskChange::event>, Required<"state", &TaskChange::state>,
               Required<"at", &TaskChange::at>>;

/// Whole milliseconds, for readers too.
constexpr std::uint64_t kMostMs = std::chrono::milliseconds{kMaxDelay}.count();
template <FixedText kName, auto kMember>
using Milliseconds = Required<kName, kMember, Range<0, kMostMs>>;
using HandOutLatenessFields =
    Table<Milliseconds<"mean", &HandOutLateness::mean>, Milliseconds<"max", &HandOutLateness::max>>;
using QueuePointFields =
    Table<Required<"at", &QueuePoint::at>, Milliseconds<"span_ms", &QueuePoint::span>,
          Required<"accepted", &QueuePoint::accepted>, Required<"fired", &QueuePoint::fired>,
          Required<"leased", &QueuePoint::leased>, Required<"completed", &QueuePoint::completed>,
          Required<"failed", &QueuePoint::failed>, Required<"expired", &QueuePoint::expired>,
          Required<"died", &QueuePoint::died>,
          Nullable<"lateness_ms", &QueuePoint::lateness, Object<HandOutLatenessFields>>>;
using QueueHistoryFields =
    AnswerBody<QueueHistory, Required<"queue", &QueueHistory::queue>,
               Milliseconds<"step_ms", &QueueHistory::step>,
               Required<"since", &QueueHistory::since>,
               Required<"points", &QueueHistory::points, Objects<QueuePointFields>>>;

}  // namespace

std::string render_queue_history(const QueueHistory& history) {
  return QueueHistoryFields::render(history);
}

Result<QueueHistory> parse_queue_history(std::string_view body) {
  return QueueHistoryFields::parse(body);
}

std::string render_stats_event(const StatsPoint& point, const StatsPoint& recent) {
  std::string data;
  JsonWriter writer(data);
  writer.begin_object();
  PointFields::write(kAnswer, writer, point);
  write_object<Table<SpanField, LatencyFields>>(kAnswer, writer.name("recent"), recent);
  writer.end_object();
  return data;
}

std::string render_task_event(const TaskChange& change) { return ChangeFields::render(change); }

std::string render_missed_event(std::optional<std::uint64_t> missed) {
  return AnswerBody<std::uint64_t, Nullable<"missed", std::identity{}>>::render(missed);
}

std::string render_history(std::chrono::milliseconds step, std::span<const StatsPoint> points) {
  std::string body;
  JsonWriter writer(body);
  writer.begin_object().name("step_ms").number(step.count());
  Objects<PointFields>::write(kAnswer, writer.name("points"), points);
  writer.end_object();
  return body;
}

}  // namespace detent::json

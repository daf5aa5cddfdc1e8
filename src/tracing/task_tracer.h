// Makes the spans of tasks. Each place in the server that accepts, leases, delivers or settles a
// task makes one call here.
//
// A task is traced if its header `traceparent` says that it is sampled. The header comes from the
// request or from the body of the task, and is stored with the task. So the trace goes on after a
// restart, and on another node. If a new task has no trace, a share of such tasks gets a trace of
// its own; the header then names the span of the accept. Parents:
//
//     traceparent of the task
//     ├─ accept            (or it is itself the span that traceparent names)
//     ├─ wait
//     └─ lease
//        ├─ deliver
//        └─ complete, fail, release or bury
//
// The end of a lease names only the lease. Therefore the open leases of traced tasks are kept in
// memory. After a restart, a lease from before has no such entry, and its end makes no span.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "base/mutex.h"
#include "base/result.h"
#include "base/rng.h"
#include "detent/clock.h"
#include "task/request.h"
#include "task/webhook.h"
#include "tracing/span.h"
#include "tracing/span_exporter.h"

namespace detent {

struct TracingOptions {
  std::string endpoint;  // of OTLP over HTTP; empty: no tracing
  double ratio = 1;      // of the tasks without a trace, the share that gets one
  TracedService service = {};
};

/// Thread-safe.
class TaskTracer {
 public:
  /// The number of leases after which a lease is forgotten, also if it has not ended.
  static constexpr std::size_t kMaxLeases = 100'000;

  /// Returns null without an endpoint. `clock` must outlive it. Errors: as SpanExporter::start().
  static Result<std::unique_ptr<TaskTracer>> start(const TracingOptions& options, Clock& clock);
  TaskTracer(std::unique_ptr<SpanSink> sink, const Clock& clock, double ratio, std::uint64_t seed);

  /// A traced task that is being accepted.
  struct Accept {
    TraceContext context;
    bool is_first = false;  // the span of the accept is context.span
    WallInstant began{};
  };
  /// Call this before the task is scheduled. Adds a `traceparent` if the task has none, is in the
  /// sample, and has room for the header. Returns no value if the task is not traced.
  std::optional<Accept> begin_accept(TaskHeaders& headers) DETENT_EXCLUDES(mutex_);
  /// Call this when the task is durable. Makes no span for a task that was there before.
  void accepted(const Accept& accept, const TaskSnapshot& view) DETENT_EXCLUDES(mutex_);
  /// Call this when a worker or the deliverer has the task.
  void leased(const LeasedTask& leased) DETENT_EXCLUDES(mutex_);

  struct Call {
    MonotonicTime began{};
    std::string receiver;  // see Span
    std::optional<int> status = {};
    std::string error = {};
  };
  /// Call this when a webhook or sink has answered, before settled().
  void delivered(LeaseToken lease, Call call) DETENT_EXCLUDES(mutex_);
  /// Call this when the end of the lease is durable. `began` is when the request came. Requires:
  /// `how` is the end of a lease.
  void settled(LeaseToken lease, SpanStep how, WallInstant began) DETENT_EXCLUDES(mutex_);

  WallInstant now() const noexcept { return clock_.wall_now(); }
  SpanCounts counts() const { return sink_->counts(); }

 private:
  struct Lease {
    TraceId trace;
    SpanId span;
    std::string queue;
    TaskId task;
    std::uint32_t attempt = 0;
  };
  SpanId new_span() DETENT_REQUIRES(mutex_);
  /// A span of the lease, with a new id.
  Span span_of(const Lease& lease, SpanStep step) DETENT_REQUIRES(mutex_);

  // Constant after construction.
  const Clock& clock_;
  const double ratio_;
  const std::unique_ptr<SpanSink> sink_;

  Mutex mutex_;
  Rng rng_ DETENT_GUARDED_BY(mutex_);
  using LeaseKey = std::pair<std::uint64_t, std::uint64_t>;  // epoch and number
  std::map<LeaseKey, Lease> leases_ DETENT_GUARDED_BY(mutex_);
  std::deque<LeaseKey> oldest_first_ DETENT_GUARDED_BY(mutex_);  // also leases that have ended
};

}  // namespace detent

#include "tracing/task_tracer.h"

#include <algorithm>
#include <chrono>

namespace detent {
namespace {

constexpr const char* kTraceparent = "traceparent";

/// The trace of a task; no value if it is not traced.
std::optional<TraceContext> trace_of(const TaskHeaders& headers) noexcept {
  const std::string* const header = find_header(headers, kTraceparent);
  if (header == nullptr) return std::nullopt;
  const std::optional<TraceContext> context = parse_traceparent(*header);
  return context && context->is_sampled ? context : std::nullopt;
}

std::pair<std::uint64_t, std::uint64_t> key_of(LeaseToken lease) noexcept {
  return {lease.epoch, lease.number};
}

}  // namespace

Result<std::unique_ptr<TaskTracer>> TaskTracer::start(const TracingOptions& options, Clock& clock) {
  if (options.endpoint.empty()) return std::unique_ptr<TaskTracer>();
  Result<std::unique_ptr<SpanExporter>> exporter =
      SpanExporter::start(options.endpoint, options.service, clock);
  if (!exporter) return with_context("--otlp-endpoint", std::move(exporter).error());
  return std::make_unique<TaskTracer>(*std::move(exporter), clock, options.ratio, random_seed());
}

TaskTracer::TaskTracer(std::unique_ptr<SpanSink> sink, const Clock& clock, double ratio,
                       std::uint64_t seed)
    : clock_(clock), ratio_(ratio), sink_(std::move(sink)), rng_(seed) {}

SpanId TaskTracer::new_span() {
  for (;;) {
    if (const std::uint64_t value = rng_.next(); value != 0) return {value};
  }
}

Span TaskTracer::span_of(const Lease& lease, SpanStep step) {
  return {.step = step,
          .trace = lease.trace,
          .id = new_span(),
          .parent = lease.span,
          .queue = lease.queue,
          .task = lease.task,
          .attempt = lease.attempt};
}

std::optional<TaskTracer::Accept> TaskTracer::begin_accept(TaskHeaders& headers) {
  if (find_header(headers, kTraceparent) != nullptr) {
    const std::optional<TraceContext> context = trace_of(headers);
    if (!context) return std::nullopt;
    return Accept{.context = *context, .began = clock_.wall_now()};
  }
  TraceContext context{.is_sampled = true};
  {
    const MutexLock lock(mutex_);
    context.trace = {.high = new_span().value, .low = rng_.next()};
    context.span = new_span();
  }
  if (!is_in_sample(context.trace, ratio_)) return std::nullopt;
  keep_trace(headers, to_traceparent(context), {});
  if (!trace_of(headers)) return std::nullopt;  // there was no room
  return Accept{.context = context, .is_first = true, .began = clock_.wall_now()};
}

void TaskTracer::accepted(const Accept& accept, const TaskSnapshot& view) {
  if (view.was_there) return;
  Span span{.step = SpanStep::accept,
            .trace = accept.context.trace,
            .id = accept.context.span,
            .began = accept.began,
            .ended = std::max(accept.began, clock_.wall_now()),
            .queue = view.task.queue,
            .task = view.task.id,
            .payload_bytes = view.task.payload.data.size()};
  if (!accept.is_first) {
    span.parent = accept.context.span;
    const MutexLock lock(mutex_);
    span.id = new_span();
  }
  sink_->add(std::move(span));
}

void TaskTracer::leased(const LeasedTask& leased) {
  const Task& task = leased.task;
  const std::optional<TraceContext> context = trace_of(task.headers);
  if (!context) return;
  Lease lease{.trace = context->trace,
              .span = context->span,
              .queue = task.queue,
              .task = task.id,
              .attempt = leased.attempt};
  Span wait;
  Span span;
  {
    const MutexLock lock(mutex_);
    wait = span_of(lease, SpanStep::wait);
    span = span_of(lease, SpanStep::lease);
    lease.span = span.id;
    const LeaseKey key = key_of(leased.lease);
    if (leases_.insert_or_assign(key, std::move(lease)).second) oldest_first_.push_back(key);
    if (oldest_first_.size() > kMaxLeases) {
      leases_.erase(oldest_first_.front());
      oldest_first_.pop_front();
    }
  }
  wait.ended = span.began = task.due_at + leased.lateness;
  wait.began = std::min<WallInstant>(std::max(task.due_at, task.created_at), wait.ended);
  span.ended = std::max(span.began, clock_.wall_now());
  sink_->add(std::move(wait));
  sink_->add(std::move(span));
}

void TaskTracer::delivered(LeaseToken lease, Call call) {
  Span span;
  {
    const MutexLock lock(mutex_);
    const auto found = leases_.find(key_of(lease));
    if (found == leases_.end()) return;
    span = span_of(found->second, SpanStep::deliver);
  }
  span.ended = clock_.wall_now();
  span.began = span.ended - std::max(clock_.now() - call.began, std::chrono::nanoseconds{0});
  span.receiver = std::move(call.receiver);
  span.status = call.status;
  span.error = std::move(call.error);
  sink_->add(std::move(span));
}

void TaskTracer::settled(LeaseToken lease, SpanStep how, WallInstant began) {
  Span span;
  {
    const MutexLock lock(mutex_);
    const auto found = leases_.find(key_of(lease));
    if (found == leases_.end()) return;
    span = span_of(found->second, how);
    leases_.erase(found);
  }
  span.began = began;
  span.ended = std::max(began, clock_.wall_now());
  sink_->add(std::move(span));
}

}  // namespace detent

// A span of a task's trace: one step of the task in this server, with its times. otlp_json.h writes
// it for a collector.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "detent/clock.h"
#include "task/task.h"
#include "tracing/trace_context.h"

namespace detent {

/// The step. docs/operating/monitoring.md describes the spans of each.
enum class SpanStep : std::uint8_t {
  accept,    // a request creates the task
  wait,      // from the due time to the lease
  lease,     // a worker or the deliverer gets the task
  deliver,   // a call to a webhook, or a message to a sink
  complete,  // the ends of a lease
  fail,
  release,
  bury,
};
inline constexpr std::size_t kSpanSteps = 8;

constexpr std::string_view to_string(SpanStep step) noexcept {
  constexpr std::array<std::string_view, kSpanSteps> kNames{
      "accept", "wait", "lease", "deliver", "complete", "fail", "release", "bury"};
  return kNames[static_cast<std::size_t>(step)];
}

struct Span {
  SpanStep step = SpanStep::accept;
  TraceId trace;
  SpanId id;
  SpanId parent = {};  // zero: the first span of its trace
  WallInstant began{};
  WallInstant ended{};  // not before `began`
  std::string queue = {};
  TaskId task;
  std::uint32_t attempt = 0;        // counted from 1; 0 before the first lease
  std::string receiver = {};        // deliver: HOST or HOST:PORT of the webhook, or "sink:NAME"
  std::optional<int> status = {};   // deliver: of the HTTP answer
  std::string error = {};           // deliver: the kind of failure; empty after a success
  std::uint64_t payload_bytes = 0;  // accept

  friend bool operator==(const Span&, const Span&) = default;
};

/// Counts of spans since the start. Every span is in one count at the end.
struct SpanCounts {
  std::uint64_t sent = 0;     // a collector accepted the batch
  std::uint64_t dropped = 0;  // there was no room, or the server stopped
  std::uint64_t refused = 0;  // a collector refused the batch for good

  friend bool operator==(const SpanCounts&, const SpanCounts&) = default;
};

/// Takes ended spans. Thread-safe.
class SpanSink {
 public:
  virtual ~SpanSink() = default;
  /// Takes one short lock, and never fails: without room, the span is dropped.
  virtual void add(Span span) = 0;
  virtual SpanCounts counts() const = 0;
};

}  // namespace detent

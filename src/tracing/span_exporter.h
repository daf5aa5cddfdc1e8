// Sends spans to a collector: OTLP over HTTP, as JSON.
//
// add() puts a span into a buffer. A thread takes batches from it and makes one call at a time. A
// batch that got no answer, or an answer that allows another try, is sent again: after 1 s, then
// 2 s, up to every 30 s. In this time the buffer fills up, and then further spans are dropped and
// counted. So a slow collector costs memory up to the limit of the buffer, and never delays a task.
#pragma once

#include <chrono>
#include <cstddef>
#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/mutex.h"
#include "base/result.h"
#include "base/thread.h"
#include "detent/clock.h"
#include "net/address/host_resolver.h"
#include "net/http_client/http_caller.h"
#include "net/message/http_url.h"
#include "tracing/otlp_json.h"
#include "tracing/span.h"

namespace detent {

/// The URL for traces of an endpoint of OTLP: the endpoint and "/v1/traces". Errors:
/// `invalid_argument` as net::parse_http_url(), or if the endpoint has a query.
Result<net::HttpUrl> traces_url(const std::string& endpoint);

/// Thread-safe.
class SpanExporter final : public SpanSink {
 public:
  static constexpr std::size_t kMaxBuffered = 32'768;  // about 8 MB
  static constexpr std::size_t kBatch = 512;
  /// A batch that is not full waits for this time.
  static constexpr std::chrono::seconds kDelay{1};
  static constexpr std::chrono::seconds kFirstRetry{1};
  static constexpr std::chrono::seconds kLongestRetry{30};
  /// How long the spans that are left may take at the end.
  static constexpr std::chrono::seconds kGrace{2};

  struct Target {
    net::HttpUrl url;
    std::unique_ptr<net::HostResolver> resolver = {};  // the caller's; may be null
    std::unique_ptr<net::HttpCaller> caller;
  };
  /// Starts an exporter with its own HttpCaller, which may call every address. `clock` must outlive
  /// it. Errors: as traces_url() and HttpCaller::start().
  static Result<std::unique_ptr<SpanExporter>> start(const std::string& endpoint,
                                                     TracedService service, Clock& clock);
  SpanExporter(Target target, TracedService service, Clock& clock);
  /// Sends the spans that are left, for at most kGrace.
  ~SpanExporter() override;
  SpanExporter(const SpanExporter&) = delete;
  SpanExporter& operator=(const SpanExporter&) = delete;

  void add(Span span) override DETENT_EXCLUDES(mutex_);
  SpanCounts counts() const override DETENT_EXCLUDES(mutex_);

 private:
  void run();
  /// Returns when the next step is needed: an empty inner value means at a ring. Returns no outer
  /// value when the thread must end.
  std::optional<std::optional<MonotonicTime>> step(MonotonicTime now) DETENT_EXCLUDES(mutex_);
  void take_outcome(MonotonicTime now) DETENT_REQUIRES(mutex_);
  void take_batch(MonotonicTime now) DETENT_REQUIRES(mutex_);
  void note_acceptance(const std::string& problem);
  void send();

  // Constant after construction.
  const TracedService service_;
  const net::HttpUrl url_;
  Clock& clock_;

  Doorbell bell_;  // synchronizes itself

  mutable Mutex mutex_;
  std::deque<Span> buffer_ DETENT_GUARDED_BY(mutex_);  // the oldest first
  SpanCounts counts_ DETENT_GUARDED_BY(mutex_);
  std::optional<net::CallOutcome> outcome_ DETENT_GUARDED_BY(mutex_);  // of the running call
  std::optional<MonotonicTime> stop_at_ DETENT_GUARDED_BY(mutex_);

  // Used only by the thread.
  std::vector<Span> batch_;  // being sent, or waiting to be sent again
  bool is_sending_ = false;
  bool is_accepted_ = true;  // by the last answer
  std::optional<MonotonicTime> flush_at_;
  MonotonicTime send_at_{};
  std::chrono::seconds retry_ = kFirstRetry;

  std::unique_ptr<net::HostResolver> resolver_;
  std::unique_ptr<net::HttpCaller> caller_;
  Thread thread_;  // ends first
};

}  // namespace detent

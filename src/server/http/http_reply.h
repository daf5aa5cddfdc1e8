// The answer to one HTTP request. It knows the route and the start time, so every answer is
// measured. It converts errors to problem+json.
#pragma once

#include <chrono>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/histogram.h"
#include "base/mutex.h"
#include "base/result.h"
#include "detent/clock.h"
#include "net/http_server/http_server.h"
#include "server/access/audit.h"

namespace detent::server {

/// The durations of requests, for one route and one status.
struct HttpDurations {
  std::string route;
  int status = 0;
  HistogramSnapshot durations;
};

/// The durations of requests by route and status. Thread-safe.
class HttpMetrics {
 public:
  explicit HttpMetrics(const Clock& clock) : clock_(clock) {}

  MonotonicTime now() const noexcept { return clock_.now(); }
  /// `route` must outlive this.
  void record(std::string_view route, int status, std::chrono::nanoseconds duration)
      DETENT_EXCLUDES(mutex_);
  /// By route, then status.
  std::vector<HttpDurations> snapshot() const DETENT_EXCLUDES(mutex_);

 private:
  const Clock& clock_;
  mutable Mutex mutex_;
  std::map<std::pair<std::string_view, int>, Histogram> durations_ DETENT_GUARDED_BY(mutex_);
};

/// Copyable; all copies answer the same request, and only the first answer counts. Thread-safe.
class HttpReply {
 public:
  /// `route` is a pattern of the route table, so it outlives every request. So does
  /// `shared_with`, the origin whose pages may read the answer ("*": all), or "".
  HttpReply(net::Responder responder, std::string_view route, std::string_view shared_with,
            HttpMetrics& metrics)
      : responder_(std::move(responder)),
        route_(route),
        shared_with_(shared_with),
        metrics_(&metrics),
        start_(metrics.now()) {}

  /// Logs the answer to the audit log. Call it before the reply is copied.
  /// `log` must outlive it.
  void audit(AuditLog& log, AuditedAct act) {
    audit_ = &log;
    act_ = std::make_shared<const AuditedAct>(std::move(act));
  }

  void send(net::HttpResponse response) const;
  /// See net::Responder::stream. The duration ends when the stream begins.
  net::ResponseStream stream(net::HttpResponse head) const;
  void send_json(int status, std::string body) const;
  /// See net::Responder::offer.
  bool offer_json(int status, std::string body) const;
  /// Sends an answer after an offer failed, to a client that may still be connected. The failed
  /// offer was already measured.
  void send_instead(int status, std::string body) const;
  void send_error(const Error& error) const;
  /// See net::Responder::on_gone.
  void on_gone(UniqueFunction<void()> gone) const { responder_.on_gone(std::move(gone)); }

  /// The part of send() before the sending: it measures the answer, logs it, and adds the header
  /// that permits other origins to read it. Use it for an answer that is sent in another way.
  void note(net::HttpResponse& response) const;

 private:
  void share(net::HttpResponse& response) const;

  net::Responder responder_;
  std::string_view route_;
  std::string_view shared_with_;
  HttpMetrics* metrics_;
  MonotonicTime start_;
  AuditLog* audit_ = nullptr;              // null without act_
  std::shared_ptr<const AuditedAct> act_;  // shared by the copies; null: not logged
};

/// The problem+json answer for an error.
net::HttpResponse http_error(const Error& error);
/// The problem+json answer for a request that HTTP itself refuses; see json::render_http_problem.
net::HttpResponse http_problem(int status, std::string_view detail);
/// A 503 answer for a request that may succeed one second later.
net::HttpResponse http_try_again(std::string_view detail);

}  // namespace detent::server

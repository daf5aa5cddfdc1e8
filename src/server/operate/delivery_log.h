// Logs the failures of deliveries: receivers of webhooks that fail, and sinks that do not accept
// tasks.
//
// A receiver or sink can fail many times a second, for hours. Each gets at most one line per minute
// about failures, with their number and the time since the first. A recovery is logged only if the
// failure before it was logged. The shards of a node share one log, so a failed receiver has one
// line per node.
//
// The log names the host of a receiver. It does not have the path and the query of the URL, or the
// body of an answer, because these can hold secrets.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <string>

#include "base/log/log_pace.h"
#include "base/mutex.h"
#include "base/result.h"
#include "delivery/deliverer.h"
#include "detent/clock.h"

namespace detent::server {

/// Thread-safe.
class DeliveryLog {
 public:
  /// Receivers that fail at the same time and have lines of their own. All others share a line, so
  /// memory and log stay small if a thousand receivers fail.
  static constexpr std::size_t kMostReceivers = 100;
  /// A receiver has recovered if a call succeeds after so long a time without a failed call. Before
  /// that, some calls succeed and others fail.
  static constexpr std::chrono::seconds kCalm{10};
  /// After this time without a call, a receiver is forgotten if its place is needed.
  static constexpr std::chrono::hours kForgotten{2};

  /// `clock` must outlive it.
  explicit DeliveryLog(const Clock& clock) : clock_(clock) {}

  void webhook_called(const WebhookResult& result) DETENT_EXCLUDES(mutex_);
  void sink_turned(const std::string& sink, const Result<void>& state) DETENT_EXCLUDES(mutex_);

 private:
  struct Receiver {
    std::uint64_t failed = 0;  // calls since the first failure; 0: it has recovered
    MonotonicTime first{};
    MonotonicTime last{};
    LogPace pace;
    bool is_told = false;
  };
  struct Sink {
    LogPace pace;
    bool is_told = false;
  };
  using Receivers = std::map<std::string, Receiver, std::less<>>;

  void failed(const WebhookResult& result, MonotonicTime now) DETENT_REQUIRES(mutex_);
  void succeeded(const WebhookResult& result, MonotonicTime now) DETENT_REQUIRES(mutex_);
  Receivers::value_type& place_of(std::string_view receiver, MonotonicTime now)
      DETENT_REQUIRES(mutex_);

  const Clock& clock_;
  Mutex mutex_;
  Receivers receivers_ DETENT_GUARDED_BY(mutex_);  // that fail, or have recovered
  std::map<std::string, Sink> sinks_ DETENT_GUARDED_BY(mutex_);
};

}  // namespace detent::server

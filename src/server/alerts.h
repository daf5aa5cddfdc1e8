// Tells an operator's URL when a figure of the server crosses its threshold, and when it has
// recovered: one POST each, signed as webhooks are, through the same guard of addresses.
//
// It looks each second. An alert that was not received (no answer, or one outside 2xx) is sent
// again, after 1 s, then 2 s, and so on up to a minute, under the same webhook-id; one that waits
// is replaced by the next about the same figure, so there are never more than figures. Each is
// logged, received or not. What was firing when the server stopped is told again by the next, if it
// still is.
#pragma once

#include <chrono>
#include <cstdint>
#include <deque>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>

#include "base/mutex.h"
#include "base/result.h"
#include "base/thread.h"
#include "delivery/webhook_signature.h"
#include "detent/clock.h"
#include "engine/engine_thread.h"
#include "net/host_resolver.h"
#include "net/http_caller.h"
#include "server/thresholds.h"

namespace detent::server {

struct AlertOptions {
  Thresholds thresholds;
  std::string url;                  // empty: alerts are only logged
  std::string allow;                // as of WebhookOptions
  std::filesystem::path keys_file;  // of the keys that sign; empty: nothing does
};

/// Thread-safe.
class Alerts {
 public:
  static constexpr std::chrono::seconds kLookPeriod{1};
  static constexpr std::chrono::seconds kFirstRetry{1};
  static constexpr std::chrono::seconds kLongestRetry{60};

  /// Starts the thread; null when there is nothing to watch. `engine` and `clock` must outlive it.
  /// Errors: invalid_argument for the URL, `allow`, the keys, or a URL without a threshold;
  /// unavailable when the keys cannot be read.
  static Result<std::unique_ptr<Alerts>> start(const AlertOptions& options, EngineThread& engine,
                                               Clock& clock);
  /// Where it goes, by what and by whose keys; without a caller alerts are only logged.
  struct Way {
    net::HttpUrl url = {};
    std::unique_ptr<net::HostResolver> resolver = {};  // the caller's
    std::unique_ptr<net::HttpCaller> caller = {};
    WebhookKeys keys = {};
    std::filesystem::path keys_file = {};  // where reload_keys() finds them
  };
  Alerts(Thresholds thresholds, Way way, EngineThread& engine, Clock& clock);
  /// Ends its thread, and the call under way.
  ~Alerts();
  Alerts(const Alerts&) = delete;
  Alerts& operator=(const Alerts&) = delete;

  /// Reads the keys again, for alerts sent from now on. Errors: as start().
  Result<void> reload_keys();

 private:
  /// What others have left for the thread. Shared with questions and calls, which may be answered
  /// after this is gone.
  struct Mail {
    Doorbell bell;
    Mutex mutex;
    std::optional<StatsSample> sample DETENT_GUARDED_BY(mutex);
    std::optional<net::CallOutcome> outcome DETENT_GUARDED_BY(mutex);
    WebhookKeys keys DETENT_GUARDED_BY(mutex);
    bool is_stopping DETENT_GUARDED_BY(mutex) = false;
  };
  struct Outgoing {
    Alert alert;
    std::string id;
  };

  void run();
  void ask(MonotonicTime now);
  void take(const StatsSample& sample);
  void take(const net::CallOutcome& outcome, MonotonicTime now);
  void send(const WebhookKeys& keys);

  // Constant after construction.
  EngineThread& engine_;
  Clock& clock_;
  const net::HttpUrl url_;
  const std::filesystem::path keys_file_;
  const std::shared_ptr<Mail> mail_;

  // Touched only by the thread.
  ThresholdWatch watch_;
  std::deque<Outgoing> outbox_;  // the first is under way, or waits to be sent again
  std::uint64_t epoch_ = 0;
  std::uint64_t last_alert_ = 0;
  MonotonicTime next_look_{};
  MonotonicTime send_at_{};
  std::chrono::seconds retry_ = kFirstRetry;
  bool is_asked_ = false;
  bool is_sending_ = false;

  std::unique_ptr<net::HostResolver> resolver_;
  std::unique_ptr<net::HttpCaller> caller_;
  Thread thread_;  // ends first
};

}  // namespace detent::server

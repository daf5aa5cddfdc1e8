// Sends an alert to the operator's URL when a figure of the server crosses its threshold, and again
// when the figure recovers. Each alert is one POST. It is signed like a webhook and checked by the
// same address guard.
//
// The figures are those of the server, or of the whole cluster. Of the nodes of a cluster, one
// sends the alerts. A node that becomes this node starts like a new server process.
//
// The figures are checked once per second. If an alert gets no answer, or a status outside 2xx, it
// is sent again with the same webhook-id: after 1 s, then 2 s, up to every minute. A new alert
// about the same figure replaces a waiting alert, so there is at most one waiting alert per figure.
// Every alert is logged, received or not. If an alert was firing when the server stopped and the
// figure is still beyond its threshold, the next server process sends the alert again.
#pragma once

#include <chrono>
#include <cstdint>
#include <deque>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "base/mutex.h"
#include "base/result.h"
#include "base/thread.h"
#include "delivery/webhook_signature.h"
#include "detent/clock.h"
#include "net/address/host_resolver.h"
#include "net/http_client/http_caller.h"
#include "server/operate/ask_figures.h"
#include "server/operate/thresholds.h"

namespace detent::server {

struct AlertOptions {
  Thresholds thresholds;
  std::string url;                  // empty: alerts are only logged
  std::string allow;                // as of WebhookOptions
  std::filesystem::path keys_file;  // of the signing keys; empty: alerts are not signed
};

/// The figures that are watched. The targets of both functions must outlive the alerts.
struct AlertSource {
  AskFigures ask;
  /// Returns true if this server sends the alerts. Called on the thread of the alerts.
  std::function<bool()> is_ours = [] { return true; };
};

/// Thread-safe.
class Alerts {
 public:
  static constexpr std::chrono::seconds kLookPeriod{1};
  static constexpr std::chrono::seconds kFirstRetry{1};
  static constexpr std::chrono::seconds kLongestRetry{60};

  /// Starts the thread. Returns null if no threshold is set. `clock` must outlive it.
  /// Errors: invalid_argument for the URL, `allow`, the keys, or a URL without a threshold;
  /// unavailable if the keys cannot be read.
  static Result<std::unique_ptr<Alerts>> start(const AlertOptions& options, AlertSource source,
                                               Clock& clock);
  /// The target URL, the HTTP caller and the signing keys. Without a caller, alerts are only
  /// logged.
  struct Way {
    net::HttpUrl url = {};
    std::unique_ptr<net::HostResolver> resolver = {};  // the caller's
    std::unique_ptr<net::HttpCaller> caller = {};
    WebhookKeys keys = {};
    std::filesystem::path keys_file = {};  // where reload_keys() finds them
  };
  Alerts(Thresholds thresholds, Way way, AlertSource source, Clock& clock);
  /// Ends its thread and the running call.
  ~Alerts();
  Alerts(const Alerts&) = delete;
  Alerts& operator=(const Alerts&) = delete;

  /// Reads the keys again. Later alerts use the new keys. Errors: as start().
  Result<void> reload_keys();

 private:
  /// Messages of other threads for the alert thread. Shared with engine queries and HTTP calls,
  /// because their answers may arrive after this object is gone.
  struct Mail {
    Doorbell bell;
    Mutex mutex;
    std::optional<StatsSample> sample DETENT_GUARDED_BY(mutex);
    bool is_answered DETENT_GUARDED_BY(mutex) = false;  // without a sample: in vain
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
  void forget();
  void take(const StatsSample& sample);
  void take(const net::CallOutcome& outcome, MonotonicTime now);
  void send(const WebhookKeys& keys);

  // Constant after construction.
  const AlertSource source_;
  const Thresholds thresholds_;
  Clock& clock_;
  const net::HttpUrl url_;
  const std::filesystem::path keys_file_;
  const std::shared_ptr<Mail> mail_;

  // Used only by the thread.
  std::optional<ThresholdWatch> watch_;  // none: another node sends the alerts
  std::deque<Outgoing> outbox_;          // the first is under way, or waits to be sent again
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

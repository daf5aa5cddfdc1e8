// The audit log: administrative acts with their caller, and requests without a valid token.
//
//   … info audit who=ops address=10.1.2.3 act="POST /v1/queues/mail/purge" status=200
//
// An act is one line, also if it consists of many requests. It contains no secrets: the path of a
// request without its query, and the name of a token.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/mutex.h"
#include "detent/clock.h"
#include "net/message/http_message.h"
#include "server/access/access_rules.h"

namespace detent::server {

struct AuditedAct {
  std::string who;  // name of the token; "local" without tokens; "" if the token is unknown
  std::string address;
  std::string act;          // method and path
  bool is_further = false;  // a further page of a dump: the request says where it continues

  friend bool operator==(const AuditedAct&, const AuditedAct&) = default;
};

/// Returns true if acts that need this permission are logged. Only administrative acts are.
constexpr bool is_audited(Need need) noexcept {
  return need == Need::admin || need == Need::admin_all;
}
AuditedAct audited_act(std::string_view who, const net::HttpRequest& request);

/// Logs administrative acts. A dump, a restore or a backup consists of many requests, but it is one
/// act: its further requests are not logged, unless they have another status or come more than a
/// minute after the previous request. The first page of a dump begins another dump, and is always
/// logged. A restore has no such mark. The end of a backup is logged if it has failed, or if the
/// same caller has begun no backup. Several dumps and restores can run at the same time.
/// Thread-safe.
class AuditLog {
 public:
  static constexpr std::chrono::seconds kLongestPause{60};
  /// The most acts of many requests that are known at a time; with more, an act may have two lines.
  static constexpr std::size_t kMostActs = 64;

  explicit AuditLog(const Clock& clock) : clock_(clock) {}

  void note(const AuditedAct& act, int status) DETENT_EXCLUDES(mutex_);

 private:
  /// The previous request of an act that consists of many requests.
  struct Running {
    AuditedAct act;
    int status = 0;
    MonotonicTime at{};
  };

  bool continues(const AuditedAct& act, int status) DETENT_EXCLUDES(mutex_);

  const Clock& clock_;
  Mutex mutex_;
  std::vector<Running> running_ DETENT_GUARDED_BY(mutex_);  // the oldest request first
};

/// Logs requests that were refused because they had no valid token. It writes at most one line per
/// second, so that an attacker who guesses tokens does not fill the disk. Thread-safe.
class RefusalLog {
 public:
  explicit RefusalLog(const Clock& clock) : clock_(clock) {}

  /// Logs this refusal, or counts it for the next line.
  void note(std::string_view address) DETENT_EXCLUDES(mutex_);

 private:
  const Clock& clock_;
  Mutex mutex_;
  MonotonicTime next_line_ DETENT_GUARDED_BY(mutex_){};
  std::uint64_t unlogged_ DETENT_GUARDED_BY(mutex_) = 0;
};

}  // namespace detent::server

// The audit log: administrative acts with their caller, and requests without a valid token.
//
//   … info audit who=ops address=10.1.2.3 act="POST /v1/queues/mail/purge" status=200
//
// It contains no secrets: the path of a request without its query, and the name of a token.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/mutex.h"
#include "detent/clock.h"
#include "net/message/http_message.h"
#include "server/access/access_rules.h"

namespace detent::server {

struct AuditedAct {
  std::string who;  // name of the token; "local" without tokens; "" if the token is unknown
  std::string address;
  std::string act;  // method and path
};

/// Returns true if acts that need this permission are logged. Only administrative acts are.
constexpr bool is_audited(Need need) noexcept {
  return need == Need::admin || need == Need::admin_all;
}
AuditedAct audited_act(std::string_view who, const net::HttpRequest& request);
void log_audit(const AuditedAct& act, int status);

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

// What the log says of who did what: administrative acts, and requests without a valid token.
//
//   … info audit who=ops address=10.1.2.3 act="POST /v1/queues/mail/purge" status=200
//
// Nothing secret is in it: of a request the path without its query, of a token its name.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/mutex.h"
#include "detent/clock.h"
#include "net/http_message.h"
#include "server/access_rules.h"

namespace detent::server {

struct AuditedAct {
  std::string who;  // the token's name, "local" without tokens, "" when it was not known
  std::string address;
  std::string act;  // method and path
};

/// Whether acts that need this are logged: those of administrators.
constexpr bool is_audited(Need need) noexcept {
  return need == Need::admin || need == Need::admin_all;
}
AuditedAct audited_act(std::string_view who, const net::HttpRequest& request);
void log_audit(const AuditedAct& act, int status);

/// Requests refused for want of a token: a line a second at most, so that guessing does not fill
/// the disk. Thread-safe.
class RefusalLog {
 public:
  explicit RefusalLog(const Clock& clock) : clock_(clock) {}

  /// Logs this one, or counts it for the next line.
  void note(std::string_view address) DETENT_EXCLUDES(mutex_);

 private:
  const Clock& clock_;
  Mutex mutex_;
  MonotonicTime next_line_ DETENT_GUARDED_BY(mutex_){};
  std::uint64_t unlogged_ DETENT_GUARDED_BY(mutex_) = 0;
};

}  // namespace detent::server

#include "server/access/audit.h"

#include <chrono>
#include <utility>

#include "base/log/log.h"

namespace detent::server {

AuditedAct audited_act(std::string_view who, const net::HttpRequest& request) {
  return {.who = std::string(who),
          .address = request.peer,
          .act = request.method + " " + request.target.substr(0, request.target.find('?'))};
}

bool AuditLog::continues(const AuditedAct& act, int status) {
  // A backup begins with another request, which was logged.
  if (act.act == "POST /v1/backup/end") return status < 400;
  if (act.act != "GET /v1/dump" && act.act != "POST /v1/restore") return false;
  const MonotonicTime now = clock_.now();
  const MutexLock lock(mutex_);
  const bool is_same = act == act_ && status == status_ && now - at_ <= kLongestPause;
  act_ = act;
  status_ = status;
  at_ = now;
  return is_same;
}

void AuditLog::note(const AuditedAct& act, int status) {
  if (continues(act, status)) return;
  log_info("audit",
           {{"who", act.who}, {"address", act.address}, {"act", act.act}, {"status", status}});
}

void RefusalLog::note(std::string_view address) {
  std::uint64_t unlogged = 0;
  {
    const MutexLock lock(mutex_);
    if (clock_.now() < next_line_) {
      ++unlogged_;
      return;
    }
    next_line_ = clock_.now() + std::chrono::seconds{1};
    unlogged = std::exchange(unlogged_, 0);
  }
  log_warning("a request without a valid token was refused",
              {{"address", address}, {"others_before", unlogged}});
}

}  // namespace detent::server

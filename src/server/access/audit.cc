#include "server/access/audit.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <utility>

#include "base/log/log.h"
#include "net/message/http_query.h"

namespace detent::server {
namespace {

constexpr std::string_view kDump = "GET /v1/dump";
constexpr std::string_view kRestore = "POST /v1/restore";
constexpr std::string_view kBackup = "POST /v1/backup";
constexpr std::string_view kBackupEnd = "POST /v1/backup/end";

/// Whether a request for a page of a dump says where the page begins.
bool is_further_page(const std::string& target) {
  net::QueryParameter after{"after"};
  net::QueryParameter after_schedule{"after_schedule"};
  net::QueryParameter limit{"limit"};
  const std::array<net::QueryParameter*, 3> parameters{&after, &after_schedule, &limit};
  return net::take_query(target, parameters) && (after.value || after_schedule.value);
}

}  // namespace

AuditedAct audited_act(std::string_view who, const net::HttpRequest& request) {
  AuditedAct act{.who = std::string(who),
                 .address = request.peer,
                 .act = request.method + " " + request.target.substr(0, request.target.find('?'))};
  act.is_further = act.act == kDump && is_further_page(request.target);
  return act;
}

bool AuditLog::continues(const AuditedAct& act, int status) {
  const bool ends_backup = act.act == kBackupEnd;
  const bool begins_backup = act.act == kBackup;
  if (!ends_backup && !begins_backup && act.act != kDump && act.act != kRestore) return false;
  if ((ends_backup || begins_backup) && status >= 400) return false;
  const MonotonicTime now = clock_.now();
  const std::string_view sought = ends_backup ? kBackup : std::string_view(act.act);
  const MutexLock lock(mutex_);
  const auto known = std::ranges::find_if(running_, [&act, sought](const Running& one) {
    return one.act.who == act.who && one.act.address == act.address && one.act.act == sought;
  });
  if (ends_backup) {
    const bool has_begun = known != running_.end();
    if (has_begun) running_.erase(known);
    return has_begun;
  }
  const bool may_continue = act.act == kRestore || act.is_further;
  bool is_same = false;
  if (known != running_.end()) {
    is_same = may_continue && known->status == status && now - known->at <= kLongestPause;
    running_.erase(known);
  } else if (running_.size() == kMostActs) {
    running_.erase(running_.begin());
  }
  running_.push_back({.act = act, .status = status, .at = now});
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

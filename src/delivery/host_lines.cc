#include "delivery/host_lines.h"

#include <algorithm>
#include <utility>

#include "detent/check.h"

namespace detent {
namespace {

using std::chrono::nanoseconds;
using std::chrono::seconds;

constexpr double kNsPerSecond = 1e9;
constexpr double kFirstCallNs = 0.1 * kNsPerSecond;
/// How much the newest call counts in the average.
constexpr double kNewest = 0.2;
/// How long the state of a host without calls is kept.
constexpr seconds kRemembered{600};
constexpr seconds kForgetInterval{60};
/// The most hosts to remember, not counting hosts with running or waiting calls.
constexpr std::size_t kMostRemembered = 10'000;

double ns(MonotonicTimeline::duration time) { return static_cast<double>(time.count()); }

}  // namespace

HostLines::Host& HostLines::host_of(const std::string& authority, MonotonicTime now) {
  const auto [found, is_new] = hosts_.try_emplace(authority);
  Host& host = found->second;
  if (is_new) {
    host.limit = std::min(limits_.first_calls, limits_.max_calls);
    host.tokens = limits_.calls_per_second;
    host.tokens_at = now;
    host.call_ns = kFirstCallNs;
    host.last_return = now;
    host.last_well = now;
  }
  host.last_used = now;
  return host;
}

std::optional<HostLines::Milliseconds> HostLines::admit(HostCall& call, MonotonicTime now) {
  forget_idle(now);
  Host& host = host_of(call.url.authority, now);
  if (host.line.size() >= line_limit(host) || waiting_count_ >= limits_.all_lines) {
    return return_delay(host, now);
  }
  if (host.line.empty()) waiting_.push_back(&host);
  call.since = now;
  host.line.push_back(std::move(call));
  ++waiting_count_;
  return std::nullopt;
}

std::optional<HostCall> HostLines::next(MonotonicTime now) {
  if (calls_ >= limits_.max_all_calls) return std::nullopt;
  for (auto at = waiting_.begin(); at != waiting_.end(); ++at) {
    Host& host = **at;
    if (host.calls >= host.limit) continue;
    refill(host, now);
    if (host.tokens < 1) continue;
    host.tokens -= 1;
    HostCall call = std::move(host.line.front());
    host.line.pop_front();
    ++host.calls;
    ++calls_;
    --waiting_count_;
    // Its turn is over.
    if (host.line.empty()) {
      waiting_.erase(at);
    } else {
      waiting_.splice(waiting_.end(), waiting_, at);
    }
    return call;
  }
  return std::nullopt;
}

void HostLines::finish(const std::string& authority, HostHealth health, MonotonicTime began,
                       MonotonicTime now) {
  Host& host = host_of(authority, now);
  DETENT_CHECK(host.calls > 0);
  --host.calls;
  --calls_;
  host.call_ns += kNewest * (ns(now - began) - host.call_ns);
  switch (health) {
    case HostHealth::well:
      host.limit = std::min(host.limit + 1, limits_.max_calls);
      host.last_well = now;
      break;
    case HostHealth::struggling:
      host.limit = std::max<std::size_t>(host.limit / 2, 1);
      break;
    case HostHealth::unknown:
      break;
  }
}

std::vector<HostLines::Returned> HostLines::take_overdue(MonotonicTime now) {
  std::vector<Returned> overdue;
  for (auto at = waiting_.begin(); at != waiting_.end();) {
    Host& host = **at;
    while (!host.line.empty() && now - host.line.front().since >= limits_.longest_wait) {
      overdue.push_back({std::move(host.line.front()), return_delay(host, now)});
      host.line.pop_front();
      --waiting_count_;
    }
    at = host.line.empty() ? waiting_.erase(at) : std::next(at);
  }
  return overdue;
}

std::vector<HostCall> HostLines::take_all() {
  std::vector<HostCall> all;
  for (Host* const host : waiting_) {
    std::ranges::move(host->line, std::back_inserter(all));
    host->line.clear();
  }
  waiting_.clear();
  waiting_count_ = 0;
  return all;
}

std::optional<MonotonicTime> HostLines::next_wakeup(MonotonicTime now) const {
  std::optional<MonotonicTime> next;
  const auto consider = [&next](MonotonicTime time) { next = next ? std::min(*next, time) : time; };
  for (const Host* const host : waiting_) {
    consider(host->line.front().since + limits_.longest_wait);
    const bool waits_for_token = host->calls < host->limit && calls_ < limits_.max_all_calls;
    if (waits_for_token) consider(std::max(token_at(*host), now));
  }
  return next;
}

void HostLines::refill(Host& host, MonotonicTime now) const {
  const double rate = limits_.calls_per_second;
  host.tokens = std::min(host.tokens + ns(now - host.tokens_at) / kNsPerSecond * rate, rate);
  host.tokens_at = now;
}

/// When there is a whole one, rounded up.
MonotonicTime HostLines::token_at(const Host& host) const {
  const double missing = std::max(1 - host.tokens, 0.0);
  const double wait = missing * kNsPerSecond / limits_.calls_per_second;
  return host.tokens_at + nanoseconds{static_cast<std::int64_t>(wait) + 1};
}

std::size_t HostLines::line_limit(const Host& host) const {
  return is_struggling(host) && host.limit == 1 ? 1 : host.limit * limits_.line_per_call;
}

/// Calls return one after the other, at the pace of the host, behind the calls in its line. If that
/// is too late, a call returns at a random time in the second half of the longest delay, so that
/// the calls do not return together.
HostLines::Milliseconds HostLines::return_delay(Host& host, MonotonicTime now) {
  const std::size_t calls = is_struggling(host) ? host.limit : limits_.max_calls;
  const double pace =
      std::max(host.call_ns / static_cast<double>(calls), kNsPerSecond / limits_.calls_per_second);
  const auto step = nanoseconds{static_cast<std::int64_t>(pace)};
  const MonotonicTime behind_line = now + step * static_cast<std::int64_t>(host.line.size());
  const MonotonicTime at = std::max(host.last_return, behind_line) + step;
  const auto delay = std::chrono::ceil<Milliseconds>(at - now);
  Milliseconds longest = limits_.longest_return;
  if (is_struggling(host)) {
    const auto outage = std::chrono::floor<Milliseconds>(now - host.last_well);
    longest = std::max(longest, std::min(outage / 2, limits_.longest_outage_return));
  }
  if (delay > longest) {
    const double part = 0.5 + 0.5 * rng_.unit();
    return std::chrono::ceil<Milliseconds>(part * longest);
  }
  host.last_return = at;
  return std::max(delay, limits_.shortest_return);
}

void HostLines::forget_idle(MonotonicTime now) {
  const bool is_full = hosts_.size() >= kMostRemembered;
  if (now < next_forget_ && !is_full) return;
  next_forget_ = now + kForgetInterval;
  std::erase_if(hosts_, [this, now, is_full](const auto& entry) {
    const Host& host = entry.second;
    const bool is_idle = host.calls == 0 && host.line.empty();
    // Calls that were sent back during the outage return.
    const MonotonicTime::duration away =
        is_struggling(host) ? limits_.longest_outage_return : Milliseconds{0};
    return is_idle && (is_full || now - host.last_used >= kRemembered + away);
  });
}

}  // namespace detent

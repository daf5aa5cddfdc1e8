// Chooses the next call. Each host has its own line, so that no host delays another host.
//
// A host has a limit of concurrent calls and of calls per second. The limit of concurrent calls
// adapts: each successful call raises it by one. It is halved if the host does not answer, cannot
// be reached or reports overload (additive increase, multiplicative decrease: Chiu and Jain, 1989).
// So a dead host soon uses one call at a time. Its line then has room for one call. The calls in a
// line are leased tasks, and a queue may have a limit of leases, so a long line could stop the
// tasks for other hosts.
//
// A call waits in the short line of its host. If the line is full, the task goes back to the engine
// with a time to return. Tasks return one after the other, at the pace of the host. So the backlog
// of a dead host is in the store, and its tasks return more seldom the longer the host has failed.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <list>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/rng.h"
#include "delivery/webhook_source.h"
#include "detent/clock.h"
#include "net/message/http_url.h"

namespace detent {

struct HostLimits {
  std::size_t first_calls = 8;  // concurrent calls to an unknown host
  std::size_t max_calls = 16;   // concurrent calls to one host
  std::size_t max_all_calls = 512;
  std::uint32_t calls_per_second = 100;  // to one host; also the size of a burst
  std::size_t line_per_call = 16;        // of a host's line, for each call that it may have
  std::size_t all_lines = 2'048;
  std::chrono::milliseconds longest_wait{30'000};    // in a line
  std::chrono::milliseconds shortest_return{1'000};  // of a task that goes back to the engine
  std::chrono::milliseconds longest_return{
      300'000};  // of a task for a host that accepts some calls
  /// For a host that struggles: half of the time since its last success, up to this.
  std::chrono::milliseconds longest_outage_return{3'600'000};
};

/// A delivery on its way.
struct HostCall {
  Delivery delivery;
  net::HttpUrl url;
  MonotonicTime since{};  // when it came
};

/// The state of a host that a call has shown.
enum class HostHealth : std::uint8_t { well, unknown, struggling };

/// Invariants: a host has at most max_calls, all hosts max_all_calls; all lines are ≤ all_lines; a
/// host is in waiting_ when its line is not empty, once. Thread-compatible.
class HostLines {
 public:
  using Milliseconds = std::chrono::milliseconds;

  HostLines(HostLimits limits, std::uint64_t seed) : limits_(limits), rng_(seed) {}

  /// Takes the call into the line of its host. If there is no room, leaves the call unchanged and
  /// returns the delay after which it should return.
  std::optional<Milliseconds> admit(HostCall& call, MonotonicTime now);
  /// The next to be called, hosts in turn; it counts as a call until finish().
  std::optional<HostCall> next(MonotonicTime now);
  /// A call to this host (a URL's authority) is over. Requires: next() gave it.
  void finish(const std::string& authority, HostHealth health, MonotonicTime began,
              MonotonicTime now);

  struct Returned {
    HostCall call;
    Milliseconds delay;
  };
  /// Takes those out that have waited too long.
  std::vector<Returned> take_overdue(MonotonicTime now);
  /// Takes all out that wait, for a stop.
  std::vector<HostCall> take_all();

  /// How many more calls there may be.
  std::size_t room() const noexcept { return limits_.max_all_calls - calls_; }
  std::size_t calls() const noexcept { return calls_; }
  std::size_t waiting() const noexcept { return waiting_count_; }
  /// When next() or take_overdue() may find something without another call having finished.
  std::optional<MonotonicTime> next_wakeup(MonotonicTime now) const;

 private:
  struct Host {
    std::size_t calls = 0;
    std::size_t limit = 0;
    double tokens = 0;  // calls that may begin, by the rate
    MonotonicTime tokens_at{};
    double call_ns = 0;  // how long a call takes: a moving average
    MonotonicTime last_return{};
    MonotonicTime last_used{};
    MonotonicTime last_well{};  // or when it was first seen
    std::deque<HostCall> line;
  };

  Host& host_of(const std::string& authority, MonotonicTime now);
  void refill(Host& host, MonotonicTime now) const;
  MonotonicTime token_at(const Host& host) const;
  bool is_struggling(const Host& host) const { return host.limit < limits_.first_calls; }
  std::size_t line_limit(const Host& host) const;
  Milliseconds return_delay(Host& host, MonotonicTime now);
  void forget_idle(MonotonicTime now);

  const HostLimits limits_;
  Rng rng_;
  std::map<std::string, Host> hosts_;  // by authority; nodes stay where they are
  std::list<Host*> waiting_;           // in turn
  std::size_t calls_ = 0;
  std::size_t waiting_count_ = 0;
  MonotonicTime next_forget_{};
};

}  // namespace detent

// What becomes of a task after an attempt to deliver it.
//
// The rules, which docs/guides/webhooks.md tells to users: 2xx completes it; 410 means that nobody
// wants it any more, so it is dead at once, as is one whose address may not be called; everything
// else fails the attempt, and the task comes back after its backoff, or when a receiver that has
// too much to do asks for it. Pure.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>

#include "detent/clock.h"
#include "net/http_caller.h"

namespace detent {

/// How an attempt ended: the label of a counter. `given_back`: there was none, its host was busy.
enum class DeliveryEnd : std::uint8_t {
  delivered,
  refused_by_status,  // an answer outside 2xx, but for those below
  overloaded,         // 429 or 503
  gone,               // 410
  not_reached,        // no address, no connection, no handshake, or it broke
  timed_out,
  not_allowed,  // by the address guard, or no URL
  given_back,
};
inline constexpr std::size_t kDeliveryEnds = 8;
std::string_view to_string(DeliveryEnd end) noexcept;

/// What the engine is to do with the lease.
struct Verdict {
  enum class Verb : std::uint8_t { complete, fail, bury, release };
  Verb verb = Verb::complete;
  DeliveryEnd end = DeliveryEnd::delivered;
  /// fail: the least time until the next attempt, if the task's backoff is shorter; release: when
  /// the task is ready again.
  std::optional<std::chrono::milliseconds> delay = {};
  std::string error = {};  // fail, bury; for people, printable, ≤ kMaxErrorBytes

  friend bool operator==(const Verdict&, const Verdict&) = default;
};

/// Of an answer's body an error tells so many bytes.
inline constexpr std::size_t kToldBodyBytes = 200;

/// `now` turns a date of Retry-After into a delay.
Verdict judge(const net::CallOutcome& outcome, WallInstant now);
/// For one that cannot be called at all, whatever is tried.
Verdict not_allowed(std::string error);
/// For a message that a sink's broker does not take, as it says.
Verdict refused_by_sink(std::string error);
Verdict given_back(std::chrono::milliseconds delay);

}  // namespace detent

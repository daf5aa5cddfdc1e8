// Decides about a task after an attempt to deliver it.
//
// docs/guides/webhooks.md gives these rules to users. 2xx completes the task. With 410 the receiver
// no longer wants the task, so the task is dead immediately. A task with an address that may not be
// called is dead too. All other results fail the attempt. The task then comes back after its
// backoff, or at the time that an overloaded receiver asks for. Pure.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>

#include "detent/clock.h"
#include "net/http_client/http_caller.h"

namespace detent {

/// How an attempt ended: the label of a counter. `given_back`: no attempt was made, because the
/// host was busy.
enum class DeliveryEnd : std::uint8_t {
  delivered,
  refused_by_status,  // a status outside 2xx, except the statuses below
  overloaded,         // 429 or 503
  gone,               // 410
  not_reached,        // no address, no connection, no handshake, or it broke
  timed_out,
  not_allowed,  // by the address guard, or no URL
  given_back,
};
inline constexpr std::size_t kDeliveryEnds = 8;
std::string_view to_string(DeliveryEnd end) noexcept;

/// The verb that the engine should run for the lease.
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
/// Why a call failed, for a log: "HTTP 500" without the body of the answer, which can hold secrets,
/// or the message of the failure.
std::string cause_of(const net::CallOutcome& outcome);
/// For a task that can never be called.
Verdict not_allowed(std::string error);
/// For a message that a sink's broker does not take, as it says.
Verdict refused_by_sink(std::string error);
Verdict given_back(std::chrono::milliseconds delay);

}  // namespace detent

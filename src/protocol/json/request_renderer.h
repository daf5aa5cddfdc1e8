// Writes requests as JSON bodies, for clients. request_parser.h reads these bodies back into equal
// values.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "protocol/json/request_parser.h"
#include "task/request.h"

namespace detent::json {

/// Requires: a payload of kind json is one JSON value. read_json() can check this.
std::string render_schedule(const ScheduleRequest& request);
/// Writes an array. Requires: as for render_schedule().
std::string render_schedule_batch(std::span<const ScheduleRequest> requests);

/// The body does not contain the queue, because the queue is in the path.
std::string render_lease(const LeaseCall& call);

std::string render_complete(std::span<const std::string> leases);

/// How attempts failed. This applies to all leases of one call.
struct Failure {
  std::optional<std::chrono::milliseconds> delay;  // if not set: each task's backoff
  std::string error;                               // a text for people; may be empty
};
std::string render_fail(std::span<const std::string> leases, const Failure& failure);

/// Requires: as for render_schedule(), and `edit` changes at least one thing.
std::string render_edit(const TaskEdit& edit);

/// Requires: every id has a value.
std::string render_cancel_batch(const TaskNames& tasks);
std::string render_move_batch(const MoveCall& call);

std::string render_extend(std::span<const std::string> leases, std::chrono::milliseconds by);

/// How tasks are given back. This applies to all leases of one call.
struct Release {
  std::optional<std::chrono::milliseconds> delay;  // if not set: ready immediately
  std::optional<std::uint32_t> priority;           // if not set: unchanged
};
std::string render_release(std::span<const std::string> leases, const Release& release);

}  // namespace detent::json

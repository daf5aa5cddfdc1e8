// Requests to bodies, for clients: the other side of request_parser.h, which reads back what is
// written here, value for value.
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

/// Requires: a payload of kind json is one JSON value (read_json tells).
std::string render_schedule(const ScheduleRequest& request);
/// An array. Requires: as above.
std::string render_schedule_batch(std::span<const ScheduleRequest> requests);

/// The queue is no part of the body; it stands in the path.
std::string render_lease(const LeaseCall& call);

std::string render_complete(std::span<const std::string> leases);

/// How attempts failed, for all leases of one call.
struct Failure {
  std::optional<std::chrono::milliseconds> delay;  // else each task's backoff
  std::string error;                               // for people; may be empty
};
std::string render_fail(std::span<const std::string> leases, const Failure& failure);

/// Requires: as render_schedule(); an edit that says something.
std::string render_edit(const TaskEdit& edit);

/// Requires: no id is left out.
std::string render_cancel_batch(const TaskNames& tasks);
std::string render_move_batch(const MoveCall& call);

std::string render_extend(std::span<const std::string> leases, std::chrono::milliseconds by);

/// How tasks are given back, for all leases of one call.
struct Release {
  std::optional<std::chrono::milliseconds> delay;  // else they are ready at once
  std::optional<std::uint32_t> priority;           // else each keeps its own
};
std::string render_release(std::span<const std::string> leases, const Release& release);

}  // namespace detent::json

// Bodies of requests to values. What a value may be beyond its type (the length of a name, the size
// of a payload) is checked by validate() in task/request.h, on whatever protocol it came.
//
// Every error is `invalid_argument` (or `too_large` for counts) with the field named; a field that
// does not exist, comes twice or has another type is refused, so a misspelt option is never
// ignored. docs/reference/http.md describes the bodies.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "task/request.h"

namespace detent::json {

/// Reads the body of `POST /v1/tasks`. A JSON payload is kept byte for byte.
Result<ScheduleRequest> parse_schedule(std::string_view body);

/// The tasks in the body of `POST /v1/tasks/batch`, each as it stands there: what parse_schedule()
/// reads.
struct BatchElements {
  enum class Framing : std::uint8_t { array, lines };
  Framing framing = Framing::array;
  std::vector<std::string_view> elements;  // point into the body
};
/// An array, or one object a line (NDJSON) when the type says so ("application/x-ndjson") or the
/// body begins with an object. Errors: the elements cannot be told apart or are over
/// kMaxBatchTasks.
Result<BatchElements> split_schedule_batch(std::string_view body, std::string_view content_type);

/// Reads all of them. A wrong element is its own error; the whole fails as above.
Result<std::vector<Result<ScheduleRequest>>> parse_schedule_batch(std::string_view body,
                                                                  std::string_view content_type);

/// Reads the body of `PATCH /v1/tasks/{id}`: what is changed, at least one thing.
Result<TaskEdit> parse_edit(std::string_view body);

/// The tasks of a call, in order: by id, or by the keys of a queue. An id that none can have is
/// nothing here, and not found in the answer.
struct TaskNames {
  std::vector<std::optional<TaskId>> ids;
  std::string queue;
  std::vector<std::string> keys;
};
/// Reads the body of `POST /v1/tasks/cancel`. `too_large` above kMaxBatchTasks tasks.
Result<TaskNames> parse_cancel_batch(std::string_view body);

struct MoveCall {
  TaskNames tasks;
  Due due;
};
/// Reads the body of `POST /v1/tasks/move`, likewise.
Result<MoveCall> parse_move_batch(std::string_view body);

/// A lease and how long to wait for a task when none is ready.
struct LeaseCall {
  LeaseRequest lease;
  std::chrono::milliseconds wait{0};  // 0 … kMaxLeaseWait
};
/// Reads the body of `POST /v1/queues/{queue}/lease`; an empty body asks for the defaults.
Result<LeaseCall> parse_lease(std::string queue, std::string_view body);

/// The leases of a call, in order. One that cannot be a lease of this server is nothing here, and a
/// conflict in the answer: to the client it is the same as one that is no longer held.
using LeaseList = std::vector<std::optional<LeaseToken>>;

/// Reads the body of `POST /v1/leases/complete`. `too_large` above kMaxBatchTasks leases.
Result<LeaseList> parse_complete(std::string_view body);

struct FailCall {
  LeaseList leases;
  std::optional<std::chrono::milliseconds> delay;  // else each task's backoff
  std::string error;
};
/// Reads the body of `POST /v1/leases/fail`.
Result<FailCall> parse_fail(std::string_view body);

struct ExtendCall {
  LeaseList leases;
  std::chrono::milliseconds by{0};  // 1 ms … kMaxVisibilityTimeout
};
/// Reads the body of `POST /v1/leases/extend`.
Result<ExtendCall> parse_extend(std::string_view body);

struct ReleaseCall {
  LeaseList leases;
  std::optional<std::chrono::milliseconds> delay;
  std::optional<std::uint32_t> priority;
};
/// Reads the body of `POST /v1/leases/release`.
Result<ReleaseCall> parse_release(std::string_view body);

}  // namespace detent::json

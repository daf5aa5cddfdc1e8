// Reads and writes the bodies of requests. validate() in task/request.h checks further limits, such
// as the length of a name or the size of a payload, for every protocol.
//
// Every error of a parse function is `invalid_argument`, or `too_large` for a count, and names the
// field. A field that is unknown, repeated or of a wrong type is refused, so a misspelt option is
// never ignored. docs/reference/http.md describes the bodies. The render functions are for clients:
// each body is read back into an equal value. They require that a payload of kind json is one JSON
// value, which read_json() can check.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "task/request.h"

namespace detent::json {

/// The body of `POST /v1/tasks`. A JSON payload is kept byte for byte.
Result<ScheduleRequest> parse_schedule(std::string_view body);
std::string render_schedule(const ScheduleRequest& request);

/// The tasks in the body of `POST /v1/tasks/batch`. Each element is the text that parse_schedule()
/// reads.
struct BatchElements {
  enum class Framing : std::uint8_t { array, lines };
  Framing framing = Framing::array;
  std::vector<std::string_view> elements;  // point into the body
};
/// Splits the body of a batch. The body is an array, or NDJSON (one object per line). It is NDJSON
/// if the content type is "application/x-ndjson" or if the body begins with an object. Errors: the
/// elements cannot be separated, or there are more than kMaxBatchTasks.
Result<BatchElements> split_schedule_batch(std::string_view body, std::string_view content_type);

/// Reads all tasks of a batch. A wrong element becomes an error in the result list. The whole call
/// fails only as in split_schedule_batch().
Result<std::vector<Result<ScheduleRequest>>> parse_schedule_batch(std::string_view body,
                                                                  std::string_view content_type);
/// Writes an array.
std::string render_schedule_batch(std::span<const ScheduleRequest> requests);

/// The body of `PATCH /v1/tasks/{id}`. It must change at least one thing.
Result<TaskEdit> parse_edit(std::string_view body);
std::string render_edit(const TaskEdit& edit);

/// The tasks of a call, in order: by id, or by the keys of one queue. A text that cannot be an id
/// is nullopt here, and "not found" in the answer.
struct TaskNames {
  std::vector<std::optional<TaskId>> ids;
  std::string queue;
  std::vector<std::string> keys;
};
/// The body of `POST /v1/tasks/cancel`. Errors: `too_large` above kMaxBatchTasks tasks.
Result<TaskNames> parse_cancel_batch(std::string_view body);
/// Requires: every id has a value.
std::string render_cancel_batch(const TaskNames& tasks);

struct MoveCall {
  TaskNames tasks;
  Due due;
};
/// The body of `POST /v1/tasks/move`. Errors: `too_large` above kMaxBatchTasks tasks.
Result<MoveCall> parse_move_batch(std::string_view body);
/// Requires: every id has a value.
std::string render_move_batch(const MoveCall& call);

/// A lease request, and how long to wait if no task is ready.
struct LeaseCall {
  LeaseRequest lease;
  std::chrono::milliseconds wait{0};  // 0 … kMaxLeaseWait
};
/// The body of `POST /v1/queues/{queue}/lease`. An empty body means the defaults. The body does not
/// contain the queue, because the queue is in the path.
Result<LeaseCall> parse_lease(std::string queue, std::string_view body);
std::string render_lease(const LeaseCall& call);

/// The leases of a call, in order. A text that cannot be a lease of this server is nullopt here,
/// and a conflict in the answer. For the client this is the same case as a lease that has ended.
using LeaseList = std::vector<std::optional<LeaseToken>>;

/// The body of `POST /v1/leases/complete`. `too_large` above kMaxBatchTasks leases.
Result<LeaseList> parse_complete(std::string_view body);
std::string render_complete(std::span<const std::string> leases);

/// How attempts failed. This applies to all leases of one call.
struct Failure {
  std::optional<std::chrono::milliseconds> delay;  // if not set: each task's backoff
  std::string error;                               // a text for people; may be empty
  bool final = false;  // the tasks are dead now; not together with `delay`
};
struct FailCall : Failure {
  LeaseList leases;
};
/// The body of `POST /v1/leases/fail`. Errors: invalid_argument for `delay` and `final` together.
Result<FailCall> parse_fail(std::string_view body);
std::string render_fail(std::span<const std::string> leases, const Failure& failure);

struct ExtendCall {
  LeaseList leases;
  std::chrono::milliseconds by{0};  // 1 ms … kMaxVisibilityTimeout
};
/// The body of `POST /v1/leases/extend`.
Result<ExtendCall> parse_extend(std::string_view body);
std::string render_extend(std::span<const std::string> leases, std::chrono::milliseconds by);

/// How tasks are given back. This applies to all leases of one call.
struct Release {
  std::optional<std::chrono::milliseconds> delay;  // if not set: ready immediately
  std::optional<std::uint32_t> priority;           // if not set: unchanged
};
struct ReleaseCall : Release {
  LeaseList leases;
};
/// The body of `POST /v1/leases/release`.
Result<ReleaseCall> parse_release(std::string_view body);
std::string render_release(std::span<const std::string> leases, const Release& release);

}  // namespace detent::json

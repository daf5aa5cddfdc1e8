// Converts between the values of the installed client and the values of the server.
//
// The installed header has its own types, so that the internal types may change. The two sets are
// deliberately similar, and only this layer converts one into the other. Parsers of answers return
// values of the server; the templates below convert all that a parser can return.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

#include "base/result.h"
#include "detent/client.h"
#include "protocol/json/answer.h"
#include "protocol/json/queue_codec.h"
#include "protocol/json/request_codec.h"
#include "protocol/json/schedule_codec.h"
#include "task/recurring_schedule.h"
#include "task/request.h"
#include "task/task_stats.h"

namespace detent {

ClientError to_client(const Error& error);
client::Payload to_client(const Payload& payload);
client::ScheduledTask to_client(const json::AcceptedTask& task);
client::Task to_client(const TaskSnapshot& snapshot);
client::TaskPage to_client(const json::TaskListAnswer& answer);
client::LeasedTask to_client(json::LeasedTaskAnswer task);
client::LeaseStatus to_client(LeaseOutcome outcome) noexcept;
client::Queue to_client(const QueueView& view);
client::Schedule to_client(const ScheduleView& view);
client::SchedulePage to_client(const json::ScheduleList& list);
client::BackfillResult to_client(const json::BackfillCounts& counts);
/// The id of a cancelled task is left out, because the caller knows it.
ClientResult<void> to_client(const Result<TaskId>& cancelled);
inline WallTime to_client(WallTime time) noexcept { return time; }  // equal on both sides
template <class T>
auto to_client(Result<T> result) -> ClientResult<decltype(to_client(*std::move(result)))> {
  if (!result) return to_client(result.error());
  return to_client(*std::move(result));
}
template <class T>
auto to_client(std::vector<T> values) {
  std::vector<decltype(to_client(std::declval<T>()))> all;
  all.reserve(values.size());
  for (T& value : values) all.push_back(to_client(std::move(value)));
  return all;
}
/// As to_client(), if the type has a twin in the installed header. Other values stay as they are.
template <class T>
auto as_client(T value) {
  if constexpr (requires { to_client(std::move(value)); }) {
    return to_client(std::move(value));
  } else {
    return value;
  }
}

Error to_error(const ClientError& error);
/// For callers that return a Result.
template <class T>
Result<T> to_result(ClientResult<T> result) {
  if (!result) return to_error(result.error());
  if constexpr (std::is_void_v<T>) {
    return ok();
  } else {
    return *std::move(result);
  }
}

namespace client {
/// The words of these values in JSON and on the command line.
std::string_view to_string(TaskState state) noexcept;
std::string_view to_string(LeaseStatus status) noexcept;
std::string_view to_string(CalendarRule::Unit unit) noexcept;
std::string_view to_string(CalendarRule::MonthEnd month_end) noexcept;
std::string_view to_string(NewSchedule::Gap gap) noexcept;
std::string_view to_string(NewSchedule::Repeat repeat) noexcept;
std::string_view to_string(NewTask::OnKey on_key) noexcept;
std::string_view to_string(NewSchedule::Misfire misfire) noexcept;
std::string_view to_string(NewSchedule::Overlap overlap) noexcept;
}  // namespace client

ScheduleRequest from_client(const client::NewTask& task);
TaskEdit from_client(const client::TaskEdit& edit);
/// Errors: `invalid_argument` unless all are ids, or all keys of one queue.
Result<json::TaskNames> from_client(std::span<const client::TaskName> tasks);
json::QueuePatch from_client(const client::QueueChange& change);
RecurringSchedule from_client(const std::string& name, const client::NewSchedule& schedule);

}  // namespace detent

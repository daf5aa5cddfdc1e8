// Converts between the values of the installed client and the values of the server.
//
// The installed header has its own types, so that the internal types may change. The two sets are
// deliberately similar, and only this file includes both.
#pragma once

#include <string>
#include <vector>

#include "base/result.h"
#include "client/task_name.h"
#include "detent/client.h"
#include "protocol/json/answer.h"
#include "protocol/json/queue_patch.h"
#include "protocol/json/request_parser.h"
#include "task/recurring_schedule.h"
#include "task/request.h"
#include "task/task_filter.h"
#include "task/task_stats.h"

namespace detent {

ClientError to_client(const Error& error);
client::ScheduledTask to_client(const json::AcceptedTask& task);
client::Task to_client(const TaskSnapshot& snapshot);
client::LeasedTask to_client(json::LeasedTaskAnswer task);
client::LeaseStatus to_client(LeaseOutcome outcome) noexcept;
client::Queue to_client(const QueueView& view);
client::Schedule to_client(const ScheduleView& view);

TaskState from_client(client::TaskState state) noexcept;
Payload from_client(const client::Payload& payload);
ScheduleRequest from_client(const client::NewTask& task);
TaskName from_client(const client::TaskName& task);
/// Errors: `invalid_argument` unless all are ids, or all keys of one queue.
Result<json::TaskNames> from_client(std::span<const client::TaskName> tasks);
TaskFilter from_client(const client::ListOptions& options);
json::QueuePatch from_client(const client::QueueChange& change);
RecurringSchedule from_client(const std::string& name, const client::NewSchedule& schedule);

}  // namespace detent

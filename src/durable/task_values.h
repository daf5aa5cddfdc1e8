// Converts between the values of the public header and the values of the engine. The public values
// are separate types, so that the engine's values may change.
#pragma once

#include "detent/durable_scheduler.h"
#include "task/lifecycle.h"
#include "task/request.h"

namespace detent::durable {

DurableError to_public(const Error& error);
TaskInfo to_public(Task task, TaskState state);
/// A payload is bytes here, never JSON.
ScheduleRequest to_internal(TaskRequest request, Due due);

}  // namespace detent::durable

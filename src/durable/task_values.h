// The values of the DurableScheduler's header and those of the engine, turned into each other. The
// public ones are types of their own, so that what the engine knows of tasks may change.
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

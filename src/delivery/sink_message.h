// Creates the message to a sink for a task. docs/guides/sinks.md describes it to consumers.
#pragma once

#include "sinks/sink.h"
#include "task/request.h"

namespace detent {

/// The message has the stored payload, the task's id, and fields. The fields identify the task
/// (detent-id, -queue, -key, -attempt, -due-at) and have its content-type. They also have the
/// headers of the task, including its trace; a task cannot forge the other fields. In the key, a %
/// and every byte except visible ASCII are written as %XX.
SinkMessage make_sink_message(LeasedTask leased);

}  // namespace detent

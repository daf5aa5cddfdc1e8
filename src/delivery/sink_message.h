// What is sent to a sink for a task. docs/guides/sinks.md describes it to consumers.
#pragma once

#include "sinks/sink.h"
#include "task/request.h"

namespace detent {

/// The payload as it is stored, the task's id, and as fields: who it is (detent-id, -queue, -key,
/// -attempt, -due-at), its content-type, and the headers it asks for, its trace among them; a task
/// cannot forge the others. Of the key all but visible ASCII is written as %XX, as is a %.
SinkMessage make_sink_message(LeasedTask leased);

}  // namespace detent

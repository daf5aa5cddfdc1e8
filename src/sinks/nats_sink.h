// NATS JetStream, by libnats (cnats).
#pragma once

#include <memory>

#include "sinks/sink.h"
#include "sinks/sink_address.h"

namespace detent {

/// Publishes to the subject, which a stream of JetStream must hold, with the task's id as
/// Nats-Msg-Id, and waits for the stream's acknowledgement: a message to a plain subject is kept by
/// nobody, so it counts as not sent. Connects by itself, in threads of libnats, and again when the
/// connection is lost. A send waits up to 2 s for a server that reads nothing, which then counts as
/// lost. Errors: internal when there can be no thread or memory for it.
Result<std::unique_ptr<Sink>> make_nats_sink(const SinkAddress& address);

}  // namespace detent

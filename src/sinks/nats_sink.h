// NATS JetStream, by libnats (cnats).
#pragma once

#include <memory>

#include "sinks/sink.h"
#include "sinks/sink_address.h"

namespace detent {

/// Publishes to the subject, with the task's id as Nats-Msg-Id, and waits for the acknowledgement
/// of the stream. A JetStream stream must hold the subject, because a plain subject stores no
/// messages; without a stream, a message counts as not sent.
///
/// It connects by itself, in threads of libnats, and reconnects after a lost connection. If the
/// server does not read, a send waits up to 2 s, and the connection then counts as lost. Errors:
/// internal if the system is out of threads or memory.
Result<std::unique_ptr<Sink>> make_nats_sink(const SinkAddress& address);

}  // namespace detent

// A stream of Redis.
#pragma once

#include <memory>

#include "sinks/sink.h"
#include "sinks/sink_address.h"

namespace detent {

/// XADDs an entry: `id`, `payload`, and the message's fields but those of these names. Entries are
/// sent many at a time, by a thread that connects, and connects again when the connection is lost.
Result<std::unique_ptr<Sink>> make_redis_sink(const SinkAddress& address);

}  // namespace detent

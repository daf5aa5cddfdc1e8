// Kafka, by librdkafka.
#pragma once

#include <memory>

#include "sinks/sink.h"
#include "sinks/sink_address.h"

namespace detent {

/// Sends to the topic with acks=all and the task's id as the key; fields are headers. librdkafka
/// resends within message.timeout.ms (30 s unless the address says otherwise), then gives up. Not
/// idempotent: an idempotent producer can fail for good, and a resend may double anyway. Connects
/// by itself, in threads of its own. A message above message.max.bytes is refused; what a broker
/// finds too large, which it says of a batch, counts as not sent. Errors: invalid_argument for a
/// setting that librdkafka does not know, or a message.timeout.ms that is not of 1 to 50 000.
Result<std::unique_ptr<Sink>> make_kafka_sink(const SinkAddress& address);

}  // namespace detent

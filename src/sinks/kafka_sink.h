// Kafka, by librdkafka.
#pragma once

#include <memory>

#include "sinks/sink.h"
#include "sinks/sink_address.h"

namespace detent {

/// Sends to the topic with acks=all and the task's id as the key; fields are headers. librdkafka
/// resends within message.timeout.ms (30 s unless the address says otherwise), then gives up. Not
/// idempotent: an idempotent producer can fail for good, and a resend may double anyway. Connects
/// by itself, in threads of its own. Errors: invalid_argument for a setting that librdkafka does
/// not know.
Result<std::unique_ptr<Sink>> make_kafka_sink(const SinkAddress& address);

}  // namespace detent

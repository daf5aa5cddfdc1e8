// Kafka, by librdkafka.
#pragma once

#include <memory>

#include "sinks/sink.h"
#include "sinks/sink_address.h"

namespace detent {

/// Sends to the topic with acks=all and the task's id as the key; fields are headers. librdkafka
/// resends within message.timeout.ms (30 s by default), then gives up. The producer is not
/// idempotent, because an idempotent producer can fail permanently, and a resend by the server may
/// duplicate a message in any case.
///
/// It connects by itself, in its own threads. A message above message.max.bytes is refused. If a
/// broker reports a batch as too large, its messages count as not sent. Errors: invalid_argument
/// for a setting that librdkafka does not know, or a message.timeout.ms outside 1 to 50 000.
Result<std::unique_ptr<Sink>> make_kafka_sink(const SinkAddress& address);

}  // namespace detent

// The brokers that an operator has named, as the file of --sinks has them: a line each, its name
// and its address.
//
//   orders  kafka://10.0.0.1:9092,10.0.0.2:9092/orders?compression.codec=lz4
//   events  nats://ada:secret@10.0.0.3:4222/events.due
//   mail    redis://:secret@10.0.0.4:6379/mail?maxlen=100000
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.h"

namespace detent {

struct SinkAddress {
  enum class Kind : std::uint8_t { kafka, nats, redis };
  Kind kind = Kind::kafka;
  std::vector<std::string> brokers;  // HOST:PORT each, at least one; of Redis one
  std::string target;                // topic, subject or stream
  std::string user;                  // NATS and Redis
  std::string password;
  /// The settings after the "?", in their order. Kafka: settings of librdkafka; Redis: maxlen.
  std::vector<std::pair<std::string, std::string>> settings = {};

  friend bool operator==(const SinkAddress&, const SinkAddress&) = default;
};

/// One address. In user, password, target and settings %40 stands for an "@". Errors:
/// invalid_argument; the message does not repeat the address, which may hold a password.
Result<SinkAddress> parse_sink_address(std::string_view url);

/// Returns the addresses by name. Ignores blank lines and lines that begin with "#". Errors:
/// invalid_argument with the line in the message: an invalid sink name (task/sink_name.h), a
/// repeated name, or an invalid address as above.
Result<std::map<std::string, SinkAddress>> parse_sink_lines(std::string_view lines);

}  // namespace detent

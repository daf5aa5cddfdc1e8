// The target that due tasks are handed to: a broker (Kafka, NATS, Redis), behind one interface.
//
// A sink takes messages. Later it reports for each message whether the broker has stored it, as
// durably as the broker can. The sender limits the number of pending messages and decides when to
// send a failed message again. A sink keeps no messages and retries none. docs/guides/sinks.md
// describes the messages for users; delivery/sink_message.h makes a message from a task.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/result.h"
#include "detent/unique_function.h"

namespace detent {

/// The message of a task. `fields` become headers, or the fields of a stream's entry. Their names
/// are valid HTTP header names, and their values are printable ASCII.
struct SinkMessage {
  std::string id;  // the task's: the same whenever it is sent
  std::string body;
  std::vector<std::pair<std::string, std::string>> fields = {};
};

/// Thread-safe.
class Sink {
 public:
  /// Ok: the broker has acknowledged the message. Errors: `unavailable` if the broker cannot be
  /// reached or accepts no messages now, so every message would fail; any other error means that
  /// the broker refused this message.
  using Done = UniqueFunction<void(Result<void>)>;

  /// Pending messages get no answer after this. Must not be called by a Done.
  virtual ~Sink() = default;
  /// Sends the message without waiting for the broker's answer; waits at most 2 s for a broker that
  /// does not read. `done` runs at most once, on any thread, perhaps before this returns. It never
  /// runs if the broker does not answer, or if a lost connection is not detected. `done` must not
  /// call send().
  virtual void send(SinkMessage message, Done done) = 0;
};

/// Sinks by the names that queues use. Shared by the deliverers of a node's shards, which end in
/// any order.
using Sinks = std::map<std::string, std::shared_ptr<Sink>>;

}  // namespace detent

// Where due tasks are handed on to: a broker (Kafka, NATS, Redis), behind one interface.
//
// A sink takes messages and says of each, later, what became of it: the broker has it, durably as
// far as the broker is durable, or not. Who sends decides how many are under way and when one that
// failed is sent again; a sink keeps nothing and retries nothing. docs/guides/sinks.md describes to
// users what arrives; delivery/sink_message.h makes it of a task.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/result.h"
#include "detent/unique_function.h"

namespace detent {

/// What is sent for a task. `fields` become headers, or fields of a stream's entry; they have
/// names of HTTP headers and values of printable ASCII.
struct SinkMessage {
  std::string id;  // the task's: the same whenever it is sent
  std::string body;
  std::vector<std::pair<std::string, std::string>> fields = {};
};

/// Thread-safe.
class Sink {
 public:
  /// Ok: the broker has acknowledged it. Errors: `unavailable`: the broker cannot be reached, or
  /// takes nothing now, so all that is sent would fail; any other: it refused this very message.
  using Done = UniqueFunction<void(Result<void>)>;

  /// What has no answer yet gets none any more. Not to be called by a Done.
  virtual ~Sink() = default;
  /// Does not wait for the broker's answer; at most 2 s for one that reads nothing. `done` runs at
  /// most once, on any thread, perhaps before this returns; not at all when the broker says
  /// nothing, or the connection is lost and nobody can tell. It must not send.
  virtual void send(SinkMessage message, Done done) = 0;
};

/// By the names that queues have for them. Shared by the deliverers of a node's shards, of which
/// each may outlive the others.
using Sinks = std::map<std::string, std::shared_ptr<Sink>>;

}  // namespace detent

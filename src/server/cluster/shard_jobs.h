// The shard's side of the questions of beanstalk clients on any node (cluster_jobs.h). It carries
// them out on the shard's engine.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "detent/clock.h"
#include "engine/thread/engine_thread.h"
#include "net/http_server/http_server.h"
#include "server/beanstalk/cluster_jobs.h"
#include "server/cluster/latest_ends.h"

namespace detent::server {

/// The path for these questions of nodes; clients cannot use it.
inline constexpr std::string_view kJobsTarget = "/v1/cluster/jobs";

/// Thread-safe. `engine` must be stopped before it is destroyed. `tracer` may be null.
class ShardJobs {
 public:
  ShardJobs(EngineThread& engine, const Clock& clock, TaskTracer* tracer = nullptr)
      : engine_(engine), clock_(clock), tracer_(tracer) {}

  /// Answers after the changes are durable: 200 with an encoded ShardAnswer; 503 if the engine's
  /// store has failed; 400 if the body is not a ShardAsk.
  void handle(const net::HttpRequest& request, const net::Responder& responder);

 private:
  void call(Engine& engine, std::vector<JobCall> calls, const net::Responder& responder);
  void tell(const net::Responder& responder, const ShardAnswer& answer);
  void take(Engine& engine, const ShardAsk& ask, const net::Responder& responder);
  void end_take(Engine& engine, std::uint64_t number);

  EngineThread& engine_;
  const Clock& clock_;
  TaskTracer* const tracer_;

  // Used only by the engine's thread.
  std::unordered_map<std::uint64_t, Engine::WaitId> takes_;  // that wait, by their numbers
  LatestEnds<std::uint64_t> ended_;                          // before they have come
};

}  // namespace detent::server

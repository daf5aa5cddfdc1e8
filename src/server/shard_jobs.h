// The side of a shard for beanstalk clients of any node: carries out what is asked of it
// (cluster_jobs.h) on the shard's engine.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string_view>
#include <unordered_map>

#include "detent/clock.h"
#include "engine/engine_thread.h"
#include "net/http_server.h"
#include "server/cluster_jobs.h"
#include "server/latest_ends.h"

namespace detent::server {

/// Where nodes ask for this; no client gets there.
inline constexpr std::string_view kJobsTarget = "/v1/cluster/jobs";

/// Thread-safe. `engine` must be stopped before it is destroyed.
class ShardJobs {
 public:
  ShardJobs(EngineThread& engine, const Clock& clock) : engine_(engine), clock_(clock) {}

  /// Answers once what was done is durable: 200 with an encoded ShardAnswer; 503 when the engine's
  /// store does not work; 400 for what is no ShardAsk.
  void handle(const net::HttpRequest& request, const net::Responder& responder);

 private:
  class Run;

  void tell(const net::Responder& responder, const ShardAnswer& answer);
  void take(Engine& engine, const ShardAsk& ask, const net::Responder& responder);
  void end_take(Engine& engine, std::uint64_t number);

  EngineThread& engine_;
  const Clock& clock_;

  // Touched only by the engine's thread.
  std::unordered_map<std::uint64_t, Engine::WaitId> takes_;  // that wait, by their numbers
  LatestEnds<std::uint64_t> ended_;                          // before they have come
};

}  // namespace detent::server

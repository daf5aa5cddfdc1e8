#include "server/cluster/cluster_job_shards.h"

#include <chrono>
#include <string>
#include <utility>

#include "base/rng.h"
#include "server/cluster/shard_jobs.h"

namespace detent::server {

ClusterJobShards::ClusterJobShards(ClusterFront& front)
    : front_(front), last_number_(Rng(random_seed()).next()) {}

void ClusterJobShards::ask(ShardNumber shard, const ShardAsk& ask, Done done, WhenSlow slow) {
  ++open_;
  gateway::Part part{
      .shard = shard,
      .request = {.method = "POST",
                  .target = std::string(kJobsTarget),
                  .headers = {},
                  .body = encode(ask)},
      .may_wait = ask.kind == ShardAsk::Kind::take && ask.wait > std::chrono::milliseconds{0}};
  // These questions are never abandoned, because an answer without a receiver could hold a lease.
  (void)front_.ask(
      std::move(part),
      [this, done = std::move(done)](const net::HttpResponse& response) mutable {
        std::optional<ShardAnswer> answer;
        if (response.status == 200) {
          if (Result<ShardAnswer> read = decode_answer(response.body)) {
            answer = *std::move(read);
          }
        }
        done(std::move(answer));
        --open_;
        return true;
      },
      std::move(slow));
}

}  // namespace detent::server

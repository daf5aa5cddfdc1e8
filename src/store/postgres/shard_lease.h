// Who has a shard: its row says the owner and until when, by the database's clock, and carries the
// epoch that every change must name. The lease keeps a second server from starting by mistake; what
// keeps a lost one from doing harm is the epoch.
#pragma once

#include <cstdint>
#include <string>

#include "base/result.h"
#include "base/thread.h"
#include "detent/clock.h"
#include "store/postgres/batch_statement.h"
#include "store/postgres/connection.h"
#include "store/postgres/postgres_store.h"
#include "store/store.h"

namespace detent {

/// What a shard's row said when it was taken.
struct ClaimedShard {
  Fence fence;
  TaskId last_id;
  std::uint32_t last_queue = 0;
};

/// Takes the shard and raises its epoch, durably. Waits for a change of the former owner's that is
/// under way; later ones fail. Errors: unavailable while another owner's lease runs.
Result<ClaimedShard> claim_shard(Connection& connection, const PostgresStoreOptions& options);
/// Raises the epoch. Errors: fenced.
Result<std::uint64_t> raise_epoch(Connection& connection, Fence fence);
/// Lets the shard go, if it is ours. Durable, with all that was written before.
Result<void> release_shard(Connection& connection, Fence fence, std::uint64_t owner);

/// Renews a lease on a thread and a connection of its own, until it is destroyed or the shard has
/// another owner. A renewal that fails is tried again at the next.
class LeaseKeeper {
 public:
  LeaseKeeper(const PostgresStoreOptions& options, Clock& clock);
  ~LeaseKeeper();
  LeaseKeeper(const LeaseKeeper&) = delete;
  LeaseKeeper& operator=(const LeaseKeeper&) = delete;

 private:
  void run();

  const PostgresStoreOptions options_;
  Clock& clock_;
  Doorbell stop_;
  Thread thread_;  // last: it uses the above
};

}  // namespace detent

// Takes, enters and releases shards. The row of a lease in detent.lease has the owner and the end
// of the lease, by the clock of the database. The row of the shard in detent.shard has the epoch
// that each change must name. The lease keeps a second server from starting by mistake. The epoch
// keeps a server that lost its shard from doing harm.
//
// All transactions that change both rows change the lease first, so they never wait for each other
// in a circle.
//
// The former owner may have been stopped between its batch and the end of the transaction. Then its
// session still holds the row of the shard, and PostgreSQL would wait forever. So the server that
// takes the shard ends this session; the lease of the former owner has expired by then. Ending a
// session of the same role needs no extra permission.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "base/thread.h"
#include "detent/clock.h"
#include "store/postgres/connection.h"
#include "store/postgres/fenced_statement.h"
#include "store/postgres/postgres_store.h"
#include "store/store.h"

namespace detent {

/// The values in the row of the shard when the shard was taken.
struct ClaimedShard {
  Fence fence;
  TaskId last_id;
  std::uint32_t last_queue = 0;
};

/// SQL condition: the lease has expired.
inline constexpr std::string_view kHasRunOut = "(until is null or until <= clock_timestamp())";
/// SQL expression: the end of a lease that begins now.
std::string lease_end(Statement& statement, std::chrono::milliseconds lease);
/// Statements that create a cluster with this number of shards if there is none. They also add
/// missing rows of shards.
std::vector<Statement> make_cluster(std::uint32_t shards);
/// SQL that raises the epoch of the shard that is in `free`. It waits for a running change of the
/// shard, and ends a session that stands still in the middle of a change. `writes` is the number of
/// writes under the new epoch: 1, or 0 if enter_shard() must follow.
std::string raise_of_free(int writes);

/// Takes the only shard of a database and raises its epoch durably. Creates the cluster if there is
/// none. Waits for a running change of the former owner; later changes of that owner fail. Errors:
/// unavailable if the lease of another owner has not expired; invalid_argument if the database has
/// more than one shard.
Result<ClaimedShard> claim_shard(Connection& connection, const PostgresStoreOptions& options);
/// The number of shards of the database. Errors: unavailable if any shard has a lease that has not
/// expired; not_found if there is no cluster.
Result<std::uint32_t> count_idle_shards(Connection& connection);
/// Reads the row of a shard without taking the shard. Errors: as count_idle_shards(), for this
/// shard.
Result<ClaimedShard> look_at_shard(Connection& connection, std::uint32_t shard);
/// Begins to use a shard that was taken with this epoch. Only the first call succeeds. Errors:
/// unavailable.
Result<ClaimedShard> enter_shard(Connection& connection, std::uint32_t shard, std::uint64_t epoch);
/// Raises the epoch and returns it. The number of writes under the new epoch is 1. Errors: fenced.
Result<std::uint64_t> raise_epoch(Connection& connection, Fence fence);
/// Ends the lease if it still is our own. This is synced, so all earlier writes are durable, too.
Result<void> release_shard(Connection& connection, Fence claimed, std::uint64_t owner);

/// Renews a lease on a thread and a connection of its own, until it is destroyed or the shard has
/// another owner. If a renewal fails, the next renewal is at the usual time.
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
  Thread thread_;  // last member, because the thread uses the others
};

}  // namespace detent

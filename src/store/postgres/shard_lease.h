// Who has a shard: the row of its lease says the owner and until when, by the database's clock; the
// shard's own row carries the epoch that every change must name. The lease keeps a second server
// from starting by mistake; what keeps a lost one from doing harm is the epoch.
//
// Who changes both rows changes the lease first, so nobody waits in a circle. The shard's row may
// be held by a session of the former owner that has run its batch and not heard the end of it: the
// owner was stopped between the two, and PostgreSQL would wait for ever. Its lease has run out, so
// taking the shard ends that session. That needs no right if it is of the same role.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

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

/// In SQL, whether a lease has run out.
inline constexpr std::string_view kHasRunOut = "(until is null or until <= clock_timestamp())";
/// In SQL, the end of a lease that begins now.
std::string lease_end(Statement& statement, std::chrono::milliseconds lease);
/// A cluster of so many shards where there is none, and the rows of shards that are missing.
std::vector<Statement> make_cluster(std::uint32_t shards);
/// In SQL, raises the epoch of the shard that is in `free`. Waits for a change that is under way
/// and ends one that stands still. With 0 writes it is to be entered.
std::string raise_of_free(int writes);

/// Takes the shard of a database that has one and raises its epoch, durably; makes it where there
/// is none. Waits for a change of the former owner's that is under way; later ones fail. Errors:
/// unavailable while another owner's lease runs; invalid_argument when there are more shards.
Result<ClaimedShard> claim_shard(Connection& connection, const PostgresStoreOptions& options);
/// How many shards the database has. Errors: unavailable while an owner's lease of any of them
/// runs; not_found when there is none.
Result<std::uint32_t> count_idle_shards(Connection& connection);
/// A shard as it is, without taking it. Errors: as count_idle_shards(), of this shard.
Result<ClaimedShard> look_at_shard(Connection& connection, std::uint32_t shard);
/// Takes up a shard that was taken at this epoch: the first does, and no other. Errors:
/// unavailable.
Result<ClaimedShard> enter_shard(Connection& connection, std::uint32_t shard, std::uint64_t epoch);
/// Raises the epoch; what is written under it begins at 1. Errors: fenced.
Result<std::uint64_t> raise_epoch(Connection& connection, Fence fence);
/// Lets go what was claimed, if it still is ours. Durable, with all that was written before.
Result<void> release_shard(Connection& connection, Fence claimed, std::uint64_t owner);

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

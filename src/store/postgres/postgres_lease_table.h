// The lease table in PostgreSQL: rows of detent.lease and detent.member, by the database's clock.
//
// Each call is one statement. A beat changes the member's row and those of its leases, none of them
// with a changing column in an index, and reads the members and the leases that have run out; it
// waits for no batch, because the epoch is in another row, that of detent.shard, which only taking
// a shard touches (shard_lease.h). docs/internals/storage-format.md defines the tables.
#pragma once

#include <chrono>
#include <memory>
#include <optional>
#include <string>

#include "base/result.h"
#include "detent/clock.h"
#include "store/lease_table.h"
#include "task/task.h"

namespace detent {

/// As many as the ids of tasks can tell apart.
inline constexpr ShardNumber kMostShards = ShardNumber{1} << TaskId::kShardBits;

struct PostgresLeaseTableOptions {
  /// As PostgresStoreOptions::url.
  std::string url;
  /// How many shards a new cluster gets, 1 … kMostShards, for ever; of one that is there it must be
  /// the number. None: whatever is there, and 16 for a new one.
  std::optional<ShardNumber> shards = {};
  std::chrono::milliseconds lease_length = std::chrono::seconds{10};
  /// The most that a statement may take in the database; of more than half a lease, that half.
  std::chrono::milliseconds statement_timeout = std::chrono::milliseconds{2500};
  /// For people who look at the database's sessions.
  std::string node = {};
};

/// Thread-compatible, with one connection. When the connection is lost the next call makes another;
/// while that fails, calls fail at once for a time that doubles from a 64th of a lease to an
/// eighth.
class PostgresLeaseTable : public LeaseTable {
 public:
  /// Makes the tables if they are missing, and the cluster where there is none. Blocks as
  /// PostgresStore::open() does. `clock` must outlive the table; it only tells when to connect
  /// again. Errors: those of a URL, unavailable, and invalid_argument when the cluster has another
  /// number of shards.
  static Result<std::unique_ptr<PostgresLeaseTable>> open(PostgresLeaseTableOptions options,
                                                          const Clock& clock);

  /// Made at random with the cluster, of 244 bits, in hex: its nodes show it each other.
  virtual const std::string& secret() const noexcept = 0;
};

}  // namespace detent

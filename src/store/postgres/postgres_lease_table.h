// The lease table in PostgreSQL: the rows of detent.lease and detent.member. The clock of the
// database counts.
//
// Each call is one statement. A beat updates the row of the member and the rows of its leases. No
// index contains the columns that it changes. It also reads the members and the expired leases. A
// beat never waits for a batch, because the epoch is in another row, in detent.shard. Only taking a
// shard touches both rows (shard_lease.h). docs/internals/storage-format.md defines the tables.
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

/// The number of shards that task ids can distinguish.
inline constexpr ShardNumber kMostShards = ShardNumber{1} << TaskId::kShardBits;

struct PostgresLeaseTableOptions {
  /// As PostgresStoreOptions::url.
  std::string url;
  /// The number of shards, 1 … kMostShards. A new cluster gets this number permanently. An existing
  /// cluster must have this number. Default: the number of the existing cluster, or 16 for a new
  /// one.
  std::optional<ShardNumber> shards = {};
  std::chrono::milliseconds lease_length = std::chrono::seconds{10};
  /// The time limit of a statement in the database, at most half of lease_length.
  std::chrono::milliseconds statement_timeout = std::chrono::milliseconds{2500};
  /// A name for people who look at the sessions of the database.
  std::string node = {};
};

/// Thread-compatible. Has one connection. After a lost connection, the next call connects again.
/// After a failed attempt, calls fail immediately for a while. This time begins at 1/64 of a lease,
/// doubles with each failed attempt, and is at most 1/8 of a lease.
class PostgresLeaseTable : public LeaseTable {
 public:
  /// Creates the tables and the cluster if they are missing. Blocks as PostgresStore::open() does.
  /// `clock` must outlive the table; it only decides when to connect again. Errors: an invalid URL;
  /// unavailable; invalid_argument if the cluster has another number of shards.
  static Result<std::unique_ptr<PostgresLeaseTable>> open(PostgresLeaseTableOptions options,
                                                          const Clock& clock);

  /// A secret of 244 random bits as hexadecimal digits. It is made with the cluster. The nodes show
  /// it to each other.
  virtual const std::string& secret() const noexcept = 0;
};

}  // namespace detent

// The store in PostgreSQL (15 or later), for users who already have a database and do not want to
// maintain a data folder.
//
// Each batch is one SQL statement with arrays, so it takes one round trip. The statement changes
// nothing unless the row of the shard still has the epoch of this store. So a server that was
// declared dead, stopped or disconnected does no harm when it comes back: the database decides, at
// the moment of the change. The store uses no extension, no advisory lock and no LISTEN. It uses no
// prepared statements behind a pooler such as pgbouncer in transaction mode (connection.h).
//
// docs/internals/storage-format.md defines the tables. docs/operating/postgresql.md is for
// operators of the database.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "base/result.h"
#include "detent/clock.h"
#include "store/store.h"

namespace detent {

struct PostgresStoreOptions {
  /// "postgres://user:password@host:5432/database?…", as libpq reads it.
  std::string url;
  /// The shard of the database. It is 0 if there is no epoch. Shards do not see each other.
  std::uint32_t shard = 0;
  /// The epoch of a lease on the shard that the caller manages (postgres_lease_table.h). Default:
  /// the database is for this store alone, and the store takes a lease of its own.
  std::optional<std::uint64_t> epoch = {};
  /// A random name for the process that opens the store without an epoch. A process with the same
  /// name may take over its own lease immediately. So a process can open a store again after it has
  /// lost the store.
  std::uint64_t owner = 0;
  /// The length of the store's own lease, by the clock of the database. The store renews it three
  /// times in this time. Another server must wait this long if the owner is silent.
  std::chrono::milliseconds lease = std::chrono::seconds{10};
  /// The time limit of a statement in the database.
  std::chrono::milliseconds statement_timeout = std::chrono::seconds{30};
  /// A name for people who look at the sessions of the database.
  std::string node = {};
};

/// Opens the store. The rest is behind the interface. After a lost connection, the next read
/// connects again. After a failed write, all writes fail until the store is opened again.
///
/// Without an epoch, the store has a second thread, which renews the lease over its own connection.
///
/// With an epoch, the store does not take, renew or end a lease. Each epoch can be opened only
/// once: a second store of the same epoch would not see the unfinished writes of the first one. A
/// caller that has lost such a store gives up the lease and takes the shard again. The first
/// begin_epoch() returns the epoch of opening. Further calls raise the epoch, and the lease table
/// does not know of this.
class PostgresStore {
 public:
  /// Creates the tables if they are missing, then takes the shard. Blocks while it connects (5
  /// seconds for each host, unless the URL says otherwise). `clock` must outlive the store; it only
  /// decides when to renew the lease. No error message contains the password. Errors:
  ///  - unavailable: the database cannot be reached, the lease of another owner has not expired, or
  ///    the shard has another epoch.
  ///  - invalid_argument: the URL is invalid, the database refuses the login, a newer version made
  ///    the tables, or there is no epoch and the database has more than one shard.
  static Result<std::unique_ptr<Store>> open(const PostgresStoreOptions& options, Clock& clock);
  /// The number of shards for open_to_read(). More than one means a cluster. Errors: as
  /// open_to_read(), for each shard.
  static Result<std::uint32_t> shards_to_read(const PostgresStoreOptions& options);
  /// Opens the shard for reading only. It changes neither the tables nor the epoch, so leases that
  /// a stopped server has kept stay valid. All writes fail. Reads fail after another server has
  /// taken the shard. Errors:
  ///  - unavailable: the database cannot be reached, or the lease of an owner has not expired.
  ///  - invalid_argument: the URL is invalid, the database refuses the login, or the tables have a
  ///    newer version.
  ///  - not_found: there are no tables, or no server has used them yet.
  static Result<std::unique_ptr<Store>> open_to_read(const PostgresStoreOptions& options);
};

/// True if the URL begins with "postgres://" or "postgresql://".
bool is_postgres_url(const std::string& url) noexcept;
/// The part of a URL that may be shown: "postgres://host:5432/database", without user and password.
std::string shown_postgres_url(const std::string& url);

}  // namespace detent

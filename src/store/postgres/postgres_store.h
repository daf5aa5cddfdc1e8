// The store in PostgreSQL (15 or later), for whoever has a database at hand and wants no other disk
// to look after.
//
// Every batch is one SQL statement with arrays, in one round trip. The same statement raises
// nothing and changes nothing unless the shard's row still carries the epoch of this store, so a
// server that was declared dead, stopped or cut off can do no harm when it comes back: the database
// decides, at the moment of the change. No extension, no advisory lock and no LISTEN is used, and
// no prepared statement where a pooler stands in between, as a pgbouncer in transaction mode may
// (connection.h).
// docs/internals/storage-format.md defines the tables; docs/operating/postgresql.md is for whoever
// runs the database.
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
  /// Which shard of the database's this is: 0 unless it has an epoch. Shards do not see each other.
  std::uint32_t shard = 0;
  /// Of a lease on the shard that somebody else looks after (postgres_lease_table.h). None: the
  /// database is for this store alone, which takes a lease of its own.
  std::optional<std::uint64_t> epoch = {};
  /// Names who opens without an epoch, at random: whoever has the same name takes its own lease
  /// over at once, so a process can open a store again that it lost.
  std::uint64_t owner = 0;
  /// How long the database keeps the shard for an owner from which nothing is heard, by its own
  /// clock. It is renewed three times as often.
  std::chrono::milliseconds lease = std::chrono::seconds{10};
  /// The most that a statement may take, in the database.
  std::chrono::milliseconds statement_timeout = std::chrono::seconds{30};
  /// For people who look at the database's sessions.
  std::string node = {};
};

/// Makes the store; all else of it is behind the interface. A read after a lost connection makes
/// another; a write that failed is followed by none until the store is opened again.
///
/// Without an epoch it has, beside the caller's thread, one that renews its lease, with a
/// connection of its own. With one it neither takes, renews nor ends a lease, and can be opened
/// once: what an earlier store of the same epoch still has under way would come too late to be
/// seen. Who has lost such a store gives the lease up and takes the shard again. begin_epoch()
/// answers that epoch at first; called again it raises it, which the lease table does not know of.
class PostgresStore {
 public:
  /// Makes the tables if they are missing, then takes the shard. Blocks while it connects (5
  /// seconds a host, unless the URL says otherwise). `clock` must outlive the store; it only tells
  /// when to renew. Errors: unavailable when the database cannot be reached, another owner's lease
  /// has not run out, or the epoch is no longer the shard's; invalid_argument when the URL is none,
  /// the database refuses us, a newer version made its tables, or there is no epoch and the
  /// database has more shards than one. No message repeats the password.
  static Result<std::unique_ptr<Store>> open(const PostgresStoreOptions& options, Clock& clock);
  /// How many shards there are for open_to_read(): more than one are those of a cluster. Errors: as
  /// open_to_read(), of any shard.
  static Result<std::uint32_t> shards_to_read(const PostgresStoreOptions& options);
  /// Opens the shard to look at it: nothing in the database is changed, not the tables and not the
  /// epoch, under which leases were kept; every write fails, and reads do once somebody takes the
  /// shard. Errors: unavailable when the database cannot be reached, or an owner's lease runs;
  /// invalid_argument when the URL is none, the database refuses us, or the tables are of a newer
  /// version; not_found when there are none, or no server has been started on them.
  static Result<std::unique_ptr<Store>> open_to_read(const PostgresStoreOptions& options);
};

/// Whether this is meant to be the address of a database: "postgres://…" or "postgresql://…".
bool is_postgres_url(const std::string& url) noexcept;
/// "postgres://host:5432/database": what may be shown of an address.
std::string shown_postgres_url(const std::string& url);

}  // namespace detent

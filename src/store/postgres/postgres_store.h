// The store in PostgreSQL (15 or later), for whoever has a database at hand and wants no other disk
// to look after.
//
// Every batch is one SQL statement with arrays, in one round trip. The same statement raises
// nothing and changes nothing unless the shard's row still carries the epoch of this store, so a
// server that was declared dead, stopped or cut off can do no harm when it comes back: the database
// decides, at the moment of the change. No extension, no advisory lock, no LISTEN and no prepared
// statement is used, so a pgbouncer in transaction mode may stand in between.
// docs/internals/storage-format.md defines the tables; docs/operating/postgresql.md is for whoever
// runs the database.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <string>

#include "base/result.h"
#include "detent/clock.h"
#include "store/store.h"

namespace detent {

struct PostgresStoreOptions {
  /// "postgres://user:password@host:5432/database?…", as libpq reads it.
  std::string url;
  /// Which shard of the database's this is. Shards do not see each other.
  std::uint32_t shard = 0;
  /// Names who opens, at random: whoever has the same name takes its own lease over at once, so a
  /// process can open a store again that it lost.
  std::uint64_t owner = 0;
  /// How long the database keeps the shard for an owner from which nothing is heard, by its own
  /// clock. It is renewed three times as often.
  std::chrono::milliseconds lease = std::chrono::seconds{10};
  /// The most that a statement may take, in the database.
  std::chrono::milliseconds statement_timeout = std::chrono::seconds{30};
};

/// Makes the store; all else of it is behind the interface. Beside the caller's thread a store has
/// one that renews its lease, and each of the two has a connection. A read after a lost connection
/// makes another; a write that failed is followed by none until the store is opened again.
class PostgresStore {
 public:
  /// Makes the tables, or brings them up to date, then takes the shard. Blocks while it connects (5
  /// seconds a host, unless the URL says otherwise). `clock` must outlive the store; it only tells
  /// when to renew. Errors: unavailable when the database cannot be reached or another owner's
  /// lease has not run out; invalid_argument when the URL is none, the database refuses us, or a
  /// newer version made its tables. No message repeats the password.
  static Result<std::unique_ptr<Store>> open(const PostgresStoreOptions& options, Clock& clock);
};

/// Whether this is meant to be the address of a database: "postgres://…" or "postgresql://…".
bool is_postgres_url(const std::string& url) noexcept;
/// "postgres://host:5432/database": what may be shown of an address.
std::string shown_postgres_url(const std::string& url);

}  // namespace detent

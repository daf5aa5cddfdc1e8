// The tables in PostgreSQL; docs/internals/storage-format.md describes them.
#pragma once

#include "base/result.h"
#include "store/postgres/connection.h"

namespace detent {

/// The version of the tables that this program supports.
inline constexpr int kSchemaVersion = 1;

/// Creates the tables if they are missing. It does this in one transaction, under a lock that
/// excludes other programs that do the same. If the tables exist, it only reads their version.
/// Errors: invalid_argument if a newer program made the tables, or if this user may not create
/// tables; unavailable.
Result<void> migrate(Connection& connection);
/// Checks the version of the tables and changes nothing. Errors: not_found if there are no tables;
/// invalid_argument if they have a newer version; unavailable.
Result<void> expect_migrated(Connection& connection);

}  // namespace detent

// The tables in PostgreSQL; docs/internals/storage-format.md describes them.
#pragma once

#include "base/result.h"
#include "store/postgres/connection.h"

namespace detent {

/// The version of the tables that this program works with.
inline constexpr int kSchemaVersion = 1;

/// Makes the tables if they are missing, in one transaction, under a lock that keeps out others who
/// do the same. If they are there it only asks for their version. Errors: invalid_argument when a
/// newer program made the tables, or we may not; unavailable.
Result<void> migrate(Connection& connection);
/// Changes nothing. Errors: not_found when there are no tables; invalid_argument when they are of a
/// newer version; unavailable.
Result<void> expect_migrated(Connection& connection);

}  // namespace detent

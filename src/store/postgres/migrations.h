// The tables in PostgreSQL, made and brought up to date step by step;
// docs/internals/storage-format.md describes them.
#pragma once

#include "base/result.h"
#include "store/postgres/connection.h"

namespace detent {

/// The version of the tables that this program works with: how many steps there are.
inline constexpr int kSchemaVersion = 4;

/// Makes what is missing, in one transaction, under a lock that keeps out others who do the same;
/// when nothing is missing it only asks. Errors: invalid_argument when a newer program made the
/// tables, or we may not; unavailable.
Result<void> migrate(Connection& connection);
/// Changes nothing. Errors: not_found when there are no tables; invalid_argument when they are of
/// another version; unavailable.
Result<void> expect_migrated(Connection& connection);

}  // namespace detent

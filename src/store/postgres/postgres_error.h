// PostgreSQL's outcomes as our errors.
#pragma once

#include <string_view>

#include "base/result.h"

namespace detent {

/// What a statement of ours says when the shard's row does not carry our epoch, when it does not
/// know of our last write, and when a row that must be there is not: as the number that it is then
/// made to read (batch_statement.h).
inline constexpr std::string_view kFenced = "fenced";
inline constexpr std::string_view kWritesMissing = "writes_missing";
inline constexpr std::string_view kRowsMissing = "rows_missing";

/// `state` is an SQLSTATE, "" when the server said none; `message` is PostgreSQL's. The code says
/// what the caller can do.
Error postgres_error(std::string_view state, std::string_view message);

/// Another owner has raised the shard's epoch: nothing was changed.
Error fenced_error();

}  // namespace detent

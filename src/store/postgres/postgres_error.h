// Turns the errors of PostgreSQL into errors of this program.
#pragma once

#include <string_view>

#include "base/result.h"

namespace detent {

/// Words that a statement of this program reads as a number to make itself fail
/// (fenced_statement.h):
///  - kFenced: the row of the shard has another epoch.
///  - kWritesMissing: the database does not have our last write.
///  - kRowsMissing: a row that must exist is missing.
inline constexpr std::string_view kFenced = "fenced";
inline constexpr std::string_view kWritesMissing = "writes_missing";
inline constexpr std::string_view kRowsMissing = "rows_missing";

/// The error for an SQLSTATE and a message of PostgreSQL. `state` is "" if the server sent no
/// state. The code of the error tells the caller how to react.
Error postgres_error(std::string_view state, std::string_view message);

/// The error if another owner has raised the epoch of the shard. The statement has changed no data.
Error fenced_error();

}  // namespace detent

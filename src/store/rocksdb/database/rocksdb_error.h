// Converts a RocksDB status to an Error.
#pragma once

#include <rocksdb/status.h>

#include <string_view>

#include "base/result.h"

namespace detent {

/// Returns the message "context: cause". `context` is a verb and an object, such as "find task 7".
/// The caller can act on the error code. Requires: !status.ok().
Error to_error(std::string_view context, const rocksdb::Status& status);

}  // namespace detent

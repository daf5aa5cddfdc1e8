// RocksDB's outcomes as our errors.
#pragma once

#include <rocksdb/status.h>

#include <string_view>

#include "base/result.h"

namespace detent {

/// "verb object: cause", with a code that says what the caller can do. Requires: !status.ok().
Error to_error(std::string_view context, const rocksdb::Status& status);

}  // namespace detent

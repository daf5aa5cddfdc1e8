// Conversions between RocksDB's string view (Slice) and std::string_view.
#pragma once

#include <rocksdb/slice.h>
#include <rocksdb/status.h>

#include <string_view>

#include "detent/check.h"

namespace detent {

inline rocksdb::Slice slice(std::string_view bytes) { return {bytes.data(), bytes.size()}; }
inline std::string_view view(const rocksdb::Slice& slice) { return {slice.data(), slice.size()}; }

/// Checks the status of an operation that only fills a batch in memory. Such an operation cannot
/// fail, although RocksDB's interface returns a status.
inline void must(const rocksdb::Status& status) { DETENT_CHECK(status.ok()); }

}  // namespace detent

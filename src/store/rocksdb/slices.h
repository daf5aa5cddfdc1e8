// Between RocksDB's views of bytes and ours, and small forms that its interface asks for.
#pragma once

#include <rocksdb/slice.h>
#include <rocksdb/status.h>

#include <string_view>

#include "detent/check.h"

namespace detent {

inline rocksdb::Slice slice(std::string_view bytes) { return {bytes.data(), bytes.size()}; }
inline std::string_view view(const rocksdb::Slice& slice) { return {slice.data(), slice.size()}; }

/// What RocksDB says of a batch that is only filled in memory: it can't fail, the status is a form.
inline void must(const rocksdb::Status& status) { DETENT_CHECK(status.ok()); }

}  // namespace detent

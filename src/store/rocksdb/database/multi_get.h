// Reads many keys of a column family in one call.
//
// This takes less than half the time of single reads. RocksDB reads each index block and each data
// block only once, even if several of the keys are in it.
#pragma once

#include <rocksdb/db.h>

#include <cstddef>
#include <string>
#include <vector>

#include "store/rocksdb/database/slices.h"

namespace detent {

/// Calls `take(i, status, value)` for each of `keys`, in their order. `value` is valid only during
/// the call. Requires: the keys are sorted. Memory: all blocks that contain the keys, at the same
/// time.
template <class Take>
void multi_get(rocksdb::DB& db, rocksdb::ColumnFamilyHandle* family,
               const std::vector<std::string>& keys, Take take) {
  if (keys.empty()) return;
  std::vector<rocksdb::Slice> slices(keys.begin(), keys.end());
  std::vector<rocksdb::PinnableSlice> values(keys.size());
  std::vector<rocksdb::Status> statuses(keys.size());
  db.MultiGet(rocksdb::ReadOptions(), family, keys.size(), slices.data(), values.data(),
              statuses.data(), true);
  for (std::size_t i = 0; i < keys.size(); ++i) take(i, statuses[i], values[i]);
}

}  // namespace detent

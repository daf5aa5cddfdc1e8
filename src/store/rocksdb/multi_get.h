// Many keys of a family read at once.
//
// RocksDB then looks for neighbours together, and reads an index, or a block that has several of
// them, once: less than half of what one after another costs.
#pragma once

#include <rocksdb/db.h>

#include <cstddef>
#include <string>
#include <vector>

#include "store/rocksdb/slices.h"

namespace detent {

/// Calls `take(i, status, value)` for each of `keys`, in their order; `value` holds only until it
/// returns. Requires: the keys are sorted. Memory: the blocks that have them.
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

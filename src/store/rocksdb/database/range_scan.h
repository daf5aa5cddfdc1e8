// Iterates over the keys and values of a column family between two bounds.
//
// RocksDB is told both bounds, so it does not read the tombstones of deleted keys outside of them.
#pragma once

#include <rocksdb/db.h>

#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include "store/rocksdb/database/slices.h"

namespace detent {

/// The keys from `begin` up to, but not including, `end`. An empty string means no bound.
struct KeyBounds {
  std::string begin = {};
  std::string end = {};
};

/// Starts at the first key in the bounds. Reads the family as of construction, or as of the
/// snapshot in `options`. Thread-compatible.
class RangeScan {
 public:
  RangeScan(rocksdb::DB& db, rocksdb::ColumnFamilyHandle* family, KeyBounds bounds = {},
            rocksdb::ReadOptions options = {})
      : bounds_(std::move(bounds)) {
    options.iterate_lower_bound = &begin_;
    if (!bounds_.end.empty()) options.iterate_upper_bound = &end_;
    it_.reset(db.NewIterator(options, family));
    it_->Seek(begin_);
  }
  RangeScan(const RangeScan&) = delete;
  RangeScan& operator=(const RangeScan&) = delete;

  /// Returns false at the end of the range, and after an error. status() tells which.
  bool is_valid() const { return it_->Valid(); }
  rocksdb::Status status() const { return it_->status(); }
  void next() { it_->Next(); }
  /// The views are valid until the next call of next().
  std::string_view key() const { return view(it_->key()); }
  std::string_view value() const { return view(it_->value()); }

 private:
  // RocksDB keeps pointers to the slices, and the slices point to the bytes of `bounds_`.
  const KeyBounds bounds_;
  const rocksdb::Slice begin_{bounds_.begin};
  const rocksdb::Slice end_{bounds_.end};
  std::unique_ptr<rocksdb::Iterator> it_;
};

}  // namespace detent

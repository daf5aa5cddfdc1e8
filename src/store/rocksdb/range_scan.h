// The keys of a family between two bounds, and their values, one after another.
//
// RocksDB is given both bounds, so it does not walk over the tombstones of what was removed before
// the first key, or behind the last.
#pragma once

#include <rocksdb/db.h>

#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include "store/rocksdb/slices.h"

namespace detent {

/// From `begin` on, up to and without `end`; "" is no bound.
struct KeyBounds {
  std::string begin = {};
  std::string end = {};
};

/// Stands at the first key. Shows the family as it was when this was made, or as of a snapshot in
/// `options`. Thread-compatible.
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

  /// False: it is at its end, or status() tells why it could not go on.
  bool is_valid() const { return it_->Valid(); }
  rocksdb::Status status() const { return it_->status(); }
  void next() { it_->Next(); }
  /// They hold until next().
  std::string_view key() const { return view(it_->key()); }
  std::string_view value() const { return view(it_->value()); }

 private:
  // RocksDB keeps pointers to the slices, and they to the bytes.
  const KeyBounds bounds_;
  const rocksdb::Slice begin_{bounds_.begin};
  const rocksdb::Slice end_{bounds_.end};
  std::unique_ptr<rocksdb::Iterator> it_;
};

}  // namespace detent

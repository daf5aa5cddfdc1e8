// Speeds up inserts into RocksDB's write buffers: the search starts near the last entry of the same
// kind.
//
// A write buffer is a skip list. RocksDB searches for the position of a new entry from the top of
// the list, which takes about ten thousand instructions. The search is skipped only if the entry
// directly follows the last one. With a hint, the search starts at the last entry of the same kind
// (finger search: Pugh, "A Skip List Cookbook", 1990). RocksDB takes a prefix of a key as the kind
// of the key, and asks this class for the prefix.
//
// RocksDB 7.8 has a bug: a buffer has two lists, one for entries and one for removed ranges, but
// one table of hints for both. If the first key of a removed range has the kind of an entry,
// RocksDB inserts the range into its list with a hint for the other list. An assertion of the skip
// list then stops the process. Without assertions, the lists are corrupted. So the first key of a
// removed range must have no kind. The class Changes checks this for each removed range. All logs
// on disk were written with this check, so replaying them with hints is safe.
#pragma once

#include <rocksdb/slice_transform.h>

#include <cstddef>
#include <string_view>

namespace detent {

/// Belongs to the thread that opens the store and then writes to it. RocksDB calls it on no other
/// thread.
class InsertHints final : public rocksdb::SliceTransform {
 public:
  /// Keys that begin with the same `kind_bytes` bytes have the same kind. Shorter keys, and keys
  /// for which `has_kind` returns false, have no kind.
  InsertHints(std::size_t kind_bytes, bool (*has_kind)(std::string_view key)) noexcept
      : kind_bytes_(kind_bytes), has_kind_(has_kind) {}

  // NOLINTBEGIN(readability-identifier-naming): RocksDB's names
  const char* Name() const override { return "detent.InsertHints"; }
  bool InDomain(const rocksdb::Slice& key) const override {
    return key.size() >= kind_bytes_ && has_kind_({key.data(), key.size()});
  }
  rocksdb::Slice Transform(const rocksdb::Slice& key) const override {
    return {key.data(), kind_bytes_};
  }
  // NOLINTEND(readability-identifier-naming)

 private:
  const std::size_t kind_bytes_;
  bool (*const has_kind_)(std::string_view key);
};

}  // namespace detent

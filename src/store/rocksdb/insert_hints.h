// Where the next entry of a family's buffer goes in: near the last one of its kind.
//
// RocksDB's buffer is a skip list. Unless an entry follows right behind the last, its place is
// searched from the top: some ten thousand instructions. With a hint the search begins where the
// last entry of the same kind went in (a finger search: Pugh, "A Skip List Cookbook", 1990). Which
// keys are of one kind, RocksDB asks as for a prefix of the key.
//
// 7.8 keeps one table of hints for two lists, that of entries and that of removed ranges. A range
// whose first key is of a kind that entries are of, too, goes into its list by a hint for the
// other: an assertion of the skip list ends the process, or, compiled without, the lists are
// broken. So the first key of a removed range must be of no kind, which is checked where ranges are
// removed (Changes). This holds for each log, so logs are replayed with hints, too.
#pragma once

#include <rocksdb/slice_transform.h>

#include <cstddef>
#include <string_view>

namespace detent {

/// Belongs to the thread that opens the store and then writes: RocksDB calls it on no other.
class InsertHints final : public rocksdb::SliceTransform {
 public:
  /// Keys that begin with the same `kind_bytes` bytes are of one kind; those that are shorter, or
  /// of which `has_kind` says so, are of none.
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

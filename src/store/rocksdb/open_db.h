// An open RocksDB database in the shape of this store: its families, how it is tuned, how it is
// opened and closed. What the families hold is in docs/internals/storage-format.md.
#pragma once

#include <rocksdb/db.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.h"
#include "store/rocksdb/data_folder.h"
#include "store/rocksdb/rocksdb_store.h"

namespace detent {

/// The version of the whole layout: families, keys and values.
inline constexpr std::uint64_t kFormatVersion = 1;

/// Owns the database and its folder's lock. Confined to the store's thread; RocksDB's own threads
/// flush and compact behind it.
class OpenDb {
 public:
  /// Opens, or makes, the database and checks that this program can read it.
  static Result<std::unique_ptr<OpenDb>> open(const RocksDbStoreOptions& options);
  /// Flushes, so that the next start has no log to replay, and closes. What fails here is still in
  /// the log.
  ~OpenDb();
  OpenDb(const OpenDb&) = delete;
  OpenDb& operator=(const OpenDb&) = delete;

  rocksdb::DB& db() noexcept { return *db_; }
  rocksdb::ColumnFamilyHandle* due() noexcept { return families_[0]; }
  rocksdb::ColumnFamilyHandle* ids() noexcept { return families_[1]; }
  rocksdb::ColumnFamilyHandle* meta() noexcept { return families_[2]; }
  rocksdb::ColumnFamilyHandle* quarantine() noexcept { return families_[3]; }

  /// The bytes under a key of the meta family, if it was ever written. For opening: an error names
  /// the folder.
  Result<std::optional<std::string>> read_meta(std::string_view key);
  /// The same as a number; 0 when it was never written.
  Result<std::uint64_t> read_number(std::string_view key);

 private:
  explicit OpenDb(DataFolder folder) : folder_(std::move(folder)) {}
  Result<void> check_format();
  Result<bool> is_empty();

  DataFolder folder_;
  std::unique_ptr<rocksdb::DB> db_;
  std::vector<rocksdb::ColumnFamilyHandle*> families_;  // owned by db_; the last is RocksDB's own
};

}  // namespace detent

// An open RocksDB database in the shape of this store: its families, how it is tuned, how it is
// opened and closed. What the families hold is in docs/internals/storage-format.md.
#pragma once

#include <rocksdb/db.h>
#include <rocksdb/write_batch.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/mutex.h"
#include "base/result.h"
#include "store/rocksdb/data_folder.h"
#include "store/rocksdb/insert_hints.h"
#include "store/rocksdb/log_guard.h"
#include "store/rocksdb/rocksdb_store.h"
#include "store/store.h"

namespace detent {

/// The version of the whole layout: families, keys and values.
inline constexpr std::uint64_t kFormatVersion = 1;

/// A moment of a settle after which a crash leaves something else than before it.
enum class StoreStep : std::uint8_t {
  tasks_read,
  tables_written,
  tables_ingested,
  settle_staged,
  settle_done,
};

/// What tests put between the store and the world.
struct StoreSeams {
  /// Files and threads; null: the system's. Must outlive the store.
  rocksdb::Env* env = nullptr;
  /// Called at each step, the first three on the settle's thread.
  std::function<void(StoreStep, rocksdb::DB&)> at_step = {};
};

/// Owns the database and its folder's lock. Confined to the store's thread, but for db(), ingest(),
/// the families and the settle folder; RocksDB's own threads flush and compact behind it.
class OpenDb {
 public:
  /// Opens, or makes, the database and checks that this program can read it. Files that a settle
  /// left behind are removed.
  static Result<std::unique_ptr<OpenDb>> open(const RocksDbStoreOptions& options,
                                              StoreSeams seams = {});
  /// Flushes, so that the next start has no log to replay, and closes. What fails here is still in
  /// the log.
  ~OpenDb();
  OpenDb(const OpenDb&) = delete;
  OpenDb& operator=(const OpenDb&) = delete;

  rocksdb::DB& db() noexcept { return *db_; }
  /// A batch to fill, for the next write. If what was written before may not be on disk yet, it
  /// says so: the log of a machine that lost its power is judged by that (wal_check.h).
  rocksdb::WriteBatch new_batch() const;
  /// The only way into the database but for tables. A crash before it returns leaves all of the
  /// batch, of new_batch(), or nothing: it is one record of the log. An empty one that is to be
  /// synced syncs what was written before.
  rocksdb::Status write(rocksdb::WriteBatch& batch, Durability durability);
  /// Adds tables to their families, all or none. On any thread. Writes wait for it only when one of
  /// them, made meanwhile, lies between what is added: then for as long as a few small flushes
  /// take. Requires: allow_blocking_flush is false in `tables`.
  rocksdb::Status ingest(const std::vector<rocksdb::IngestExternalFileArg>& tables);
  /// Whether a removed range of a family may begin with this key (insert_hints.h).
  bool may_begin_range(const rocksdb::ColumnFamilyHandle* family, std::string_view key) const;
  rocksdb::ColumnFamilyHandle* accepted() noexcept { return families_[0]; }
  rocksdb::ColumnFamilyHandle* due() noexcept { return families_[1]; }
  rocksdb::ColumnFamilyHandle* lanes() noexcept { return families_[2]; }
  rocksdb::ColumnFamilyHandle* ids() noexcept { return families_[3]; }
  rocksdb::ColumnFamilyHandle* keys() noexcept { return families_[4]; }
  rocksdb::ColumnFamilyHandle* key_expiry() noexcept { return families_[5]; }
  rocksdb::ColumnFamilyHandle* meta() noexcept { return families_[6]; }
  rocksdb::ColumnFamilyHandle* quarantine() noexcept { return families_[7]; }
  /// Where settled records of a lane are.
  rocksdb::ColumnFamilyHandle* family_of(Lane lane) noexcept {
    return lane == Lane::due ? due() : lanes();
  }

  /// The bytes under a key of the meta family, if it was ever written. For opening: an error names
  /// the folder.
  Result<std::optional<std::string>> read_meta(std::string_view key);
  /// The same as a number; 0 when it was never written.
  Result<std::uint64_t> read_number(std::string_view key);

  /// Errors for the operator, while opening.
  Error damaged(const std::string& what) const;
  Error open_error(const rocksdb::Status& status) const;

  /// Where a settle writes its tables before they are ingested.
  std::string settle_folder() const { return folder_.path() + "/settle"; }
  /// Makes it if it is missing, and removes all that is in it.
  Result<void> clean_settle_folder();
  void reached(StoreStep step) {
    if (seams_.at_step) seams_.at_step(step, *db_);
  }

 private:
  OpenDb(DataFolder folder, StoreSeams seams, std::uint64_t buffer_bytes);
  Result<void> keep_mark(DataFolderMark& mark);
  Result<void> check_format();
  Result<bool> is_empty();
  bool check_held();
  void flush_full_buffers(std::size_t written);
  rocksdb::Status flush_and_ingest(const std::vector<rocksdb::IngestExternalFileArg>& tables);

  DataFolder folder_;
  StoreSeams seams_;
  std::uint64_t buffer_bytes_;        // of the accepted family
  std::uint64_t unlooked_bytes_ = 0;  // written since buffers were looked at
  std::unique_ptr<LogGuard> guard_;
  std::unique_ptr<rocksdb::DB> db_;
  bool is_synced_ = true;                               // all that was written
  std::vector<rocksdb::ColumnFamilyHandle*> families_;  // owned by db_; the last is RocksDB's own
  // In the order of the families; owned by this and by the options of db_.
  std::vector<std::shared_ptr<InsertHints>> hints_;
  Mutex writing_;  // held by who writes, or keeps others from it: across I/O, as RocksDB's own is
};

}  // namespace detent

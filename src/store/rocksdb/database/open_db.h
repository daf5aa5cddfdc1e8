// An open RocksDB database with the column families of this store: how it is tuned, opened, written
// and closed. docs/internals/storage-format.md describes the contents of the families.
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
#include "store/rocksdb/database/data_folder.h"
#include "store/rocksdb/database/insert_hints.h"
#include "store/rocksdb/database/rocksdb_options.h"
#include "store/rocksdb/database/wal_env.h"
#include "store/store.h"

namespace detent {

/// The version of the whole layout: families, keys and values.
inline constexpr std::uint64_t kFormatVersion = 1;

/// The steps of a settle. A crash after a step leaves the folder in a different state than a crash
/// before it.
enum class StoreStep : std::uint8_t {
  tasks_read,
  tables_written,
  tables_ingested,
  settle_staged,
  settle_done,
};

/// Hooks for tests.
struct StoreSeams {
  /// Replaces the operating system's files and threads. Null: the system's. Must outlive the store.
  rocksdb::Env* env = nullptr;
  /// Called after each step. The first three steps run on the settle's thread.
  std::function<void(StoreStep, rocksdb::DB&)> at_step = {};
};

/// Owns the database and the lock of its folder. Confined to the store's thread, except db(),
/// ingest(), make_checkpoint(), the families and the settle folder. RocksDB flushes and compacts on
/// threads of its own.
class OpenDb {
 public:
  /// Opens the database, or creates it, and checks that this program can read its format. Removes
  /// files that an interrupted settle left.
  static Result<std::unique_ptr<OpenDb>> open(const RocksDbStoreOptions& options,
                                              StoreSeams seams = {});
  /// Flushes and closes the database. After a flush the next start has no log to replay. If the
  /// flush fails, the log still has all writes.
  ~OpenDb();
  OpenDb(const OpenDb&) = delete;
  OpenDb& operator=(const OpenDb&) = delete;

  rocksdb::DB& db() noexcept { return *db_; }
  /// Returns an empty batch for the next write. If earlier writes may not be on disk yet, the batch
  /// carries the marker kAfterUnsynced. After a power loss, wal_check.h uses the marker to decide
  /// whether the log is damaged.
  rocksdb::WriteBatch new_batch() const;
  /// Writes a batch of new_batch(). Everything except tables of a settle is written through this
  /// function. The batch is one record of the log, so a crash leaves all of it or no part of it. A
  /// synced empty batch syncs all earlier writes.
  rocksdb::Status write(rocksdb::WriteBatch& batch, Durability durability);
  /// Adds tables to their families, all or none. Runs on any thread. Writes wait only if an
  /// unflushed write has a key inside the key range of a table. Then they wait for a few small
  /// flushes. Requires: allow_blocking_flush is false in `tables`.
  rocksdb::Status ingest(const std::vector<rocksdb::IngestExternalFileArg>& tables);
  /// Makes a checkpoint at `path`, whose name begins with kCheckpointPrefix. Runs on any thread.
  /// Flushes the write buffers while writes continue. Then holds writes back for the flush of what
  /// they wrote since, and for the hard links. So no log has a write that the checkpoint must have.
  rocksdb::Status make_checkpoint(const std::string& path);
  /// Returns true if a range to remove may begin with this key of the family. insert_hints.h
  /// explains the restriction.
  bool may_begin_range(const rocksdb::ColumnFamilyHandle* family, std::string_view key) const;
  rocksdb::ColumnFamilyHandle* accepted() noexcept { return families_[0]; }
  rocksdb::ColumnFamilyHandle* due() noexcept { return families_[1]; }
  rocksdb::ColumnFamilyHandle* lanes() noexcept { return families_[2]; }
  rocksdb::ColumnFamilyHandle* ids() noexcept { return families_[3]; }
  rocksdb::ColumnFamilyHandle* keys() noexcept { return families_[4]; }
  rocksdb::ColumnFamilyHandle* key_expiry() noexcept { return families_[5]; }
  rocksdb::ColumnFamilyHandle* meta() noexcept { return families_[6]; }
  rocksdb::ColumnFamilyHandle* quarantine() noexcept { return families_[7]; }
  /// Returns the family that has the settled records of a lane.
  rocksdb::ColumnFamilyHandle* family_of(Lane lane) noexcept {
    return lane == Lane::due ? due() : lanes();
  }

  /// Reads a value of the meta family, or nullopt if it was never written. For use while a store is
  /// opened: an error names the folder.
  Result<std::optional<std::string>> read_meta(std::string_view key);
  /// Reads a number of the meta family; 0 if it was never written.
  Result<std::uint64_t> read_number(std::string_view key);

  /// Errors while a store is opened. Their messages name the folder and are meant for the operator.
  Error damaged(const std::string& what) const;
  Error open_error(const rocksdb::Status& status) const;

  /// A settle writes its tables here before they are ingested.
  std::string settle_folder() const { return folder_.path() + "/settle"; }
  /// Removes all files in the settle folder. Creates the folder if it is missing.
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
  std::uint64_t buffer_bytes_;        // of a write buffer of the accepted family
  std::uint64_t unlooked_bytes_ = 0;  // written since flush_full_buffers() looked
  std::unique_ptr<WalEnv> guard_;
  std::unique_ptr<rocksdb::DB> db_;
  bool is_synced_ = true;                               // every write so far is on disk
  std::vector<rocksdb::ColumnFamilyHandle*> families_;  // owned by db_; the last is "default"
  // In the order of the families. The options of db_ share them.
  std::vector<std::shared_ptr<InsertHints>> hints_;
  // Held during a write, and by ingest() and make_checkpoint() to keep writes out. It is held
  // across I/O, like RocksDB's own write lock.
  Mutex writing_;
};

}  // namespace detent

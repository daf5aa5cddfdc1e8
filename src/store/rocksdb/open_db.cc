#include "store/rocksdb/open_db.h"

#include <rocksdb/cache.h>
#include <rocksdb/filter_policy.h>
#include <rocksdb/table.h>
#include <rocksdb/utilities/table_properties_collectors.h>

#include <algorithm>
#include <array>
#include <string>
#include <utility>

#include "store/rocksdb/key_format.h"
#include "store/rocksdb/rocksdb_error.h"
#include "store/rocksdb/wal_check.h"

namespace detent {

namespace {

constexpr std::uint64_t kMiB = std::uint64_t{1} << 20;
// In the order of OpenDb's accessors. RocksDB insists on a family "default", which stays empty.
constexpr std::array kFamilies{"due", "ids", "meta", "quarantine", "default"};

rocksdb::DBOptions database_options() {
  rocksdb::DBOptions options;
  options.create_if_missing = true;
  options.create_missing_column_families = true;
  options.paranoid_checks = true;
  // What may be replayed is decided by check_logs() before; a torn tail ends the replay there. A
  // synced log that has vanished as a whole is found by the manifest.
  options.wal_recovery_mode = rocksdb::WALRecoveryMode::kPointInTimeRecovery;
  options.track_and_verify_wals_in_manifest = true;
  // Replay runs at some 100 k tasks a second: the bound on the log bounds the start.
  options.max_total_wal_size = 64 * kMiB;
  // After a failed write the store is opened again; nothing resumes behind its back.
  options.max_bgerror_resume_count = 0;
  options.max_background_jobs = 2;
  options.max_open_files = 512;
  options.max_manifest_file_size = 16 * kMiB;
  options.skip_stats_update_on_db_open = true;
  options.bytes_per_sync = kMiB;
  // RocksDB's own log of what it does: for its developers, so short.
  options.info_log_level = rocksdb::InfoLogLevel::WARN_LEVEL;
  options.max_log_file_size = kMiB;
  options.keep_log_file_num = 2;
  options.stats_dump_period_sec = 0;
  options.stats_persist_period_sec = 0;
  return options;
}

rocksdb::ColumnFamilyOptions family_options(const std::shared_ptr<rocksdb::Cache>& cache,
                                            std::size_t write_buffer_bytes) {
  rocksdb::BlockBasedTableOptions table;
  table.block_cache = cache;
  // Index and filters count against the cache, so the cache's size bounds them too.
  table.cache_index_and_filter_blocks = true;
  table.pin_l0_filter_and_index_blocks_in_cache = true;
  table.filter_policy.reset(rocksdb::NewBloomFilterPolicy(10));
  table.format_version = 5;
  rocksdb::ColumnFamilyOptions options;
  options.table_factory.reset(rocksdb::NewBlockBasedTableFactory(table));
  options.compression = rocksdb::kLZ4Compression;
  options.level_compaction_dynamic_level_bytes = true;
  options.write_buffer_size = write_buffer_bytes;
  options.max_write_buffer_number = 2;
  // Tasks are removed where they are read, at the front of the order: what is left are tombstones
  // that every later read of the front walks over. Files full of them are compacted early.
  options.table_properties_collector_factories.push_back(
      rocksdb::NewCompactOnDeletionCollectorFactory(32'768, 16'384, 0.5));
  return options;
}

std::vector<rocksdb::ColumnFamilyDescriptor> families(const RocksDbStoreOptions& options) {
  const std::shared_ptr<rocksdb::Cache> cache = rocksdb::NewLRUCache(options.cache_bytes);
  const std::size_t small = std::min<std::size_t>(options.write_buffer_bytes, 2 * kMiB);
  const std::array sizes{options.write_buffer_bytes, options.write_buffer_bytes / 2, small, small,
                         small};
  std::vector<rocksdb::ColumnFamilyDescriptor> all;
  for (std::size_t i = 0; i < kFamilies.size(); ++i) {
    all.emplace_back(kFamilies[i], family_options(cache, sizes[i]));
  }
  return all;
}

Error damaged(const DataFolder& folder, const std::string& what) {
  return {ErrorCode::data_loss,
          folder.name() + " is damaged: " + what + "; restore it from a backup", ""};
}

Error open_error(const DataFolder& folder, const rocksdb::Status& status) {
  if (status.IsCorruption()) return damaged(folder, status.ToString());
  return to_error("open " + folder.name(), status);
}

/// A family this program does not know would be hidden from it and might be stale afterwards.
Result<void> check_families(const DataFolder& folder) {
  std::vector<std::string> found;
  const rocksdb::Status status =
      rocksdb::DB::ListColumnFamilies(database_options(), folder.path(), &found);
  if (!status.ok()) return open_error(folder, status);
  for (const std::string& name : found) {
    if (std::find(kFamilies.begin(), kFamilies.end(), name) != kFamilies.end()) continue;
    return Error{ErrorCode::invalid_argument,
                 folder.name() + " was not written by this version of Detent: it has a part '" +
                     name + "' that is not known here",
                 ""};
  }
  return ok();
}

}  // namespace

Result<std::unique_ptr<OpenDb>> OpenDb::open(const RocksDbStoreOptions& options) {
  ASSIGN_OR_RETURN(DataFolder folder, DataFolder::open(options.path));
  ASSIGN_OR_RETURN(const bool exists, folder.holds_database());
  if (exists) {
    TRY(check_families(folder));
    TRY(check_logs(folder));
  }
  std::unique_ptr<OpenDb> open(new OpenDb(std::move(folder)));
  rocksdb::DB* db = nullptr;
  const rocksdb::Status status = rocksdb::DB::Open(database_options(), open->folder_.path(),
                                                   families(options), &open->families_, &db);
  if (!status.ok()) return open_error(open->folder_, status);
  open->db_.reset(db);
  TRY(open->check_format());
  return open;
}

OpenDb::~OpenDb() {
  if (!db_) return;
  rocksdb::FlushOptions flush;
  flush.wait = true;
  static_cast<void>(db_->Flush(flush, families_));
  for (rocksdb::ColumnFamilyHandle* family : families_) {
    static_cast<void>(db_->DestroyColumnFamilyHandle(family));
  }
  static_cast<void>(db_->Close());
}

Result<std::optional<std::string>> OpenDb::read_meta(std::string_view key) {
  std::string value;
  const rocksdb::Status status =
      db_->Get(rocksdb::ReadOptions(), meta(), rocksdb::Slice(key.data(), key.size()), &value);
  if (status.IsNotFound()) return std::optional<std::string>();
  if (!status.ok()) return open_error(folder_, status);
  const Result<std::string_view> bytes = parse_meta_value(key, value);
  if (!bytes) return damaged(folder_, bytes.error().message);
  return std::optional<std::string>(*bytes);
}

Result<std::uint64_t> OpenDb::read_number(std::string_view key) {
  ASSIGN_OR_RETURN(const std::optional<std::string> bytes, read_meta(key));
  if (!bytes) return std::uint64_t{0};
  return parse_number_bytes(*bytes);
}

Result<bool> OpenDb::is_empty() {
  for (rocksdb::ColumnFamilyHandle* family : families_) {
    const std::unique_ptr<rocksdb::Iterator> it(db_->NewIterator(rocksdb::ReadOptions(), family));
    it->SeekToFirst();
    if (it->Valid()) return false;
    if (!it->status().ok()) return open_error(folder_, it->status());
  }
  return true;
}

Result<void> OpenDb::check_format() {
  ASSIGN_OR_RETURN(const std::uint64_t version, read_number(kFormatKey));
  if (version == kFormatVersion) return ok();
  if (version > kFormatVersion) {
    return Error{ErrorCode::invalid_argument,
                 folder_.name() + " was written by a newer version of Detent (format " +
                     std::to_string(version) + ", this program reads " +
                     std::to_string(kFormatVersion) + ")",
                 ""};
  }
  // No version: a new database, or one whose first start was interrupted just here.
  ASSIGN_OR_RETURN(const bool empty, is_empty());
  if (!empty) return damaged(folder_, "its format version is missing");
  rocksdb::WriteOptions synced;
  synced.sync = true;
  const rocksdb::Status status =
      db_->Put(synced, meta(), rocksdb::Slice(kFormatKey.data(), kFormatKey.size()),
               meta_value(kFormatKey, number_bytes(kFormatVersion)));
  if (!status.ok()) return open_error(folder_, status);
  return ok();
}

}  // namespace detent

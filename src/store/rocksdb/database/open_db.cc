#include "store/rocksdb/database/open_db.h"

#include <rocksdb/cache.h>
#include <rocksdb/filter_policy.h>
#include <rocksdb/table.h>
#include <rocksdb/utilities/checkpoint.h>
#include <rocksdb/utilities/table_properties_collectors.h>

#include <algorithm>
#include <array>
#include <cstdarg>
#include <filesystem>
#include <string>
#include <utility>

#include "detent/check.h"
#include "store/meta_format.h"
#include "store/rocksdb/database/meta_keys.h"
#include "store/rocksdb/database/range_scan.h"
#include "store/rocksdb/database/rocksdb_error.h"
#include "store/rocksdb/database/slices.h"
#include "store/rocksdb/database/table_check.h"
#include "store/rocksdb/database/wal_check.h"

namespace detent {

namespace {

constexpr std::uint64_t kMiB = std::uint64_t{1} << 20;
// RocksDB accepts write buffer sizes from kLeastBuffer to kNoLimit.
constexpr std::uint64_t kNoLimit = std::uint64_t{64} << 30;
constexpr std::uint64_t kLeastBuffer = std::uint64_t{64} << 10;
// The limits of all logs together: in bytes, and in write buffers of the accepted family. Replaying
// the logs at a start fills the buffers, so the logs also limit the memory of a start.
constexpr std::uint64_t kMostLog = 64 * kMiB;
constexpr std::uint64_t kMostLogInBuffers = 4;
// The first attempt does not hold writers back. A second attempt is usually enough.
constexpr int kIngestAttempts = 5;
// The sizes of the buffers are read each time when 1/32 of the largest buffer was written. That is
// half of the smallest buffer.
constexpr std::uint64_t kLooksABuffer = 32;

// These functions tell which keys of a family belong to a kind (InsertHints). The first key of a
// removed range must not belong to one. Ranges are removed from two families. In the accepted
// family they begin with a key that is longer than an id. In the meta family they begin with a
// change of the due counts.
bool is_any(std::string_view /*key*/) noexcept { return true; }
bool is_an_id(std::string_view key) noexcept { return key.size() == sizeof(std::uint64_t); }
bool is_no_count(std::string_view key) noexcept { return !key.starts_with(kCountsPrefix); }

/// The tuning of one column family.
struct Family {
  std::string_view name;
  std::size_t buffer_divisor;  // its write buffer is 1/divisor of the accepted family's buffer
  rocksdb::CompressionType compression;
  std::size_t kind_bytes;                  // see InsertHints
  bool (*has_kind)(std::string_view key);  // see InsertHints
};
// In the order of OpenDb's accessors. RocksDB requires a family "default", which stays empty.
//
// Records are compressed with ZSTD. LZ4 does not help for records with random payloads: it saves
// less than an eighth, and RocksDB then stores a block uncompressed. The index families have small
// values, and reading these is several times faster with LZ4.
constexpr std::array kFamilies{
    // Not compressed, because its records are written once, rarely read and soon removed. 256 ids
    // are of one kind, because old tasks end while new tasks are appended.
    Family{"accepted", 1, rocksdb::kNoCompression, 6, is_an_id},
    Family{"due", 4, rocksdb::kZSTD, 1, is_any},
    Family{"lanes", 4, rocksdb::kZSTD, 1, is_any},
    Family{"ids", 4, rocksdb::kLZ4Compression, 1, is_any},
    Family{"keys", 4, rocksdb::kLZ4Compression, 1, is_any},
    Family{"key_expiry", 8, rocksdb::kLZ4Compression, 1, is_any},
    Family{"meta", 16, rocksdb::kLZ4Compression, 2, is_no_count},
    Family{"quarantine", 16, rocksdb::kLZ4Compression, 1, is_any},
    Family{"default", 16, rocksdb::kLZ4Compression, 1, is_any}};
// This level takes two thirds of the time of level 1 (docs/internals/performance.md).
constexpr int kZstdLevel = -1;

/// Discards RocksDB's own log file of messages, which is for its developers. RocksDB 7.8 also stops
/// the process if it cannot write a line of that file because the disk is full.
class NoLog final : public rocksdb::Logger {
 public:
  using rocksdb::Logger::Logv;
  void Logv(const char* /*format*/, va_list /*arguments*/) override {}
};

std::uint64_t buffer_bytes(const Family& family, std::uint64_t of_accepted) {
  return std::max(kLeastBuffer, of_accepted / family.buffer_divisor);
}

rocksdb::DBOptions database_options(rocksdb::Env* env) {
  rocksdb::DBOptions options;
  if (env != nullptr) options.env = env;
  options.create_if_missing = true;
  options.create_missing_column_families = true;
  options.paranoid_checks = true;
  // mend_logs() has already decided what may be replayed, and has cut off an incomplete end.
  // RocksDB finds a synced log that is missing as a whole, because the manifest lists it.
  options.wal_recovery_mode = rocksdb::WALRecoveryMode::kPointInTimeRecovery;
  options.track_and_verify_wals_in_manifest = true;
  // The manifest has a checksum, so the store's identity is checked when it is read. If the folder
  // has lost the IDENTITY file, RocksDB would otherwise create a new identity.
  options.write_dbid_to_manifest = true;
  // After a failed write the store must be opened again, so RocksDB must not resume by itself.
  options.max_bgerror_resume_count = 0;
  options.max_background_jobs = 2;
  options.max_manifest_file_size = 16 * kMiB;
  options.skip_stats_update_on_db_open = true;
  // Tables are synced in small parts while they are written. Many megabytes at once would delay the
  // syncs of the log.
  options.bytes_per_sync = kMiB;
  options.strict_bytes_per_sync = true;
  options.info_log = std::make_shared<NoLog>();
  options.stats_dump_period_sec = 0;
  options.stats_persist_period_sec = 0;
  return options;
}

rocksdb::ColumnFamilyOptions family_options(const std::shared_ptr<rocksdb::Cache>& cache,
                                            const Family& family, std::uint64_t buffer) {
  rocksdb::BlockBasedTableOptions table;
  table.block_cache = cache;
  // Indexes and filters are in the cache too, so the size of the cache limits their memory.
  table.cache_index_and_filter_blocks = true;
  table.pin_l0_filter_and_index_blocks_in_cache = true;
  table.filter_policy.reset(rocksdb::NewBloomFilterPolicy(10));
  table.format_version = 5;
  rocksdb::ColumnFamilyOptions options;
  options.table_factory.reset(rocksdb::NewBlockBasedTableFactory(table));
  options.compression = family.compression;
  if (family.compression == rocksdb::kZSTD) options.compression_opts.level = kZstdLevel;
  options.level_compaction_dynamic_level_bytes = true;
  // RocksDB must not flush by itself. flush_full_buffers() flushes and explains why.
  options.write_buffer_size = kNoLimit;
  options.arena_block_size = std::min(kMiB, buffer / 8);
  options.max_write_buffer_number = 2;
  // Each settle adds one table with all of its tasks. Writers are held back only if compaction is
  // very far behind, because reading some more tables costs less than stalling writers.
  options.level0_slowdown_writes_trigger = 40;
  options.level0_stop_writes_trigger = 80;
  // Nearly every key that is read exists, so a filter of the last level would not help.
  options.optimize_filters_for_hits = true;
  // Tasks are removed at the front of the order, where they are read. Their tombstones slow down
  // every later read of the front, so files with many tombstones are compacted early.
  options.table_properties_collector_factories.push_back(
      rocksdb::NewCompactOnDeletionCollectorFactory(32'768, 16'384, 0.5));
  return options;
}

/// Returns the families with their options. Appends the InsertHints of each family to `hints`.
std::vector<rocksdb::ColumnFamilyDescriptor> families(
    const RocksDbStoreOptions& options, std::vector<std::shared_ptr<InsertHints>>& hints) {
  const std::shared_ptr<rocksdb::Cache> cache = rocksdb::NewLRUCache(options.cache_bytes);
  std::vector<rocksdb::ColumnFamilyDescriptor> all;
  for (const Family& family : kFamilies) {
    hints.push_back(std::make_shared<InsertHints>(family.kind_bytes, family.has_kind));
    all.emplace_back(
        std::string(family.name),
        family_options(cache, family, buffer_bytes(family, options.write_buffer_bytes)));
    all.back().options.memtable_insert_with_hint_prefix_extractor = hints.back();
  }
  return all;
}

Error error_of(const DataFolder& folder, const rocksdb::Status& status) {
  if (status.IsCorruption()) return folder.damaged(status.ToString());
  return to_error("open " + folder.name(), status);
}

/// Returns the name of the table that RocksDB did not find, or "" if the cause is a different one.
/// RocksDB gives the file's old ending .ldb in its message.
std::string missing_table(const std::string& cause) {
  const std::size_t end = cause.find(".ldb: No such file");
  if (end == std::string::npos) return "";
  const std::size_t begin = cause.rfind('/', end) + 1;
  return cause.substr(begin, end - begin) + ".sst";
}

/// Returns the error of a failed DB::Open. The manifest was checked before. If RocksDB still
/// reports a damaged manifest, the cause is a table that the manifest lists, so the error names
/// this table.
Error not_opened(const DataFolder& folder, const rocksdb::Status& status) {
  const std::string cause = status.ToString();
  if (!status.IsCorruption() || cause.find("MANIFEST-") == std::string::npos) {
    return error_of(folder, status);
  }
  if (const std::string table = missing_table(cause); !table.empty()) {
    return folder.damaged("its table " + table + " is missing");
  }
  const std::string unreadable = unreadable_table(folder.path());
  return unreadable.empty() ? error_of(folder, status) : folder.damaged(unreadable);
}

Error gone(const std::string& path) {
  return {
      ErrorCode::unavailable,
      "data folder '" + path +
          "' has no data: it was moved, removed or unmounted; put it back, or restart the server "
          "to begin with an empty folder",
      ""};
}

/// Refuses a database with an unknown column family. This program would not update that family, so
/// its data could become stale.
Result<void> check_families(const DataFolder& folder, rocksdb::Env* env) {
  std::vector<std::string> found;
  const rocksdb::Status status =
      rocksdb::DB::ListColumnFamilies(database_options(env), folder.path(), &found);
  if (!status.ok()) return error_of(folder, status);
  for (const std::string& name : found) {
    const auto is_it = [&name](const Family& family) { return family.name == name; };
    if (std::any_of(kFamilies.begin(), kFamilies.end(), is_it)) continue;
    return Error{ErrorCode::invalid_argument,
                 folder.name() + " has the unknown column family '" + name +
                     "': start the version of Detent that wrote it",
                 ""};
  }
  return ok();
}

}  // namespace

Result<std::unique_ptr<OpenDb>> OpenDb::open(const RocksDbStoreOptions& options, StoreSeams seams) {
  const bool may_make = options.folder == DataFolderIs::made_if_missing;
  if (!may_make) {
    // Checked before the folder is locked, because locking creates a file.
    ASSIGN_OR_RETURN(const bool is_there, DataFolder::holds_database(options.path));
    if (!is_there) return gone(options.path);
  }
  ASSIGN_OR_RETURN(DataFolder folder, DataFolder::open(options.path, options.mark.get()));
  ASSIGN_OR_RETURN(const bool exists, folder.holds_database());
  if (exists) {
    TRY(folder.manifest_file());
    TRY(check_families(folder, seams.env));
    TRY(mend_logs(folder, options.on_cut_tail));
  }
  std::unique_ptr<OpenDb> open(
      new OpenDb(std::move(folder), std::move(seams), options.write_buffer_bytes));
  rocksdb::DB* db = nullptr;
  rocksdb::DBOptions database = database_options(open->guard_.get());
  database.max_open_files = static_cast<int>(options.open_files);
  // Each part of RocksDB's table cache keeps at least one table open. With few files the cache must
  // have few parts.
  database.table_cache_numshardbits = 2;
  // Replay handles about 100,000 tasks per second, so the limit of the logs also limits the time of
  // a start.
  database.max_total_wal_size =
      std::min(kMostLog, kMostLogInBuffers * std::uint64_t{options.write_buffer_bytes});
  const rocksdb::Status status = rocksdb::DB::Open(
      database, open->folder_.path(), families(options, open->hints_), &open->families_, &db);
  if (!status.ok()) return not_opened(open->folder_, status);
  open->db_.reset(db);
  DETENT_CHECK(open->families_.size() == kFamilies.size());
  DETENT_CHECK(open->hints_.size() == kFamilies.size());
  if (options.mark) TRY(open->keep_mark(*options.mark));
  TRY(open->check_format());
  TRY(open->clean_settle_folder());
  return open;
}

/// Compares the identity too, because a new folder can get the inode number of a removed folder.
Result<void> OpenDb::keep_mark(DataFolderMark& mark) {
  ASSIGN_OR_RETURN(DataFolderMark here, folder_.mark());
  if (const rocksdb::Status status = db_->GetDbIdentity(here.identity); !status.ok()) {
    return error_of(folder_, status);
  }
  if (!mark.identity.empty() && mark.identity != here.identity) return folder_.replaced();
  mark = std::move(here);
  return ok();
}

OpenDb::OpenDb(DataFolder folder, StoreSeams seams, std::uint64_t buffer_bytes)
    : folder_(std::move(folder)),
      seams_(std::move(seams)),
      buffer_bytes_(buffer_bytes),
      guard_(
          std::make_unique<WalEnv>(seams_.env != nullptr ? *seams_.env : *rocksdb::Env::Default(),
                                   folder_.path() + "/" + kCheckpointPrefix)) {}

OpenDb::~OpenDb() {
  if (!db_) return;
  // The empty synced write fails if an earlier write failed. Then there is nothing to flush.
  rocksdb::WriteOptions synced;
  synced.sync = true;
  rocksdb::WriteBatch nothing = new_batch();
  rocksdb::FlushOptions flush;
  flush.wait = true;
  // Another process may have the folder. A flush would then create and remove files in it.
  if (check_held() && db_->Write(synced, &nothing).ok() && guard_->status().ok()) {
    static_cast<void>(db_->Flush(flush, families_));
  }
  for (rocksdb::ColumnFamilyHandle* family : families_) {
    static_cast<void>(db_->DestroyColumnFamilyHandle(family));
  }
  static_cast<void>(db_->Close());
}

/// Checks that this process still has the folder. If it does not, the guard stops all later writes
/// of RocksDB.
bool OpenDb::check_held() {
  const Result<void> held = folder_.hold();
  if (!held) guard_->fail(held.error().message);
  return held.has_value();
}

rocksdb::WriteBatch OpenDb::new_batch() const {
  rocksdb::WriteBatch batch;
  if (!is_synced_) must(batch.PutLogData(slice(kAfterUnsynced)));
  return batch;
}

rocksdb::Status OpenDb::write(rocksdb::WriteBatch& batch, Durability durability) {
  DETENT_CHECK(db_ != nullptr);
  rocksdb::WriteOptions options;
  options.sync = durability == Durability::synced;
  // The check takes almost no time compared with a sync.
  if (options.sync && !check_held()) return guard_->status();
  rocksdb::Status status;
  if (batch.Count() > 0) {
    const MutexLock lock(writing_);
    status = db_->Write(options, &batch);
    is_synced_ = options.sync;
  } else if (options.sync) {
    status = db_->SyncWAL();
    is_synced_ = true;
  }
  if (status.ok()) status = guard_->status();
  if (status.ok()) flush_full_buffers(batch.GetDataSize());
  return status;
}

/// RocksDB refuses tables whose key range overlaps with entries in a write buffer. This function
/// flushes the buffers first. If a write adds such an entry before the tables are ingested, it
/// tries again with writers held back.
///
/// RocksDB can flush by itself while it ingests. But it continues when the flush is done and may
/// not yet see the result. RocksDB 7.8 with assertions, as Debian builds it, then stops the process
/// (facebook/rocksdb #13045). So allow_blocking_flush is always false.
rocksdb::Status OpenDb::ingest(const std::vector<rocksdb::IngestExternalFileArg>& tables) {
  DETENT_CHECK(!tables.empty());
  rocksdb::Status status = flush_and_ingest(tables);
  for (int i = 1; i < kIngestAttempts && status.IsInvalidArgument(); ++i) {
    const MutexLock lock(writing_);
    status = flush_and_ingest(tables);
  }
  return status;
}

rocksdb::Status OpenDb::flush_and_ingest(
    const std::vector<rocksdb::IngestExternalFileArg>& tables) {
  rocksdb::FlushOptions flush;
  flush.allow_write_stall = true;
  for (const rocksdb::IngestExternalFileArg& table : tables) {
    DETENT_CHECK(!table.options.allow_blocking_flush);
    rocksdb::Status status = db_->Flush(flush, table.column_family);
    if (!status.ok()) return status;
  }
  return db_->IngestExternalFiles(tables);
}

rocksdb::Status OpenDb::make_checkpoint(const std::string& path) {
  rocksdb::Checkpoint* made = nullptr;
  rocksdb::Status status = rocksdb::Checkpoint::Create(db_.get(), &made);
  const std::unique_ptr<rocksdb::Checkpoint> checkpoint(made);
  rocksdb::FlushOptions flush;
  flush.allow_write_stall = true;
  for (rocksdb::ColumnFamilyHandle* family : families_) {
    if (status.ok()) status = db_->Flush(flush, family);
  }
  if (!status.ok()) return status;
  constexpr std::uint64_t kAlwaysFlush = 0;
  const MutexLock lock(writing_);
  status = guard_->status();
  return status.ok() ? checkpoint->CreateCheckpoint(path, kAlwaysFlush) : status;
}

bool OpenDb::may_begin_range(const rocksdb::ColumnFamilyHandle* family,
                             std::string_view key) const {
  const auto found = std::find(families_.begin(), families_.end(), family);
  DETENT_CHECK(found != families_.end());
  return !hints_[static_cast<std::size_t>(found - families_.begin())]->InDomain(slice(key));
}

/// Flushes write buffers that have reached their size. RocksDB can do this by itself, but version
/// 7.8 has a bug. If one write fills the buffers of two families, and RocksDB then cannot create a
/// log or write the manifest, it does not release the second family. Closing the database then
/// stops the process. Flushing on request does not have this bug.
void OpenDb::flush_full_buffers(std::size_t written) {
  unlooked_bytes_ += written;
  if (unlooked_bytes_ < buffer_bytes_ / kLooksABuffer) return;
  unlooked_bytes_ = 0;
  rocksdb::FlushOptions flush;
  flush.wait = false;
  flush.allow_write_stall = true;
  for (std::size_t i = 0; i < families_.size(); ++i) {
    std::uint64_t size = 0;
    db_->GetIntProperty(families_[i], rocksdb::DB::Properties::kCurSizeActiveMemTable, &size);
    if (size < buffer_bytes(kFamilies.at(i), buffer_bytes_)) continue;
    // The write itself succeeded, so an error here is ignored. A permanent error also fails the
    // next write. If the flush only has to wait, it is tried again later.
    static_cast<void>(db_->Flush(flush, families_[i]));
  }
}

Result<std::optional<std::string>> OpenDb::read_meta(std::string_view key) {
  std::string value;
  const rocksdb::Status status =
      db_->Get(rocksdb::ReadOptions(), meta(), rocksdb::Slice(key.data(), key.size()), &value);
  if (status.IsNotFound()) return std::optional<std::string>();
  if (!status.ok()) return open_error(status);
  const Result<std::string_view> bytes = parse_meta_value(key, value);
  if (!bytes) return damaged(bytes.error().message);
  return std::optional<std::string>(*bytes);
}

Result<std::uint64_t> OpenDb::read_number(std::string_view key) {
  ASSIGN_OR_RETURN(const std::optional<std::string> bytes, read_meta(key));
  if (!bytes) return std::uint64_t{0};
  const Result<std::uint64_t> number = parse_number_bytes(*bytes);
  if (!number) return damaged(number.error().message);
  return *number;
}

Error OpenDb::damaged(const std::string& what) const { return folder_.damaged(what); }

Error OpenDb::open_error(const rocksdb::Status& status) const { return error_of(folder_, status); }

Result<void> OpenDb::clean_settle_folder() {
  const std::string folder = settle_folder();
  rocksdb::Env& env = *db_->GetEnv();
  rocksdb::Status status = env.CreateDirIfMissing(folder);
  std::vector<std::string> names;
  if (status.ok()) status = env.GetChildren(folder, &names);
  for (const std::string& name : names) {
    if (name == "." || name == ".." || !status.ok()) continue;
    status = env.DeleteFile(std::filesystem::path(folder) / name);
  }
  if (status.ok()) return ok();
  return to_error("clean folder '" + folder + "'", status);
}

Result<bool> OpenDb::is_empty() {
  for (rocksdb::ColumnFamilyHandle* family : families_) {
    const RangeScan scan(*db_, family);
    if (scan.is_valid()) return false;
    if (!scan.status().ok()) return open_error(scan.status());
  }
  return true;
}

Result<void> OpenDb::check_format() {
  ASSIGN_OR_RETURN(const std::uint64_t version, read_number(kFormatKey));
  if (version == kFormatVersion) return ok();
  if (version > kFormatVersion) {
    return Error{ErrorCode::invalid_argument,
                 folder_.name() + " has format version " + std::to_string(version) +
                     ", this program supports version " + std::to_string(kFormatVersion) +
                     ": start the newer version of Detent that wrote it, or restore a backup from "
                     "before the upgrade",
                 ""};
  }
  // A new database, or the first start was interrupted before this function wrote the version.
  ASSIGN_OR_RETURN(const bool empty, is_empty());
  if (!empty) return damaged("its format version is missing");
  rocksdb::WriteBatch batch = new_batch();
  must(batch.Put(meta(), slice(kFormatKey), meta_value(kFormatKey, number_bytes(kFormatVersion))));
  const rocksdb::Status status = write(batch, Durability::synced);
  if (!status.ok()) return open_error(status);
  return ok();
}

}  // namespace detent

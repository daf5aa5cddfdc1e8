#include "store/rocksdb/open_db.h"

#include <rocksdb/cache.h>
#include <rocksdb/filter_policy.h>
#include <rocksdb/table.h>
#include <rocksdb/utilities/table_properties_collectors.h>

#include <algorithm>
#include <array>
#include <cstdarg>
#include <filesystem>
#include <string>
#include <utility>

#include "detent/check.h"
#include "store/meta_format.h"
#include "store/rocksdb/meta_keys.h"
#include "store/rocksdb/range_scan.h"
#include "store/rocksdb/rocksdb_error.h"
#include "store/rocksdb/slices.h"
#include "store/rocksdb/table_check.h"
#include "store/rocksdb/wal_check.h"

namespace detent {

namespace {

constexpr std::uint64_t kMiB = std::uint64_t{1} << 20;
// The most and the least that RocksDB takes for the size of a write buffer.
constexpr std::uint64_t kNoLimit = std::uint64_t{64} << 30;
constexpr std::uint64_t kLeastBuffer = std::uint64_t{64} << 10;
// Of all logs together, and in buffers: replay fills the buffers with what is in the logs.
constexpr std::uint64_t kMostLog = 64 * kMiB;
constexpr std::uint64_t kMostLogInBuffers = 4;
// The first without holding writers back; of the others one is enough, as a rule.
constexpr int kIngestAttempts = 5;
// Buffers are looked at when this part of the largest was written: half of the smallest.
constexpr std::uint64_t kLooksABuffer = 32;

// Which keys of a family are of a kind (InsertHints). Ranges are removed of accepted tasks, where
// they begin with a longer key, and of changes of the due counts.
bool is_any(std::string_view /*key*/) noexcept { return true; }
bool is_an_id(std::string_view key) noexcept { return key.size() == sizeof(std::uint64_t); }
bool is_no_count(std::string_view key) noexcept { return !key.starts_with(kCountsPrefix); }

/// How a family is tuned.
struct Family {
  std::string_view name;
  std::size_t buffer_divisor;  // its write buffer, of the one of the accepted family
  rocksdb::CompressionType compression;
  std::size_t kind_bytes;
  bool (*has_kind)(std::string_view key);
};
// In the order of OpenDb's accessors. RocksDB insists on a family "default", which stays empty.
// Records are compressed with ZSTD: LZ4 does nothing for those whose payloads are random, because
// it takes less than an eighth off, and RocksDB then leaves a block as it was. What is looked up to
// find them is small, and reads back several times faster from LZ4.
constexpr std::array kFamilies{
    // Written once, read rarely and soon removed: not worth compressing. 256 ids are of a kind:
    // while some are appended others end.
    Family{"accepted", 1, rocksdb::kNoCompression, 6, is_an_id},
    Family{"due", 4, rocksdb::kZSTD, 1, is_any},
    Family{"lanes", 4, rocksdb::kZSTD, 1, is_any},
    Family{"ids", 4, rocksdb::kLZ4Compression, 1, is_any},
    Family{"keys", 4, rocksdb::kLZ4Compression, 1, is_any},
    Family{"key_expiry", 8, rocksdb::kLZ4Compression, 1, is_any},
    Family{"meta", 16, rocksdb::kLZ4Compression, 2, is_no_count},
    Family{"quarantine", 16, rocksdb::kLZ4Compression, 1, is_any},
    Family{"default", 16, rocksdb::kLZ4Compression, 1, is_any}};
// At two thirds of level 1's time (docs/internals/performance.md).
constexpr int kZstdLevel = -1;

/// RocksDB's own diary is for its developers, and 7.8 stops the process when a line of it cannot be
/// written because the disk is full.
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
  // What may be replayed is decided by mend_logs() before; a torn tail is cut off there. A
  // synced log that has vanished as a whole is found by the manifest.
  options.wal_recovery_mode = rocksdb::WALRecoveryMode::kPointInTimeRecovery;
  options.track_and_verify_wals_in_manifest = true;
  // Where the store's identity is checked as it is read; RocksDB makes another for a folder that
  // has lost the file.
  options.write_dbid_to_manifest = true;
  // After a failed write the store is opened again; nothing resumes behind its back.
  options.max_bgerror_resume_count = 0;
  options.max_background_jobs = 2;
  options.max_manifest_file_size = 16 * kMiB;
  options.skip_stats_update_on_db_open = true;
  // Tables reach the disk as they are written: many megabytes at once would hold up the syncs of
  // the log.
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
  // Index and filters count against the cache, so the cache's size bounds them too.
  table.cache_index_and_filter_blocks = true;
  table.pin_l0_filter_and_index_blocks_in_cache = true;
  table.filter_policy.reset(rocksdb::NewBloomFilterPolicy(10));
  table.format_version = 5;
  rocksdb::ColumnFamilyOptions options;
  options.table_factory.reset(rocksdb::NewBlockBasedTableFactory(table));
  options.compression = family.compression;
  if (family.compression == rocksdb::kZSTD) options.compression_opts.level = kZstdLevel;
  options.level_compaction_dynamic_level_bytes = true;
  // flush_full_buffers() has them flushed, not RocksDB: see there.
  options.write_buffer_size = kNoLimit;
  options.arena_block_size = std::min(kMiB, buffer / 8);
  options.max_write_buffer_number = 2;
  // A settle adds a table for all of its tasks at once. Writers are held back only when compaction
  // is very far behind: reading some tables more costs less than stalling.
  options.level0_slowdown_writes_trigger = 40;
  options.level0_stop_writes_trigger = 80;
  // What is asked for by key is there, nearly always: a filter of the last level would be for
  // nothing.
  options.optimize_filters_for_hits = true;
  // Tasks are removed where they are read, at the front of the order: what is left are tombstones
  // that every later read of the front walks over. Files full of them are compacted early.
  options.table_properties_collector_factories.push_back(
      rocksdb::NewCompactOnDeletionCollectorFactory(32'768, 16'384, 0.5));
  return options;
}

/// Adds what gives hints to each to `hints`.
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

/// The table that RocksDB did not find, which it then calls by a name that it had long ago.
std::string missing_table(const std::string& cause) {
  const std::size_t end = cause.find(".ldb: No such file");
  if (end == std::string::npos) return "";
  const std::size_t begin = cause.rfind('/', end) + 1;
  return cause.substr(begin, end - begin) + ".sst";
}

/// Why a database did not open whose manifest was read before. Where RocksDB says all the same that
/// this is damaged, it means a table that the manifest names.
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
  return {ErrorCode::unavailable,
          "data folder '" + path +
              "' holds no data any more: it was moved, removed or unmounted; put it back, or start "
              "again to begin with an empty one",
          ""};
}

/// A family this program does not know would be hidden from it and might be stale afterwards.
Result<void> check_families(const DataFolder& folder, rocksdb::Env* env) {
  std::vector<std::string> found;
  const rocksdb::Status status =
      rocksdb::DB::ListColumnFamilies(database_options(env), folder.path(), &found);
  if (!status.ok()) return error_of(folder, status);
  for (const std::string& name : found) {
    const auto is_it = [&name](const Family& family) { return family.name == name; };
    if (std::any_of(kFamilies.begin(), kFamilies.end(), is_it)) continue;
    return Error{ErrorCode::invalid_argument,
                 folder.name() + " was not written by this version of Detent: it has a part '" +
                     name + "' that is not known here",
                 ""};
  }
  return ok();
}

}  // namespace

Result<std::unique_ptr<OpenDb>> OpenDb::open(const RocksDbStoreOptions& options, StoreSeams seams) {
  const bool may_make = options.folder == DataFolderIs::made_if_missing;
  if (!may_make) {
    // Before it is locked, which leaves a file in it.
    ASSIGN_OR_RETURN(const bool is_there, RocksDbStore::is_in(options.path));
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
  // Each part of the cache of open tables keeps at least one, so few files need few parts.
  database.table_cache_numshardbits = 2;
  // Replay runs at some 100 k tasks a second: the bound on the log bounds the start.
  database.max_total_wal_size =
      std::min(kMostLog, kMostLogInBuffers * std::uint64_t{options.write_buffer_bytes});
  const rocksdb::Status status = rocksdb::DB::Open(
      database, open->folder_.path(), families(options, open->hints_), &open->families_, &db);
  if (!status.ok()) return not_opened(open->folder_, status);
  open->db_.reset(db);
  if (options.mark) TRY(open->keep_mark(*options.mark));
  TRY(open->check_format());
  TRY(open->clean_settle_folder());
  return open;
}

/// An inode's number can be given to another folder once the first one is removed.
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
      guard_(std::make_unique<LogGuard>(seams_.env != nullptr ? *seams_.env
                                                              : *rocksdb::Env::Default())) {}

OpenDb::~OpenDb() {
  if (!db_) return;
  // After a write has failed there is nothing to flush.
  rocksdb::WriteOptions synced;
  synced.sync = true;
  rocksdb::WriteBatch nothing = new_batch();
  rocksdb::FlushOptions flush;
  flush.wait = true;
  // Nor when the folder is another's: RocksDB would make files there, and remove others.
  if (check_held() && db_->Write(synced, &nothing).ok() && guard_->status().ok()) {
    static_cast<void>(db_->Flush(flush, families_));
  }
  for (rocksdb::ColumnFamilyHandle* family : families_) {
    static_cast<void>(db_->DestroyColumnFamilyHandle(family));
  }
  static_cast<void>(db_->Close());
}

/// A folder that is not held is written no more, whatever RocksDB does.
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
  rocksdb::WriteOptions options;
  options.sync = durability == Durability::synced;
  // To sync takes so long that to look costs nothing.
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

/// Where a buffer overlaps with a table, RocksDB flushes it first, with writers held back. But it
/// goes on when the flush is done and may not have shown itself yet: then 7.8 with its assertions
/// on, as Debian builds it, stops the process (facebook/rocksdb #13045). So it is told never to; it
/// refuses instead, and what overlaps is flushed here, with writers held back if they were faster.
rocksdb::Status OpenDb::ingest(const std::vector<rocksdb::IngestExternalFileArg>& tables) {
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

bool OpenDb::may_begin_range(const rocksdb::ColumnFamilyHandle* family,
                             std::string_view key) const {
  const auto found = std::find(families_.begin(), families_.end(), family);
  DETENT_CHECK(found != families_.end());
  return !hints_[static_cast<std::size_t>(found - families_.begin())]->InDomain(slice(key));
}

/// RocksDB flushes full buffers by itself, but when one write fills those of two families and the
/// next cannot make a log or write the manifest, 7.8 forgets to let go of the second: closing then
/// stops the process. Flushing on demand does not have that fault.
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
    // The write was well. What fails here fails the next one; what only has to wait is tried again.
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
  return parse_number_bytes(*bytes);
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
  // A new database, or one whose first start was interrupted just here.
  ASSIGN_OR_RETURN(const bool empty, is_empty());
  if (!empty) return damaged("its format version is missing");
  rocksdb::WriteBatch batch = new_batch();
  must(batch.Put(meta(), slice(kFormatKey), meta_value(kFormatKey, number_bytes(kFormatVersion))));
  const rocksdb::Status status = write(batch, Durability::synced);
  if (!status.ok()) return open_error(status);
  return ok();
}

}  // namespace detent

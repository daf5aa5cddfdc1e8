#include "server/program/open_engine.h"

#include <algorithm>
#include <optional>
#include <string>
#include <utility>

#include "base/log/log.h"
#include "base/log/log_pace.h"
#include "base/rng.h"
#include "base/wall_time.h"
#include "cluster/shard_map.h"
#include "server/operate/descriptor_plan.h"
#include "server/operate/memory_plan.h"
#include "store/postgres/postgres_lease_table.h"
#include "store/postgres/postgres_store.h"
#include "store/rocksdb/backup_folder.h"
#include "store/rocksdb/database/data_folder.h"
#include "store/rocksdb/database/table_check.h"
#include "store/rocksdb/rocksdb_store.h"

namespace detent::server {

namespace {

/// A lease of PostgresStoreOptions, and time for a database to start.
constexpr std::chrono::seconds kStartPatience{15};
constexpr std::chrono::milliseconds kStartPause{500};

/// A wrong --data starts an empty store, and all tasks seem to be lost. This is only a warning,
/// because the folder may also contain a token file or a certificate.
void warn_of_files_of_others(const std::string& folder) {
  const std::vector<std::string> names = RocksDbStore::files_of_others(folder);
  if (names.empty()) return;
  constexpr std::size_t kMostShown = 5;
  std::string shown;
  for (std::size_t i = 0; i < std::min(names.size(), kMostShown); ++i) {
    shown += (i == 0 ? "" : ", ") + names[i];
  }
  if (names.size() > kMostShown) shown += ", …";
  log_warning("creating a new store in a folder that has other files; is it the right folder?",
              {{"folder", folder}, {"files", shown}});
}

void warn_of_cut_tail(const CutTail& tail) {
  log_warning(
      "a log of the store ended in an incomplete write, as after a power failure, and the rest was "
      "discarded; only writes that were not synced can be in it",
      {{"file", tail.file},
       {"ended_at", tail.ended_at},
       {"discarded_bytes", tail.discarded_bytes},
       {"action",
        "none after a crash; if the disk failed or somebody changed the file, a task can "
        "be missing"}});
}

Result<std::unique_ptr<Store>> open_store(const cli::ServeOptions& options,
                                          const MemoryPlan& memory, const EngineUses& uses,
                                          std::uint64_t owner, DataFolderIs folder,
                                          const std::shared_ptr<DataFolderMark>& mark) {
  if (!options.store.empty()) {
    return PostgresStore::open({.url = options.store, .owner = owner}, uses.clock);
  }
  if (folder == DataFolderIs::made_if_missing) warn_of_files_of_others(options.data.string());
  return RocksDbStore::open({.path = options.data.string(),
                             .folder = folder,
                             .mark = mark,
                             .checkpoints = uses.checkpoints,
                             .cache_bytes = memory.cache_bytes,
                             .write_buffer_bytes = memory.write_buffer_bytes,
                             .settle_tasks = memory.settle_tasks,
                             .settle_bytes = memory.settle_bytes,
                             .open_files = descriptors_of(options).store_files,
                             .on_cut_tail = warn_of_cut_tail});
}

/// Of a shard, however many there are.
constexpr std::size_t kFewestLoaded = 10'000;

/// Returns the result of `open`. Repeats the call for a limited time while the database is not up.
template <class T>
Result<T> with_patience(Clock& clock, const std::function<Result<T>()>& open) {
  const MonotonicTime until = clock.now() + kStartPatience;
  LogPace pace;
  for (Doorbell nobody_rings;;) {
    Result<T> opened = open();
    const bool is_late = clock.now() >= until;
    if (opened || opened.error().code != ErrorCode::unavailable || is_late) return opened;
    const std::string& cause = opened.error().message;
    if (pace.is_worth_a_line(cause, clock.now())) {
      log_warning("waiting for the store",
                  {{"cause", cause}, {"action", "start the database, or correct --store"}});
    }
    clock.wait(nobody_rings, clock.now() + kStartPause);
  }
}

}  // namespace

std::uint64_t random_owner() { return random_seed() | 1; }

Result<ClusterTable> open_cluster_table(const cli::ServeOptions& options, Clock& clock) {
  return with_patience<ClusterTable>(clock, [&]() -> Result<ClusterTable> {
    ASSIGN_OR_RETURN(auto table,
                     PostgresLeaseTable::open({.url = options.store,
                                               .shards = options.cluster.shards,
                                               .lease_length = options.cluster.lease,
                                               .statement_timeout = options.cluster.lease / 4,
                                               .node = options.cluster.node},
                                              clock));
    std::string secret = table->secret();
    return ClusterTable{.leases = std::move(table), .secret = std::move(secret)};
  });
}

Result<void> join_cluster(LeaseTable& leases, const Member& me, Clock& clock) {
  TRY(with_patience<ClusterView>(clock, [&] { return leases.beat(me, {}); }));
  return ok();
}

Result<OpenEngine> open_shard_engine(const cli::ServeOptions& options, Clock& clock,
                                     const LeasedShard& shard, ChangeFeed& changes) {
  const ShardLease& lease = shard.lease;
  const MemoryPlan memory = plan_memory(options.memory_bytes);
  OpenEngine opened;
  ASSIGN_OR_RETURN(opened.store,
                   PostgresStore::open({.url = options.store,
                                        .shard = lease.shard,
                                        .epoch = lease.epoch,
                                        .lease = options.cluster.lease,
                                        .statement_timeout = options.cluster.lease / 2,
                                        .node = options.cluster.node},
                                       clock));
  ASSIGN_OR_RETURN(
      opened.engine,
      Engine::open(*opened.store, clock,
                   {.window = options.window,
                    .max_loaded = std::max(memory.max_loaded / shard.shards, kFewestLoaded),
                    .sync_interval = options.sync_interval,
                    .keep_leases = true,
                    .shard = lease.shard,
                    .seed = random_seed(),
                    .changes = &changes,
                    .counted = shard.counted,
                    .is_here = taken_by(lease.shard, shard.shards)}));
  return opened;
}

Result<OpenEngine> open_engine(const cli::ServeOptions& options, const EngineUses& uses,
                               std::uint64_t owner, DataFolderIs folder,
                               const std::shared_ptr<DataFolderMark>& mark) {
  const MemoryPlan memory = plan_memory(options.memory_bytes);
  ASSIGN_OR_RETURN(std::unique_ptr<Store> store,
                   open_store(options, memory, uses, owner, folder, mark));
  ASSIGN_OR_RETURN(std::unique_ptr<Engine> engine,
                   Engine::open(*store, uses.clock,
                                {.window = options.window,
                                 .max_loaded = memory.max_loaded,
                                 .sync_interval = options.sync_interval,
                                 .keep_leases = true,
                                 .seed = random_seed(),
                                 .changes = &uses.changes,
                                 .intake = uses.intake}));
  return OpenEngine{.store = std::move(store), .engine = std::move(engine)};
}

Result<OpenEngine> open_first_engine(const cli::ServeOptions& options, Clock& clock,
                                     const std::function<Result<OpenEngine>()>& open) {
  return options.store.empty() ? open() : with_patience<OpenEngine>(clock, open);
}

Result<std::uint32_t> shards_in(const cli::CheckOptions& options) {
  if (options.store.empty()) return std::uint32_t{1};
  return PostgresStore::shards_to_read({.url = options.store});
}

Result<std::unique_ptr<Store>> open_data(const cli::CheckOptions& options, std::uint32_t shard,
                                         const OnCutTail& on_cut_tail) {
  if (!options.store.empty()) {
    return PostgresStore::open_to_read({.url = options.store, .shard = shard});
  }
  ASSIGN_OR_RETURN(const bool is_there, RocksDbStore::is_in(options.data.string()));
  if (!is_there) {
    return Error{ErrorCode::not_found, "there is no data in " + options.data.string(), "data"};
  }
  return RocksDbStore::open(
      {.path = options.data.string(), .folder = DataFolderIs::there, .on_cut_tail = on_cut_tail});
}

Result<std::vector<std::string>> damaged_files(const cli::CheckOptions& options) {
  if (!options.store.empty()) return std::vector<std::string>{};
  ASSIGN_OR_RETURN(const DataFolder folder, DataFolder::open(options.data.string()));
  return damaged_tables(folder.path());
}

Result<std::string> checkpoint_of_stopped(const std::string& data) {
  ASSIGN_OR_RETURN(const bool is_there, RocksDbStore::is_in(data));
  if (!is_there) return Error{ErrorCode::not_found, "there is no data in " + data, "data"};
  const auto checkpoints = std::make_shared<Checkpoints>();
  const Result<std::unique_ptr<Store>> store =
      RocksDbStore::open({.path = data,
                          .folder = DataFolderIs::there,
                          .checkpoints = checkpoints,
                          .on_cut_tail = warn_of_cut_tail});
  if (!store) {
    Error error = store.error();
    if (error.code == ErrorCode::unavailable) {
      error.message += "; to back up a running server, leave out --data";
    }
    return error;
  }
  return checkpoints->make(data);
}

Result<NewBackup> make_backup(const BackupRequest& request) { return add_backup(request); }

Result<std::vector<StoredBackup>> backups_in(const std::string& folder, BackupCheck check) {
  return list_backups(folder, check);
}

Result<StoredBackup> restore_from_backup(const BackupRestore& restore) {
  return restore_backup(restore);
}

std::string data_place(const cli::ServeOptions& options) {
  return options.store.empty() ? options.data.string() : shown_postgres_url(options.store);
}

namespace {

/// Logs each failure of the store with an error, and then that the store is open again. While the
/// store stays closed, logs an error once per minute with the time since. Confined to the engine's
/// thread.
class StoreLog {
 public:
  explicit StoreLog(const Clock& clock) : clock_(clock) {}

  void failed(const Error& cause) {
    const MonotonicTime now = clock_.now();
    if (open_since_ && now - *open_since_ >= LogPace::kPeriod) failures_ = 0;
    if (failures_++ == 0) first_failure_ = now;
    open_since_.reset();
    closed_since_ = now;
    cause_ = cause.message;
    attempts_ = {};
    if (may_tell(now)) tell_failure();
  }
  void not_reopened(const Error& cause) {
    const MonotonicTime now = clock_.now();
    if (!attempts_.is_worth_a_line(cause.message, now)) return;
    // Otherwise the last line could be "the store is open again".
    if (!is_told_) tell_failure();
    log_error("the store cannot be opened again yet; requests are refused until it is open again",
              {{"cause", cause.message},
               {"since", shown_since(closed_since_, now)},
               {"action", "correct the cause; the server tries again every second"}});
  }
  void reopened() {
    open_since_ = clock_.now();
    if (!std::exchange(is_told_, false)) return;
    log_info("the store is open again", {{"after", shown_since(closed_since_, *open_since_)}});
  }

 private:
  /// A store that is opened again and fails within a minute can do so many times, as on a full
  /// disk. So many of these failures are logged in a minute.
  static constexpr int kMostTold = 3;

  bool may_tell(MonotonicTime now) {
    if (failures_ == 1 || now - period_began_ >= LogPace::kPeriod) {
      period_began_ = now;
      told_ = 0;
    }
    return told_++ < kMostTold;
  }
  void tell_failure() {
    is_told_ = true;
    const bool is_first = failures_ == 1;
    const MonotonicTime now = clock_.now();
    log_error("the store failed; requests are refused until it is open again",
              {{"cause", cause_},
               {"failures", is_first ? std::nullopt : std::optional(std::to_string(failures_))},
               {"since_first", is_first ? std::nullopt : shown_since(first_failure_, now)},
               {"action", "correct the cause; the server opens the store again by itself"}});
  }

  const Clock& clock_;
  std::string cause_;                        // of the last failure
  int failures_ = 0;                         // without a minute between them
  MonotonicTime first_failure_;              // of these
  MonotonicTime closed_since_;               // the last failure
  std::optional<MonotonicTime> open_since_;  // again; empty while it is closed
  MonotonicTime period_began_;               // of told_
  int told_ = 0;
  LogPace attempts_;      // to open it again
  bool is_told_ = false;  // the last failure
};

}  // namespace

EngineEvents log_engine_events(UniqueFunction<Result<OpenEngine>()> reopen, Clock& clock) {
  const auto log = std::make_shared<StoreLog>(clock);  // shared by the three events
  return {.on_stopped = [log](const Error& cause) { log->failed(cause); },
          .on_reopen_failed = [log](const Error& cause) { log->not_reopened(cause); },
          .on_reopened = [log] { log->reopened(); },
          .reopen = std::move(reopen)};
}

}  // namespace detent::server

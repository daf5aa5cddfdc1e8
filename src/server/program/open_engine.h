// Opens the engine of this program on the store that the options name. In src/server only
// open_engine.cc names a concrete store; all other files use the interface.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "base/result.h"
#include "cli/options/check_options.h"
#include "cli/options/serve_options.h"
#include "detent/clock.h"
#include "engine/records/change_feed.h"
#include "engine/thread/engine_thread.h"
#include "store/backup.h"
#include "store/checkpoints.h"
#include "store/cut_tail.h"
#include "store/data_folder_is.h"
#include "store/lease_table.h"
#include "store/store.h"

namespace detent::server {

/// A random name of this process, for a store that other processes can reach.
std::uint64_t random_owner();

/// The parts that an engine uses in addition to its store. All must outlive the engine.
struct EngineUses {
  Clock& clock;
  ChangeFeed& changes;                            // gets the changes of tasks
  const TaskIntake* intake = nullptr;             // as in EngineOptions
  std::shared_ptr<Checkpoints> checkpoints = {};  // as in RocksDbStoreOptions
};
/// Opens the store and engine of `options`. Reads all data that recovery needs. A caller with the
/// same `owner` can open its own store again immediately. `mark` is as in RocksDbStoreOptions.
Result<OpenEngine> open_engine(const cli::ServeOptions& options, const EngineUses& uses,
                               std::uint64_t owner, DataFolderIs folder,
                               const std::shared_ptr<DataFolderMark>& mark = {});
/// Opens with `open` at the start of the program. Waits up to 15 seconds for a database that is not
/// up yet, or that is still reserved for a server that crashed.
Result<OpenEngine> open_first_engine(const cli::ServeOptions& options, Clock& clock,
                                     const std::function<Result<OpenEngine>()>& open);

/// The table of the cluster that `options` names, and the secret that its nodes share.
struct ClusterTable {
  std::unique_ptr<LeaseTable> leases;
  std::string secret;
};
/// Creates the table if it does not exist. Waits for an unreachable database, as
/// open_first_engine().
Result<ClusterTable> open_cluster_table(const cli::ServeOptions& options, Clock& clock);
/// Makes this node a member of the cluster, before it takes any shard. Waits as
/// open_first_engine(), also for another node with the same name. Errors: unavailable while another
/// node has this name.
Result<void> join_cluster(LeaseTable& leases, const Member& me, Clock& clock);
/// A shard whose lease this node has. All `shards` of the cluster share the memory. `counted` is as
/// in EngineOptions: the shards of a node share it.
struct LeasedShard {
  ShardLease lease;
  ShardNumber shards = 1;
  CountedQueues* counted = nullptr;
};
/// Opens the engine of the shard. The engine reports its changes to `changes`.
Result<OpenEngine> open_shard_engine(const cli::ServeOptions& options, Clock& clock,
                                     const LeasedShard& shard, ChangeFeed& changes);

/// Opens the store of an existing server. Errors: `not_found` if the folder has no store, and the
/// folder stays unchanged; `unavailable` while a server has the store open.
Result<std::unique_ptr<Store>> open_data(const cli::CheckOptions& options, std::uint32_t shard = 0,
                                         const OnCutTail& on_cut_tail = {});
/// The number of shards in the data; a folder is one shard. Errors: `unavailable` while any shard
/// is in use.
Result<std::uint32_t> shards_in(const cli::CheckOptions& options);

/// Returns one line for each damaged file of the store, including files that are not in use. Reads
/// all files. Errors: `unavailable` while another process has the store open, because a table looks
/// damaged while it is being written.
Result<std::vector<std::string>> damaged_files(const cli::CheckOptions& options);

/// Makes a checkpoint of the data folder of a stopped server, and returns its path. Errors:
/// not_found if there is no store; unavailable while a server has it open.
Result<std::string> checkpoint_of_stopped(const std::string& data);
/// These are add_backup(), list_backups() and restore_backup() of store/rocksdb/backup_folder.h.
Result<NewBackup> make_backup(const BackupRequest& request);
Result<std::vector<StoredBackup>> backups_in(const std::string& folder, BackupCheck check);
Result<StoredBackup> restore_from_backup(const BackupRestore& restore);

/// The place of the data, as text for people: a folder, or an address without its password.
std::string data_place(const cli::ServeOptions& options);

/// Logs that the store failed, and that it recovered; `reopen` opens it again. A failure that
/// continues is logged once per minute. `clock` must outlive the events.
EngineEvents log_engine_events(UniqueFunction<Result<OpenEngine>()> reopen, Clock& clock);

}  // namespace detent::server

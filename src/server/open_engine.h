// The engine of this program on the store it was asked for. Of src/server only open_engine.cc names
// a concrete store; all others know the interface.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "base/result.h"
#include "cli/check_options.h"
#include "cli/serve_options.h"
#include "detent/clock.h"
#include "engine/change_feed.h"
#include "engine/engine_thread.h"
#include "store/cut_tail.h"
#include "store/data_folder_is.h"
#include "store/lease_table.h"
#include "store/store.h"

namespace detent::server {

/// Names this process to a store that other processes can reach.
std::uint64_t random_owner();

/// Opens what `options` asks for. `clock` and `changes`, which is told of its tasks, must outlive
/// the engine. Reads whatever recovery needs. Whoever has the same `owner` may open again at once
/// what it had open. `mark` is as RocksDbStoreOptions has it.
Result<OpenEngine> open_engine(const cli::ServeOptions& options, Clock& clock, std::uint64_t owner,
                               ChangeFeed& changes, DataFolderIs folder,
                               const std::shared_ptr<DataFolderMark>& mark = {});
/// Opens by `open` when the program starts: waits up to 15 seconds for a database that is not up
/// yet, or that still keeps its tasks for a server that did not end well.
Result<OpenEngine> open_first_engine(const cli::ServeOptions& options, Clock& clock,
                                     const std::function<Result<OpenEngine>()>& open);

/// The table of the cluster that `options` names, and the secret its nodes share.
struct ClusterTable {
  std::unique_ptr<LeaseTable> leases;
  std::string secret;
};
/// Makes it where there is none yet; waits, as open_first_engine(), for a database that is not up.
Result<ClusterTable> open_cluster_table(const cli::ServeOptions& options, Clock& clock);
/// Makes the node one of the cluster, before it takes any shard: waits likewise, also for another
/// node of its name. Errors: unavailable while there is one.
Result<void> join_cluster(LeaseTable& leases, const Member& me, Clock& clock);
/// A shard whose lease this node has; of `shards` in all, which share the memory.
struct LeasedShard {
  ShardLease lease;
  ShardNumber shards = 1;
};
/// Its engine, which tells `changes` what happens.
Result<OpenEngine> open_shard_engine(const cli::ServeOptions& options, Clock& clock,
                                     const LeasedShard& shard, ChangeFeed& changes);

/// The store that a server has made. Errors: `not_found` where there is none in the folder, to
/// which nothing is done then; `unavailable` while a server has it open.
Result<std::unique_ptr<Store>> open_data(const cli::CheckOptions& options, std::uint32_t shard = 0,
                                         const OnCutTail& on_cut_tail = {});
/// How many shards the data has; a folder is one. Errors: `unavailable` while any is in use.
Result<std::uint32_t> shards_in(const cli::CheckOptions& options);

/// A line for each file of that store in which something is damaged, be it read or not. Reads all.
/// Errors: `unavailable` while anybody has it open: a table that is being written looks damaged.
Result<std::vector<std::string>> damaged_files(const cli::CheckOptions& options);

/// Where the data is, for people: a folder, or an address without its password.
std::string data_place(const cli::ServeOptions& options);

/// Logs that the store failed and came back; `reopen` opens it again. Why it cannot be opened yet
/// is logged at LogPace. `clock` must outlive them.
EngineEvents log_engine_events(UniqueFunction<Result<OpenEngine>()> reopen, Clock& clock);

}  // namespace detent::server

// The part of a settle that runs in the background: accepted tasks are read by id, sorted, written
// as tables in the order of their lanes, and handed to RocksDB as they are.
//
// What is in order when it arrives needs no log, no memtable and no compaction of small tables: an
// index made behind the writer in bulk costs a fraction of one kept up with every write (the same
// idea as in bulk loading of B-trees, and in Bigtable's ingestion). The tables of all families
// enter together: after a crash all are there, or none.
#pragma once

#include <rocksdb/snapshot.h>

#include <atomic>
#include <cstddef>
#include <optional>

#include "base/result.h"
#include "store/rocksdb/open_db.h"
#include "store/store.h"

namespace detent {

/// The tasks to settle: accepted ones with ids in (after, upto], the lowest first, until they are
/// `max_tasks` or `max_bytes`.
struct SettleRange {
  TaskId after;
  TaskId upto;
  std::size_t max_tasks = 0;
  std::size_t max_bytes = 0;
};

/// What has been ingested: every task of the range, as of the snapshot, with an id up to `to`.
struct Settled {
  TaskId to;
  bool is_whole = false;  // there were no more
  std::size_t tasks = 0;
  std::size_t bytes = 0;
  bool has_front = false;  // one has no place that can be made out: it is at the front
};

/// Runs on any thread. `snapshot` is released when it has been read. Gives up when `is_abandoned`
/// becomes true, unless the tables have been ingested. Memory: the records of the range. Errors:
/// nothing was ingested; the files are removed.
Result<Settled> settle_tables(OpenDb& db, const SettleRange& range,
                              const rocksdb::Snapshot* snapshot,
                              const std::atomic<bool>& is_abandoned);

}  // namespace detent

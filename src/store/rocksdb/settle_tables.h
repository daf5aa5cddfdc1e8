// Steps 1 and 2 of a settle (settle.h), which run in the background. Reads accepted tasks by id,
// sorts them, writes them as tables in the order of their lanes, and has RocksDB ingest the tables.
//
// Sorted tables need no log, no write buffer and no compaction of small tables. So building the
// order and the index in bulk, after the writes, costs a fraction of updating them with every
// write. Bulk loading of B-trees and Bigtable's ingestion use the same idea. RocksDB ingests the
// tables of all families in one step, so a crash never leaves only some of them.
#pragma once

#include <rocksdb/snapshot.h>

#include <atomic>
#include <cstddef>
#include <optional>

#include "base/result.h"
#include "store/rocksdb/database/open_db.h"
#include "store/store.h"

namespace detent {

/// The tasks to settle: accepted tasks with ids in (after, upto], the lowest first. The settle
/// stops after `max_tasks` tasks, or when their values have `max_bytes` bytes.
struct SettleRange {
  TaskId after;
  TaskId upto;
  std::size_t max_tasks = 0;
  std::size_t max_bytes = 0;
};

/// The ingested tasks: all tasks of the range that are in the snapshot and have ids up to `to`.
struct Settled {
  TaskId to;
  bool is_whole = false;  // the whole range was settled
  std::size_t tasks = 0;
  std::size_t bytes = 0;
  bool has_front = false;  // a task with a damaged place is at the front place
};

/// Reads `snapshot`, and releases it in every case. Gives up if `is_abandoned` becomes true before
/// the tables are ingested. Runs on any thread. Memory: the records of the range. An error means
/// that no table was ingested. The files are removed in every case.
Result<Settled> settle_tables(OpenDb& db, const SettleRange& range,
                              const rocksdb::Snapshot* snapshot,
                              const std::atomic<bool>& is_abandoned);

}  // namespace detent

// Moves accepted tasks to their lanes on disk, in bulk and on a thread of its own.
//
// A settle has four steps. Until the last step, the accepted family has every task and the settled
// mark says so. Therefore a crash at any time neither loses nor duplicates a task.
//
//  1. The thread reads accepted tasks and writes tables in a folder of their own. After a crash,
//     the next start removes the files.
//  2. RocksDB takes the tables into the column families, all of them at once (it *ingests* them).
//     The new entries have ids above the settled mark, so reads skip them. After a crash, the next
//     start removes the entries (remove_unsettled()).
//  3. Tasks that changed since step 1 are corrected in the families (stage_corrections()). If there
//     are many, each write of the store corrects a part of them. A crash has the same effect as
//     after step 2.
//  4. The settle is made to count: the store's thread writes one synced batch (stage_finish()).
//     This batch raises the settled mark, removes the settled tasks from the accepted family, and
//     has the last corrections.
//
// A settle that fails has the same effect as a crash in step 1. The store tries again after some
// writes (open_store.cc).
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <unordered_map>

#include "base/mutex.h"
#include "base/result.h"
#include "base/thread.h"
#include "store/rocksdb/accepted_index.h"
#include "store/rocksdb/changes.h"
#include "store/rocksdb/database/open_db.h"
#include "store/rocksdb/settle_tables.h"
#include "store/store.h"

namespace detent {

/// Removes all entries with ids above the settled mark, which an interrupted settle left. For use
/// while a store is opened: an error names the folder. Takes at most as long as one settle.
Result<void> remove_unsettled(OpenDb& db, TaskId settled_to);

/// Runs at most one settle at a time. All functions belong to the store's thread.
class Settle {
 public:
  enum class Mode : std::uint8_t { background, foreground };

  Settle(OpenDb& db, Mode mode) : db_(db), mode_(mode) {}
  /// Tells a running settle to give up, and waits for its thread.
  ~Settle();
  Settle(const Settle&) = delete;
  Settle& operator=(const Settle&) = delete;

  /// Returns true from start() until finished(), or until poll() or wait() returns an error.
  bool is_running() const noexcept { return is_running_; }
  /// Starts a settle. Requires: no settle is running. With Mode::foreground, the settle runs inside
  /// this call, and poll() then returns its result.
  void start(const SettleRange& range);
  /// Must be called when a task above the settled mark is put, moved or erased, before the
  /// AcceptedIndex is updated. `before` is the task's previous place, or nullopt for a new task.
  /// Cheap if no settle is running.
  void changed(TaskId id, const std::optional<Place>& before);

  /// Returns the result of steps 1 and 2, once, as soon as they are done, and nullopt otherwise.
  /// After a success the settle counts as running until finished(). After an error no settle is
  /// running.
  std::optional<Result<Settled>> poll();
  /// Waits for the result and returns it. Requires: a settle is running, and its result was not
  /// returned yet.
  Result<Settled> wait();
  /// Tells the running settle to give up.
  void abandon() noexcept;

  /// The number of tasks that changed since the settle began and are not corrected yet.
  std::size_t changes_left() const noexcept { return changed_.size(); }
  /// Adds the corrections of at most `most` changed tasks to `changes`. Reads do not show them
  /// before the settle counts. `accepted` must contain all changes so far. Errors: the record of an
  /// accepted task could not be read.
  Result<void> stage_corrections(const Settled& settled, std::size_t most,
                                 const AcceptedIndex& accepted, Changes& changes);
  /// Adds everything that makes the settle count to `changes`, with all corrections that are left.
  /// Errors: as in stage_corrections().
  Result<void> stage_finish(const Settled& settled, TaskId settled_from,
                            const AcceptedIndex& accepted, Changes& changes);
  /// Must be called after the changes of stage_finish() were written.
  void finished();

 private:
  void run(const SettleRange& range, const rocksdb::Snapshot* snapshot);

  // Constant after construction.
  OpenDb& db_;
  const Mode mode_;

  // Touched by the store's thread only.
  bool is_running_ = false;
  TaskId upto_;  // the highest id that the running settle may move
  // The tasks that changed since the settle began, by id. The value is the place of the task in the
  // snapshot, or nullopt if the snapshot does not have the task.
  std::unordered_map<std::uint64_t, std::optional<Place>> changed_;

  // The store's thread sets it, and the settle's thread reads it between two records. Relaxed: the
  // flag orders no other data. No mutex, because the flag is read often.
  std::atomic<bool> is_abandoned_{false};
  Mutex mu_;
  CondVar done_;
  std::optional<Result<Settled>> outcome_ DETENT_GUARDED_BY(mu_);

  Thread thread_;  // last, because the thread uses all of the above
};

}  // namespace detent

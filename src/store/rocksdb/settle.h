// Moves accepted tasks into their lanes on disk, behind the store's back, and tells the store's
// thread when and how to make it count.
//
// A settle goes through these steps; a crash at any of them loses nothing and doubles nothing,
// because up to the last one the accepted family still has every task and the mark still says so:
//  1. tasks are read and tables written, in a folder of their own: a crash leaves files, which the
//     next start removes;
//  2. the tables enter the families, all at once: a crash after that leaves entries of ids above
//     the mark. Reads skip them, and the next start removes them (remove_unsettled());
//  3. what was changed since the settle began is put right, a part with each write when it is much
//     (stage_corrections()): a crash after that leaves what one after 2 leaves;
//  4. the store's thread writes one synced batch (stage_finish()): the mark rises, the accepted
//     tasks below it go, and the last changes are put right.
// A settle that fails leaves what a crash in 1 leaves, and is tried again some writes later.
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
#include "store/rocksdb/open_db.h"
#include "store/rocksdb/settle_tables.h"
#include "store/store.h"

namespace detent {

/// Removes entries above the mark, which a settle that was cut off has left. For opening: an error
/// names the folder. Cost: that of one settle at most.
Result<void> remove_unsettled(OpenDb& db, TaskId settled_to);

/// At most one settle at a time. All methods belong to the store's thread.
class Settle {
 public:
  enum class Mode : std::uint8_t { background, foreground };

  Settle(OpenDb& db, Mode mode) : db_(db), mode_(mode) {}
  /// Abandons what runs.
  ~Settle();
  Settle(const Settle&) = delete;
  Settle& operator=(const Settle&) = delete;

  bool is_running() const noexcept { return is_running_; }
  /// Requires: none is running. With Mode::foreground it is done when this returns.
  void start(const SettleRange& range);
  /// A task of an id above the mark has been changed or erased, which was at `before` until now (at
  /// none, if it is new). Cheap when no settle runs.
  void changed(TaskId id, const std::optional<Place>& before);

  /// What the settle came to, once it is done; then none is running until finished(). After a
  /// failure none is running at all.
  std::optional<Result<Settled>> poll();
  /// Waits for it. Requires: one is running.
  Result<Settled> wait();
  /// Tells it to give up.
  void abandon() noexcept;

  /// Tasks that were changed since the settle began, or since they were put right.
  std::size_t changes_left() const noexcept { return changed_.size(); }
  /// Fills in what puts at most `most` of them right in the families, where nobody sees it until
  /// the settle counts: `accepted` must be as the store's thread sees it. Errors: a record of an
  /// accepted task could not be read.
  Result<void> stage_corrections(const Settled& settled, std::size_t most,
                                 const AcceptedIndex& accepted, Changes& changes);
  /// Fills in what makes the settle count, the corrections that are left too. Errors: as
  /// stage_corrections().
  Result<void> stage_finish(const Settled& settled, TaskId settled_from,
                            const AcceptedIndex& accepted, Changes& changes);
  void finished();

 private:
  void run(const SettleRange& range, const rocksdb::Snapshot* snapshot);

  // Constant after construction.
  OpenDb& db_;
  const Mode mode_;

  // Touched by the store's thread only.
  bool is_running_ = false;
  TaskId upto_;  // of the settle that runs
  // Where tasks were in the snapshot that have been changed since.
  std::unordered_map<std::uint64_t, std::optional<Place>> changed_;

  // Written by the store's thread, read by the settle's between two records: relaxed, because
  // nothing is handed over with it; no mutex, because it is read often.
  std::atomic<bool> is_abandoned_{false};
  Mutex mu_;
  CondVar done_;
  std::optional<Result<Settled>> outcome_ DETENT_GUARDED_BY(mu_);

  Thread thread_;  // last: it uses all of the above
};

}  // namespace detent

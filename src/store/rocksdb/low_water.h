// Where the due family begins: a place in the due order at or before which it has no record that
// counts.
//
// Tasks are removed at the front of the order, and until RocksDB has compacted them away their
// tombstones lie there: a read from the very beginning, as every start makes one, would walk over
// millions. So reads begin here instead. The mark follows the removals: after every thousand the
// first record is looked for from the mark on, which walks over about as many tombstones. A put at
// or before the mark lowers it in the same batch, so on disk it is never above a record, whatever
// crashes. It may lag behind; that costs time, never a task. Thread-compatible.
//
// Entries of a settle that does not count yet (ids above the settled mark) are passed as if they
// were not there: most of what lies before the first record that counts may be such, of tasks that
// have ended since. When the settle counts, the mark goes below the first that is left of them.
#pragma once

#include <cstddef>

#include "base/result.h"
#include "store/rocksdb/open_db.h"
#include "store/store.h"

namespace detent {

class LowWater {
 public:
  /// The mark as it was stored with the last batch.
  static Result<LowWater> read(OpenDb& db);

  const Place& place() const noexcept { return place_; }
  /// A record is put at `place`, of the due lane: the mark gets below it.
  void put(const Place& place) noexcept;
  /// `count` tasks have left the due lane, durably or not. May raise the mark.
  void removed(std::size_t count, OpenDb& db, TaskId settled_to);
  /// Raises the mark to the first record that counts, or part of the way. Cost: some milliseconds
  /// at most.
  void raise(OpenDb& db, TaskId settled_to);

  /// Whether the mark differs from what was stored last.
  bool is_changed() const noexcept { return place_ != stored_; }
  void stored() noexcept { stored_ = place_; }

 private:
  Place place_ = begin_of(Lane::due);
  Place stored_ = begin_of(Lane::due);
  std::size_t removals_until_raise_ = 0;
};

}  // namespace detent

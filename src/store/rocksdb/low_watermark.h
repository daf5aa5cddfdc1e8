// The low-water mark: a place in the due order. The due column family has no record that counts at
// or before this place, so reads of the due order can start there.
//
// Tasks are removed at the front of the due order. RocksDB keeps a tombstone for each removed
// record until a compaction deletes it. A read from the very beginning, such as the first read of
// each start, would pass millions of tombstones.
//
// The mark rises after every thousand removals: raise() searches for the first record from the old
// mark on, which passes about as many tombstones. A record that is put at or before the mark lowers
// the mark in the same batch. So after any crash the mark on disk is below all records that count.
// The mark may be lower than necessary. That costs time, but skips no task.
//
// A settle that does not count yet may already have its entries in the due family (settle.h). Their
// ids are above the settled mark. raise() passes them like removed records, because most of these
// tasks may have ended by then. When the settle counts, the mark is lowered to the first of these
// tasks that is still there. Thread-compatible.
#pragma once

#include <cstddef>

#include "base/result.h"
#include "store/rocksdb/database/open_db.h"
#include "store/store.h"

namespace detent {

class LowWatermark {
 public:
  /// Reads the stored mark.
  static Result<LowWatermark> read(OpenDb& db);

  const Place& place() const noexcept { return place_; }
  /// Lowers the mark if it is not below `place`. Must be called for each record that is put in the
  /// due family.
  void put(const Place& place) noexcept;
  /// Counts removals from the due lane. Raises the mark when there were enough of them.
  void removed(std::size_t count, OpenDb& db, TaskId settled_to);
  /// Raises the mark to the first record that counts, or a part of the way if there are many
  /// tombstones. Takes a few milliseconds at most.
  void raise(OpenDb& db, TaskId settled_to);

  /// Returns true if the mark differs from the stored one.
  bool is_changed() const noexcept { return place_ != stored_; }
  /// Must be called after the mark was written.
  void stored() noexcept { stored_ = place_; }

 private:
  Place place_ = begin_of(Lane::due);
  Place stored_ = begin_of(Lane::due);
  std::size_t removals_until_raise_ = 0;
};

}  // namespace detent

// Counts the live tasks that are due in each bin (task/due_bin.h). The sums are in memory. The disk
// has full sums, and the changes since then.
//
// A batch that changes counts writes one small entry with a rising number, a few bytes for each
// task. Sometimes the full sums are written, and the entries before them are removed by range. This
// happens when the entries are longer than the full sums, at each settle, and at a clean stop. So
// the cost of a batch depends on its size, not on the number of bins, and a start has little to
// read.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "base/result.h"
#include "store/rocksdb/changes.h"
#include "store/rocksdb/database/open_db.h"
#include "store/store.h"

namespace detent {

/// Thread-compatible. The sums change only in written(), not in stage(), so they never include a
/// batch that failed.
class DueSums {
 public:
  /// Reads the full sums and adds the changes. Errors: data_loss; the message names the folder.
  static Result<DueSums> read(OpenDb& db);

  /// Adds an entry with these changes to the batch. The caller calls written() with the same counts
  /// after the batch was written.
  void stage(std::span<const DueCount> counts, Changes& changes);
  void written(std::span<const DueCount> counts);

  /// Returns true if the full sums should be written. Requires: in a batch, stage_full() comes
  /// before stage(), because the full sums do not include the changes of the same batch.
  bool wants_full() const noexcept;
  void stage_full(Changes& changes);
  void full_written();

  /// Returns the sums sorted by bin, without bins that have no tasks.
  std::vector<DueCount> counts() const;

 private:
  Result<void> set_full(std::string_view bytes);
  Result<void> add(std::string_view bytes);
  std::string full_bytes() const;

  // By packed bin. Bins without tasks are removed.
  std::unordered_map<std::int64_t, std::int64_t> sums_;
  std::uint64_t first_number_ = 0;  // of the first change after the full sums
  std::uint64_t next_number_ = 0;
  std::size_t staged_bytes_ = 0;  // of the staged change
  std::size_t change_bytes_ = 0;  // of all changes since the full sums
  std::size_t full_size_ = 0;     // of the full sums, in bytes
};

/// Encodes counts. They may come in any order and with repeats. Each bin is stored as its
/// difference from the previous bin, followed by the bin's count, which can be negative. Both are
/// varints.
std::string due_count_bytes(std::span<const DueCount> counts);
Result<std::vector<DueCount>> parse_due_counts(std::string_view bytes);

}  // namespace detent

// How many live tasks are due in each bin: the sums in memory, and the changes on disk that they
// are made of.
//
// A batch that changes counts carries one small entry under a rising number, some bytes a task.
// Now and then (when the entries have grown longer than the sums, at each settle and at a clean
// stop) the full sums are written, and the entries before them are removed by range. So the cost a
// batch stays in proportion to its size, however many bins there are, and a start reads little.
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
#include "store/rocksdb/open_db.h"
#include "store/store.h"

namespace detent {

/// Thread-compatible. What stage…() fills in counts only from …written() on, so that the sums never
/// show a batch that failed.
class DueSums {
 public:
  /// Folds what is on disk. Errors: data_loss, naming the folder.
  static Result<DueSums> read(OpenDb& db);

  void stage(std::span<const DueCount> counts, Changes& changes);
  void written(std::span<const DueCount> counts);

  /// Whether it is time for the full sums. They are staged before any change in the same batch.
  bool wants_full() const noexcept;
  void stage_full(Changes& changes);
  void full_written();

  /// By bin, without those that are 0.
  std::vector<DueCount> counts() const;

 private:
  Result<void> set_full(std::string_view bytes);
  Result<void> add(std::string_view bytes);
  std::string full_bytes() const;

  std::unordered_map<std::int64_t, std::int64_t> sums_;  // by packed bin; none is 0
  std::uint64_t first_number_ = 0;  // of the changes that the full sums do not have
  std::uint64_t next_number_ = 0;
  std::size_t staged_bytes_ = 0;
  std::size_t change_bytes_ = 0;  // since the full sums
  std::size_t full_size_ = 0;     // of those
};

/// Bytes of counts, in any order and with repeats: each bin and count as the difference from the
/// bin before and a signed number, both as varints.
std::string due_count_bytes(std::span<const DueCount> counts);
Result<std::vector<DueCount>> parse_due_counts(std::string_view bytes);

}  // namespace detent

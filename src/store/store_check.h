// Checks whether a store is sound: each record, and all data elsewhere in the store that depends on
// the records.
//
// The check reads all records twice, by id and by place, and compares the results:
//
//  - Each record is at its place, under its id. Its queue exists, and its standing fits its lane.
//  - The key of a record stands for its task.
//  - The counts of the queues and of the due bins are the sums over the records.
//  - All keys are sound (key_check.h).
//  - All recurring schedules can be read and are valid.
//
// The check uses the Store interface, so it works for each back end. It needs memory for a page of
// records, and a few counters for each queue and each due bin.
//
// Damage is a finding, and does not hide other findings. If a page as a whole cannot be read, the
// check reads that lane only up to the damage, because the store cannot tell where the next record
// begins. The other way of reading then covers the rest: all records that were not read by id get
// their full check where they are read by place.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "store/store.h"

namespace detent {

struct StoreReport {
  std::uint32_t shards = 1;                // number of checked shards
  std::array<std::uint64_t, 4> records{};  // sound records, by lane
  std::uint64_t queues = 0;
  std::uint64_t schedules = 0;
  std::uint64_t due_bins = 0;
  std::uint64_t quarantined = 0;  // records that were moved there earlier; not a finding
  std::uint64_t finding_count = 0;
  std::vector<std::string> findings;  // the first kMaxFindings; each is one line
  std::vector<std::string> notes;     // information, not damage; each is one line
  std::optional<Error> ended_by;      // an error of the store that ended the check early

  static constexpr std::size_t kMaxFindings = 100;
  bool is_sound() const noexcept { return finding_count == 0 && !ended_by; }
  friend bool operator==(const StoreReport&, const StoreReport&) = default;
};

/// The report as text for people: the counts, then one line for each finding.
std::string to_string(const StoreReport& report);

/// Adds the report of one shard of a cluster to `sum`. A queue with partitions counts once for each
/// shard that has one of its partitions.
void add_shard(StoreReport& sum, const StoreReport& report, std::uint32_t shard);

/// Checks a store and changes nothing. Requires: no one writes to the store during the check. The
/// check calls `at` regularly with the number of records read so far. Each task counts twice, each
/// key once.
StoreReport check_store(Store& store, const std::function<void(std::uint64_t)>& at);

}  // namespace detent

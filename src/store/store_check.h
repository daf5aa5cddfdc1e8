// Whether a store is sound: every record, and everything that is told about records elsewhere.
//
// Goes through all records twice, by id and by place, and compares what it meets: each record is
// where its place says, under its id, of a queue that there is and in a lane that its standing
// allows; its key stands for it; and the sums over all of them are what the queues and the due
// counts say. Goes through all keys (key_check.h). Recurring schedules can be read, and are what a
// schedule may be. Over the Store interface, so for every back end. Memory: a page of records, and
// a few counters for each queue and each due bin.
//
// What is damaged is a finding, and hides nothing else. Where that is a page, it is read up to the
// damage, because nobody knows where to go on behind it. So the other way through the records has
// to do: records that were not read by id are checked where they are met by place, all of them.
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
  std::uint32_t shards = 1;                // that it is about
  std::array<std::uint64_t, 4> records{};  // sound ones, by lane
  std::uint64_t queues = 0;
  std::uint64_t schedules = 0;
  std::uint64_t due_bins = 0;
  std::uint64_t quarantined = 0;  // set aside earlier, so no finding of its own
  std::uint64_t finding_count = 0;
  std::vector<std::string> findings;  // the first kMaxFindings, each one line
  std::vector<std::string> notes;     // worth knowing, and no damage; each one line
  std::optional<Error> ended_by;      // the store's, before all was read

  static constexpr std::size_t kMaxFindings = 100;
  bool is_sound() const noexcept { return finding_count == 0 && !ended_by; }
  friend bool operator==(const StoreReport&, const StoreReport&) = default;
};

/// For people: what there is, then a finding a line.
std::string to_string(const StoreReport& report);

/// Adds what was found in a shard of a cluster. A queue with partitions counts once for each shard
/// that has one of them.
void add_shard(StoreReport& sum, const StoreReport& report, std::uint32_t shard);

/// Checks a store that nobody writes to meanwhile. Changes nothing. `at` is told now and then how
/// many records have been read: of tasks, each twice, and of keys.
StoreReport check_store(Store& store, const std::function<void(std::uint64_t)>& at);

}  // namespace detent

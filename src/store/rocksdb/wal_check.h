// Tells a write-ahead log that power loss cut off from one that is damaged, before RocksDB replays
// it.
//
// RocksDB offers either to stop at the first bad byte (kPointInTimeRecovery), which throws away
// everything acknowledged after damage in the middle, or to refuse any checksum that does not match
// (kTolerateCorruptedTailRecords), which refuses a tail whose pages reached the disk in another
// order than they were written, and skips zeroed pages in the middle without a word. We need to
// know which it is. A write is one record of the log. When it is begun all before it is on disk,
// unless it carries the mark kAfterUnsynced. So power loss tears what follows the last synced
// write, and no intact record without the mark starts after the first bad byte, there or in a later
// log. If one does, something that was acknowledged is damaged, and nothing may be replayed in
// part.
//
// A log is reserved in pieces (log_guard.h), so it may end in zeros; it counts as if they were not
// there. That holds for every log, not only the last: a crash may come before an older one is
// closed, which cuts its zeros off. If instead an older log has zeros where writes were, it is not
// found here but by RocksDB: its manifest has the length of each log that was closed, and it
// refuses one that ends before.
//
// What cannot be told apart: damage that hits nothing but the last writes, up to where the mark is
// missing, looks like torn ones.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "store/cut_tail.h"
#include "store/rocksdb/data_folder.h"

namespace detent {

/// What a write begins with, as RocksDB's log data, if not all before it was synced.
inline constexpr std::string_view kAfterUnsynced = "unsynced";

enum class LogState : std::uint8_t {
  intact,
  torn_tail,  // a write that was not synced is not whole; after it there is none that counts
  damaged     // a write that was synced is not whole
};

/// Examines the bytes of one log, as mend_logs() does. Cost: one checksum over it; where it is not
/// intact, seconds at worst for 64 MB.
LogState examine_log(std::string_view log) noexcept;

/// Examines all logs of a folder, and its manifest, which is of the same format. A torn tail is cut
/// off, durably, with the logs after it, before anything is written there: a second power loss
/// would leave it in the middle; `on_cut_tail` is told before. So are zeros at an end, without a
/// call. Errors: data_loss when they may not be replayed, unavailable when they cannot be read or
/// cut.
Result<void> mend_logs(const DataFolder& folder, const OnCutTail& on_cut_tail);

}  // namespace detent

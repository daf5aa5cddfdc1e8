// Checks the write-ahead logs before RocksDB replays them. An incomplete end that a power loss left
// is cut off. Damage is an error.
//
// RocksDB's own recovery modes do not make this distinction. kPointInTimeRecovery stops at the
// first bad byte. If the damage is in the middle, it throws away all acknowledged writes after it.
// kTolerateCorruptedTailRecords refuses every wrong checksum in the tail. But a power loss can
// leave such a tail, because pages can reach the disk in a different order than they were written.
// That mode also skips zeroed pages in the middle without an error.
//
// *The rule.* Each write of the store is one record of the log. When a write begins, all earlier
// writes are on disk, unless the record has the marker kAfterUnsynced. So a power loss can only
// damage writes after the last synced write. No intact record without the marker can start after
// the first bad byte, in the same log or in a later one. If there is such a record, an acknowledged
// write is damaged. Then no part of the logs may be replayed.
//
// *Zeros at the end.* The space of a log is reserved in pieces (wal_env.h), so a log may end in
// zeros. The check ignores them. Older logs may end in zeros too, if a crash came before they were
// closed. If the zeros in an older log replaced writes, this check does not find it, but RocksDB
// does. Its manifest has the length of each closed log, and RocksDB refuses a shorter log.
//
// *The limit.* If no intact record without the marker follows the damage, the damage looks like an
// incomplete end. This is so even if the damage hit the last synced write.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "store/cut_tail.h"
#include "store/rocksdb/database/data_folder.h"

namespace detent {

/// A write begins with this marker, as RocksDB's log data, if earlier writes may not be synced yet.
inline constexpr std::string_view kAfterUnsynced = "unsynced";

enum class LogState : std::uint8_t {
  intact,
  torn_tail,  // an unsynced write is incomplete, and no write after it shows that it was synced
  damaged     // a synced write is incomplete
};

/// Checks the bytes of one log, as mend_logs() does. Computes one checksum over the log. If the log
/// is not intact, this can take seconds for 64 MB.
LogState examine_log(std::string_view log) noexcept;

/// Checks all logs of a folder, and its manifest, which has the same format. Cuts off an incomplete
/// end, and empties all later logs. This is durable before any new write: otherwise, after a second
/// power loss, the incomplete end would be in the middle. Calls `on_cut_tail` before the cut. Also
/// cuts off zeros at the end of a log, without a call. Errors: data_loss if the logs are damaged;
/// unavailable if they cannot be read or cut.
Result<void> mend_logs(const DataFolder& folder, const OnCutTail& on_cut_tail);

}  // namespace detent

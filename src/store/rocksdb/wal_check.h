// Tells a write-ahead log that power loss cut off from one that is damaged, before RocksDB replays
// it.
//
// RocksDB offers either to stop at the first bad byte (kPointInTimeRecovery), which throws away
// everything acknowledged after damage in the middle, or to refuse any checksum that does not match
// (kTolerateCorruptedTailRecords), which refuses a tail whose pages reached the disk in another
// order than they were written, and skips zeroed pages in the middle without a word. We need to
// know which it is. A synced write is one record of the log, and none is begun before the one
// before it is on disk. So what power loss tore is the last record: no intact record *starts* after
// the first bad byte. If one does, something that was acknowledged is damaged, and the log must not
// be replayed in part.
//
// What cannot be told apart: damage that hits nothing but the very last write looks like a torn
// one.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "store/rocksdb/data_folder.h"

namespace detent {

enum class LogState : std::uint8_t {
  intact,
  torn_tail,  // the last record is not whole
  damaged     // a record that is not the last is not whole
};

/// Examines the bytes of one log. Cost: one checksum over it; where it is not intact, seconds at
/// worst for 64 MB.
LogState examine_log(std::string_view log) noexcept;

/// Examines all logs of a folder, and its manifest, which is of the same format. Only the newest
/// log that is not empty, and the manifest, may be torn. A torn tail is cut off, durably, before
/// anything is written after it: a second power loss would leave it in the middle. Errors:
/// data_loss when they may not be replayed, unavailable when they cannot be read or cut.
Result<void> mend_logs(const DataFolder& folder);

}  // namespace detent

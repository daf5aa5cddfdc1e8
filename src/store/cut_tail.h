// The incomplete end of a log, which opening a data folder discards. A power failure can leave such
// an end.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

namespace detent {

/// The end of a log that was cut off because its last write is incomplete. It can contain only
/// writes that were not synced (rocksdb/wal_check.h).
struct CutTail {
  std::string file;                   // name of the log in the folder
  std::uint64_t ended_at = 0;         // bytes of complete writes; they are kept
  std::uint64_t discarded_bytes = 0;  // bytes after them, in this log and in newer logs

  friend bool operator==(const CutTail&, const CutTail&) = default;
};

/// Called for each tail before the tail is cut off. So a crash cannot hide a tail, but the next
/// start may report the same tail again. May be empty.
using OnCutTail = std::function<void(const CutTail&)>;

}  // namespace detent

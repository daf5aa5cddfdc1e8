// What opening a data folder discards of a log: the end that power loss left incomplete.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

namespace detent {

/// The end of a log that was cut off because its last write is incomplete. Only writes that were
/// not synced can be in it (rocksdb/wal_check.h).
struct CutTail {
  std::string file;                   // the log's name in the folder
  std::uint64_t ended_at = 0;         // bytes of complete writes, which are kept
  std::uint64_t discarded_bytes = 0;  // written after them, in this log and in newer ones

  friend bool operator==(const CutTail&, const CutTail&) = default;
};

/// Is told of a tail before it is cut off, so that no crash can hide it: a tail may be told again
/// at the next start. May be empty.
using OnCutTail = std::function<void(const CutTail&)>;

}  // namespace detent

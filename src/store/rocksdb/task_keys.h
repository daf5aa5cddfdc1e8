// Reads, expires and checks the keys that clients gave to tasks.
//
// The keys family has the records. The key_expiry family lists the keys by the time when they
// expire. An entry of that list is only a hint. If a key is put again with another expiry or
// without one, the old entry stays in the list. Trimming reads the key itself, and deletes the key
// only if the key still has the expiry of the entry.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "store/rocksdb/changes.h"
#include "store/rocksdb/database/open_db.h"
#include "store/store.h"

namespace detent {

/// Confined to the store's thread.
class TaskKeys {
 public:
  explicit TaskKeys(OpenDb& db) : db_(db) {}

  /// As Store::find_key.
  Result<std::optional<KeyRecord>> find(std::uint32_t queue, std::string_view key);
  /// As Store::find_keys.
  Result<std::vector<KeyRecord>> find_all(std::uint32_t queue, std::span<const std::string> keys);
  /// As Store::read_keys.
  Result<KeyPage> read(std::uint32_t queue, std::string_view after, std::size_t limit);
  /// Must be called for each key that was written. Moves the start of trimming back if the key
  /// expires before it.
  void put(const KeyRecord& record);
  /// Adds the deletion of at most `limit` keys that expired at or before `now` to `changes`, the
  /// oldest first. Returns their number. Requires: the caller calls trimmed() after `changes` was
  /// written.
  Result<std::size_t> stage_trim(WallTime now, std::size_t limit, Changes& changes);
  void trimmed() { begin_ = trimmed_to_; }
  /// As Store::wrong_expiries.
  Result<std::vector<KeyRecord>> wrong_expiries(std::span<const KeyRecord> records);

 private:
  Result<bool> has_expired(std::string_view key, WallTime at);

  OpenDb& db_;
  // Trimming starts at this key of the key_expiry family. No entry is before it. Deleted entries
  // leave tombstones, and a scan from the very beginning would read all of them each time.
  std::string begin_;
  std::string trimmed_to_;  // the new begin_ once the staged trim was written
};

}  // namespace detent

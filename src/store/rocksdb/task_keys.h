// For which tasks keys stand, and which have expired: the keys family, and its order by expiry.
//
// An entry by expiry is only a hint to look: when a key is put again with another expiry, or none,
// the old entry stays, and trimming finds that it no longer says what the key says.
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
#include "store/rocksdb/open_db.h"
#include "store/store.h"

namespace detent {

/// Belongs to the store's thread.
class TaskKeys {
 public:
  explicit TaskKeys(OpenDb& db) : db_(db) {}

  Result<std::optional<KeyRecord>> find(std::uint32_t queue, std::string_view key);
  /// As Store::find_keys.
  Result<std::vector<KeyRecord>> find_all(std::uint32_t queue, std::span<const std::string> keys);
  /// As Store::read_keys.
  Result<KeyPage> read(std::uint32_t queue, std::string_view after, std::size_t limit);
  /// A key is put: where trimming begins gets before its expiry.
  void put(const KeyRecord& record);
  /// Stages the removal of keys that expired at or before `now`, the oldest first, at most `limit`.
  /// Returns how many. Requires: trimmed() is called when they are written.
  Result<std::size_t> stage_trim(WallTime now, std::size_t limit, Changes& changes);
  void trimmed() { begin_ = trimmed_to_; }
  /// As Store::wrong_expiries.
  Result<std::vector<KeyRecord>> wrong_expiries(std::span<const KeyRecord> records);

 private:
  Result<bool> has_expired(std::string_view key, WallTime at);

  OpenDb& db_;
  // Nothing is before this key of the expiry order: removed entries leave tombstones there, which
  // a walk from the very beginning would meet every time.
  std::string begin_;
  std::string trimmed_to_;
};

}  // namespace detent

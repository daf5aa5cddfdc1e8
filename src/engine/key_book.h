// Which task a key stands for: the store's records, and what this turn has made of them.
//
// A key is given to a task when it is scheduled and stands for it while the task lives and a while
// after, so that a client that repeats a request gets the first task again (idempotency). Expired
// records stay until the store trims them, and count for nothing here. Thread-compatible.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.h"
#include "store/store.h"

namespace detent {

class KeyBook {
 public:
  /// `store` must outlive it.
  explicit KeyBook(Store& store) noexcept : store_(store) {}

  /// The record of a key of a queue (by number) that has not expired. At most one read.
  Result<std::optional<KeyRecord>> find(std::uint32_t queue, std::string_view key, WallTime now);
  /// From the next commit on the key stands for this.
  void put(KeyRecord record);
  /// The task has ended: its key stands for it until `expires_at`. Does nothing when the key stands
  /// for another task by now.
  Result<void> expire(std::uint32_t queue, std::string_view key, TaskId id, WallTime expires_at);

  bool empty() const noexcept { return staged_.empty(); }
  std::vector<KeyRecord> take();

 private:
  Result<std::optional<KeyRecord>> record_of(std::uint32_t queue, std::string_view key);

  Store& store_;
  std::map<std::pair<std::uint32_t, std::string>, KeyRecord> staged_;
};

}  // namespace detent

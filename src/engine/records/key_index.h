// Which task has which key: the records of the store, and the changes of this turn.
//
// A task gets its key when it is scheduled. The key stands for the task while the task lives, and
// for some time after its end. So a client that repeats a request gets the first task again
// (idempotency). Expired records stay until the store trims them, and have no effect here.
//
// If the record of a key is damaged, the key may stand for any task. So a request with this key
// gets data_loss and creates no task. The key works again after the end of its task, because this
// writes the record again. If the task has already ended, the key works again after the record is
// trimmed. If the task is damaged too, the key never works again. Thread-compatible.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "base/result.h"
#include "store/store.h"

namespace detent {

class KeyIndex {
 public:
  /// `store` must outlive it.
  explicit KeyIndex(Store& store) noexcept : store_(store) {}

  /// The record of a key of a queue (by number) that has not expired. At most one read.
  Result<std::optional<KeyRecord>> find(std::uint32_t queue, std::string_view key, WallTime now);
  /// Reads the records of these keys of a queue in one call of the store. Until the next commit or
  /// the next call, these keys cost no further read. A key that cannot be read now is read again
  /// later.
  void read_ahead(std::uint32_t queue, std::span<const std::string> keys);
  /// The tasks that the keys of the last read_ahead() stand for.
  std::vector<TaskId> tasks_ahead() const;
  /// Stages the record of a key for the next commit.
  void put(KeyRecord record);
  /// The task has ended: its key stands for it until `expires_at`. Does nothing if the key stands
  /// for another task now. A damaged record is replaced by a record that says only this, so that
  /// the damage does not prevent the task from ending.
  Result<void> expire(std::uint32_t queue, std::string_view key, TaskId id, WallTime expires_at);

  bool empty() const noexcept { return staged_.empty(); }
  std::vector<KeyRecord> take();

 private:
  Result<std::optional<KeyRecord>> record_of(std::uint32_t queue, std::string_view key);

  Store& store_;
  std::map<std::pair<std::uint32_t, std::string>, KeyRecord> staged_;
  std::uint32_t queue_ahead_ = kNoQueue;
  std::unordered_map<std::string, KeyRecord> ahead_;  // the stored records of read_ahead()
};

}  // namespace detent

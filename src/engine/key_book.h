// Which task a key stands for: the store's records, and what this turn has made of them.
//
// A key is given to a task when it is scheduled and stands for it while the task lives and a while
// after, so that a client that repeats a request gets the first task again (idempotency). Expired
// records stay until the store trims them, and count for nothing here.
//
// A record that can't be read may stand for any task: who schedules with its key, or asks for the
// key's task, gets data_loss, and no task is made. That lasts until the task that has the key ends,
// which writes the record anew, or, when it has ended, until the record is trimmed. Only when that
// task is damaged too, and so never ends, it lasts for good. Thread-compatible.
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

class KeyBook {
 public:
  /// `store` must outlive it.
  explicit KeyBook(Store& store) noexcept : store_(store) {}

  /// The record of a key of a queue (by number) that has not expired. At most one read.
  Result<std::optional<KeyRecord>> find(std::uint32_t queue, std::string_view key, WallTime now);
  /// Reads these keys of a queue at once: until the next commit, or the next call, finding one of
  /// them costs no read. What can't be read now is read then.
  void read_ahead(std::uint32_t queue, std::span<const std::string> keys);
  /// The tasks that the keys of the last read_ahead() stand for.
  std::vector<TaskId> tasks_ahead() const;
  /// From the next commit on the key stands for this.
  void put(KeyRecord record);
  /// The task has ended: its key stands for it until `expires_at`. Does nothing when the key stands
  /// for another task by now. A record that is damaged gives way to one that says no more than
  /// that: whatever it said, it must not keep the task from ending.
  Result<void> expire(std::uint32_t queue, std::string_view key, TaskId id, WallTime expires_at);

  bool empty() const noexcept { return staged_.empty(); }
  std::vector<KeyRecord> take();

 private:
  Result<std::optional<KeyRecord>> record_of(std::uint32_t queue, std::string_view key);

  Store& store_;
  std::map<std::pair<std::uint32_t, std::string>, KeyRecord> staged_;
  std::uint32_t queue_ahead_ = kNoQueue;
  std::unordered_map<std::string, KeyRecord> ahead_;  // of that queue, as the store has them
};

}  // namespace detent

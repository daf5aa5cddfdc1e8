// Whether the keys of a store are sound: the part of check_store() that goes through them.
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <span>
#include <string>
#include <utility>

#include "base/result.h"
#include "store/store.h"
#include "store/store_findings.h"

namespace detent {

/// What a key says is looked at from both sides: the task that has it, and the key that stands for
/// it. A key that expires may outlive its task, and its queue, until it is trimmed; so only of one
/// that does not is it asked whether they are there.
class KeyCheck {
 public:
  /// Both must outlive it.
  KeyCheck(Store& store, StoreFindings& findings) : store_(store), findings_(findings) {}

  /// The queues that there are, by number. Without them nothing is said of a key's queue.
  void set_queues(std::map<std::uint32_t, std::string> names);
  /// That the key of a task which has one, and has not ended, stands for it. `what`: the task, in
  /// words.
  Result<void> check_key_of(const Task& task, std::uint32_t queue, const std::string& what);
  /// Reads all keys of a queue. Requires: check_key_of() was called for all tasks before.
  Result<void> read_keys(std::uint32_t queue);

 private:
  std::string describe(std::uint32_t queue) const;
  std::string describe(const KeyRecord& record) const;
  Result<void> check_expiries(std::uint32_t queue, std::span<const KeyRecord> records);
  void check_own(const KeyRecord& record);
  Result<void> check_tasks_of(std::span<const KeyRecord> records);
  void check_task_of(const KeyRecord& record, const Task& task);

  Store& store_;
  StoreFindings& findings_;
  bool has_queues_ = false;
  std::map<std::uint32_t, std::string> names_;                    // of those
  std::set<std::pair<std::uint32_t, std::string>> damaged_keys_;  // told of with their tasks
};

}  // namespace detent

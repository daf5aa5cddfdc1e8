// Checks the keys of a store. This is a part of check_store().
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

/// Checks keys from both sides: the key of each task, and the task of each key. A key that expires
/// may outlive its task and its queue until it is trimmed. So the check requires a task and a queue
/// only for keys that do not expire.
class KeyCheck {
 public:
  /// Both arguments must outlive this object.
  KeyCheck(Store& store, StoreFindings& findings) : store_(store), findings_(findings) {}

  /// The names of all queues, by number. Without this call, the check does not check whether the
  /// queue of a key exists.
  void set_queues(std::map<std::uint32_t, std::string> names);
  /// Checks that the key of a task stands for the task. Requires: the task has a key and has not
  /// ended. `what` describes the task in findings.
  Result<void> check_key_of(const Task& task, std::uint32_t queue, const std::string& what);
  /// Reads and checks all keys of a queue. Requires: check_key_of() was called for all tasks
  /// before.
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
  std::map<std::uint32_t, std::string> names_;                    // queue names, by number
  std::set<std::pair<std::uint32_t, std::string>> damaged_keys_;  // already a finding of their task
};

}  // namespace detent

// Records the state of tasks as their client knows it: the acknowledged state, and answers that
// were not acknowledged by a commit yet. It does not use the engine. A test compares it with the
// tasks after a restart.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "task/request.h"
#include "task/task.h"

namespace detent {

/// The durable properties of a task that a client can see.
struct KnownTask {
  std::string queue;
  std::string payload;
  std::uint32_t priority = kDefaultPriority;
  std::uint32_t attempts = 0;
  bool is_dead = false;
  WallTime due_at{};  // of a live task; 0 of a dead one

  friend bool operator==(const KnownTask&, const KnownTask&) = default;
};
KnownTask known_task(const TaskSnapshot& view);

class TaskHistory {
 public:
  /// nullopt: the task does not exist.
  using State = std::optional<KnownTask>;

  /// Notes the state after an operation. It is not acknowledged yet. Returns the number of this
  /// change.
  std::uint64_t answered(TaskId id, State state);
  /// The commit of this change has succeeded. Must be called in the order of the numbers.
  void acknowledged(std::uint64_t change);

  /// Returns the state after the last answer.
  State latest(TaskId id) const;
  /// Returns the tasks that exist after the last answers, sorted by id.
  std::vector<TaskId> present() const;
  /// Returns true if a change of this task was acknowledged, or if a restart has shown the task.
  bool knows(TaskId id) const { return acknowledged_.contains(id); }

  /// Compares this history with the tasks after a restart, and continues from the tasks that were
  /// found. Returns the contradictions: tasks that were lost, came back or changed. For an answer
  /// that was not acknowledged, both outcomes are right, but all changes of one batch must have the
  /// same outcome.
  std::vector<std::string> compare(const std::function<State(TaskId)>& look_up);

 private:
  struct Change {
    TaskId id;
    State state;
  };
  std::map<TaskId, State> acknowledged_;
  std::map<std::uint64_t, Change> in_doubt_;  // by number
  std::uint64_t last_change_ = 0;
};

}  // namespace detent

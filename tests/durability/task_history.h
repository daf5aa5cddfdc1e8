// What the outside knows of its tasks: what was acknowledged, and what was answered and not yet
// acknowledged when everything stopped. Plain bookkeeping, without the engine, to hold against what
// a restart brings back.
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

/// What may be seen of a task from outside and must be durable.
struct KnownTask {
  std::string queue;
  std::string payload;
  std::uint32_t priority = kDefaultPriority;
  std::uint32_t attempts = 0;
  bool is_dead = false;
  WallTime due_at{};  // while it lives

  friend bool operator==(const KnownTask&, const KnownTask&) = default;
};
KnownTask known_task(const TaskSnapshot& view);

class TaskHistory {
 public:
  /// None: there is no such task.
  using State = std::optional<KnownTask>;

  /// A verb left the task so; the answer is not acknowledged. Returns the number of this change.
  std::uint64_t answered(TaskId id, State state);
  /// The commit after the verb has succeeded. In the order of the numbers.
  void acknowledged(std::uint64_t change);

  /// As the last answer left it.
  State latest(TaskId id) const;
  /// Those that are there as far as the answers say, by id.
  std::vector<TaskId> present() const;
  /// Whether anybody was told of this task.
  bool knows(TaskId id) const { return acknowledged_.contains(id); }

  /// Holds this history against what is there after a restart, and goes on from that. Returns what
  /// contradicts it: a task lost, come back, or another than it was. Where an answer was not
  /// acknowledged both outcomes are right, but one batch is there as a whole or not at all.
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

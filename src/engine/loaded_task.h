// A task in memory. It has only the fields that decide when, and in which order, the task is handed
// out. The payload and the rules stay in the store. loaded_tasks.h owns these tasks, and queue.h
// describes their queue.
#pragma once

#include <cstdint>

#include "detent/clock.h"
#include "detent/tick.h"
#include "engine/held_time.h"
#include "store/store.h"
#include "task/lifecycle.h"
#include "task/task.h"

namespace detent {

struct Queue;
struct ReadyTasks;

struct LoadedTask {
  std::uint32_t index = 0;  // in its slab, and its timer's in its wheel: LoadedTasks
  std::uint32_t priority = 0;
  Place place = {};
  WallTime due_at{};
  WallTime created_at{};
  Tick tick = 0;                            // when it becomes ready; not when its lease runs out
  MonotonicTime ready_since{};              // while it is ready
  HeldTime::Duration held_before_ready{0};  // LatenessAccount::held_total() of then
  Queue* queue = nullptr;
  std::uint64_t lease = 0;     // the token's number, while leased
  std::uint32_t attempts = 0;  // that have ended
  std::uint32_t payload_bytes = 0;
  TaskState state = TaskState::scheduled;
  std::uint8_t wheel = 0;     // that its timer is in, or was in last: TaskTimers
  bool follows_wall = false;  // was scheduled for a date, so moves when the wall clock is stepped
  bool has_key = false;
  bool has_webhook = false;  // of its own
  bool is_orphan = false;    // was found to be one

  TaskId id() const noexcept { return place.id; }
  /// Those it is one of when it is ready.
  ReadyTasks& ready_tasks() const noexcept;
  /// Where it lies, or would lie, in its ready lane.
  Place ready_place() const noexcept;
  /// Before those of the default priority.
  bool is_urgent() const noexcept { return priority < kDefaultPriority; }
};

/// The order in which ready tasks of a queue are handed out.
struct ReadyOrder {
  bool operator()(const LoadedTask* a, const LoadedTask* b) const noexcept {
    if (a->priority != b->priority) return a->priority < b->priority;
    if (a->due_at != b->due_at) return a->due_at < b->due_at;
    return a->id() < b->id();
  }
};

}  // namespace detent

// A task in memory. It has only the fields that decide when, and in which order, the task is handed
// out. The payload and the rules stay in the store. loaded_tasks.h owns these tasks, and queue.h
// describes their queue.
#pragma once

#include <cstdint>

#include "detent/clock.h"
#include "detent/tick.h"
#include "engine/values/held_time.h"
#include "store/store.h"
#include "task/lifecycle.h"
#include "task/task.h"

namespace detent {

struct Queue;
struct ReadyTasks;

struct LoadedTask {
  std::uint32_t index = 0;  // in the slab of LoadedTasks, and of its timer in its wheel
  std::uint32_t priority = 0;
  Place place = {};
  WallTime due_at{};
  WallTime created_at{};
  Tick tick = 0;                            // when it becomes ready; not when its lease expires
  MonotonicTime ready_since{};              // when it became ready
  HeldTime::Duration held_before_ready{0};  // LatenessAccount::held_total() at that time
  Queue* queue = nullptr;
  std::uint64_t lease = 0;     // the number of its lease token, while it is leased
  std::uint32_t attempts = 0;  // attempts that have ended
  std::uint32_t payload_bytes = 0;
  TaskState state = TaskState::scheduled;
  std::uint8_t wheel = 0;     // the wheel of TaskTimers that has its timer, or had its last timer
  bool follows_wall = false;  // it has a date, so its tick changes when the wall clock is stepped
  bool has_key = false;
  bool has_webhook = false;  // its own webhook, not the webhook of its queue
  bool is_orphan = false;    // OrphanLook has found and counted it

  TaskId id() const noexcept { return place.id; }
  /// The ready tasks of its queue that it belongs to when it is ready.
  ReadyTasks& ready_tasks() const noexcept;
  /// Its place in its ready lane, whether it is in the lane or not.
  Place ready_place() const noexcept;
  /// Whether it comes before tasks of the default priority.
  bool is_urgent() const noexcept { return priority < kDefaultPriority; }
};

/// The order in which ready tasks of a queue are handed out. A ready lane of the store has the same
/// order (Place in store.h).
struct ReadyOrder {
  bool operator()(const LoadedTask* a, const LoadedTask* b) const noexcept {
    if (a->priority != b->priority) return a->priority < b->priority;
    if (a->due_at != b->due_at) return a->due_at < b->due_at;
    return a->id() < b->id();
  }
};

}  // namespace detent

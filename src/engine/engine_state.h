// What the engine keeps of a task, a queue and a waiting worker in memory, and what several of its
// verbs refuse. Private to engine*.cc.
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <string>

#include "engine/engine.h"

namespace detent {

/// A task of the load window. Its payload and rules stay in the store.
struct Engine::LoadedTask {
  std::uint32_t index = 0;  // in loaded_, and its timer's in due_wheel_
  std::uint32_t priority = 0;
  DueKey place;
  WallTime due_at{};
  Tick tick = 0;  // when it becomes ready; not when its lease runs out
  Queue* queue = nullptr;
  std::uint32_t attempts = 0;  // that have ended
  std::uint32_t max_attempts = 0;
  TaskState state = TaskState::scheduled;
  bool follows_wall = false;  // was scheduled for a date, so moves when the wall clock is stepped
  std::uint64_t lease = 0;    // the token's number, while leased

  TaskId id() const noexcept { return place.id; }
};

struct Engine::Queue {
  explicit Queue(std::string queue_name) : counts{.queue = std::move(queue_name)} {}

  QueueCounts counts;           // as staged
  bool counts_changed = false;  // is in changed_counts_
  bool had_tasks = false;       // the store knows it, or will
  bool to_serve = false;        // is in to_serve_
  std::uint64_t leased = 0;
  std::set<LoadedTask*, ReadyOrder> ready;
  std::map<WaitId, Wait*> waits;  // in the order in which they came
};

/// A task wherever it is.
struct Engine::Found {
  StoredTask stored;  // as staged
  TaskState state = TaskState::scheduled;
  LoadedTask* loaded = nullptr;  // null: it is on disk only
};

/// A worker that waits for a task.
struct Engine::Wait {
  std::uint32_t index = 0;  // in waits_, and its timer's in wait_wheel_
  WaitId id = 0;
  Queue* queue = nullptr;
  LeaseRequest request;
  LeaseDone done;
};

/// A due time that a new task may not have is none for another either.
Result<void> validate_due(const Due& due);
/// The conflict of who is not the holder of its lease.
Error is_leased(TaskId id);

}  // namespace detent

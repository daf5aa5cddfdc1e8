// What the engine keeps of a task, a queue, a lease and a waiting worker in memory, and what its
// verbs refuse. Private to engine*.cc.
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <utility>

#include "engine/engine.h"
#include "engine/hand_out_rate.h"

namespace detent {

// The memory is shared out in eighths: pages fill it up to six, so that new tasks that are due soon
// find room; ready tasks take at most three, or they spill; leased ones, which cannot leave it, at
// most two. So however long the backlog, one eighth at least is left to go on with the due order.
inline constexpr std::size_t kMemoryParts = 8;
inline constexpr std::size_t kPageParts = 6;
inline constexpr std::size_t kReadyParts = 3;
inline constexpr std::size_t kLeasedParts = 2;
static_assert(kReadyParts + kLeasedParts < kPageParts);

/// The end of the load window of a queue that is not cut, as far as it is the queue's own.
inline constexpr Place kNotCut = end_of(Lane::due);

/// A task of the load window, or at the head of a ready lane. Its payload and rules stay in the
/// store.
struct Engine::LoadedTask {
  std::uint32_t index = 0;  // in loaded_, and its timer's in due_wheel_
  std::uint32_t priority = 0;
  Place place = {};
  WallTime due_at{};
  WallTime created_at{};
  Tick tick = 0;  // when it becomes ready; not when its lease runs out
  Queue* queue = nullptr;
  std::uint64_t lease = 0;     // the token's number, while leased
  std::uint32_t attempts = 0;  // that have ended
  std::uint32_t payload_bytes = 0;
  TaskState state = TaskState::scheduled;
  bool follows_wall = false;  // was scheduled for a date, so moves when the wall clock is stepped
  bool has_key = false;

  TaskId id() const noexcept { return place.id; }
  /// Where it lies, or would lie, in its queue's ready lane.
  Place ready_place() const noexcept;
  /// Before those of the default priority.
  bool is_urgent() const noexcept { return priority < kDefaultPriority; }
};

struct Engine::Queue {
  explicit Queue(std::string queue_name) { record.queue = std::move(queue_name); }

  QueueRecord record;       // as staged; its number is 0 until there is something to store
  bool is_changed = false;  // is in changed_queues_
  bool to_serve = false;    // is in to_serve_
  Tick serve_at = 0;        // is in serve_at_, unless 0
  std::size_t loaded = 0;   // tasks in memory: scheduled, ready and leased ones
  std::uint64_t leased = 0;
  std::uint64_t accepted = 0;  // since the start
  std::size_t urgent = 0;      // of `ready`
  Tick paused_until = 0;
  std::chrono::milliseconds pause{0};  // how long that was, when it began
  HandOutRate rate;
  Place cut_to = kNotCut;  // invariant 1: where its window ends, if not with the others'
  std::set<LoadedTask*, ReadyOrder> ready;
  Place head_to = {};                  // invariant 1; in the ready lane
  std::uint64_t loaded_from_lane = 0;  // tasks in memory whose place is in the ready lane
  std::map<WaitId, Wait*> waits;       // in the order in which they came

  bool is_cut() const noexcept { return cut_to != kNotCut; }
  std::size_t in_memory() const noexcept { return loaded; }
  std::size_t scheduled() const noexcept { return loaded - ready.size() - leased; }
  std::size_t ready_in_memory() const noexcept { return ready.size(); }
};

inline Place Engine::LoadedTask::ready_place() const noexcept {
  return {.lane = Lane::ready,
          .queue = queue->record.number,
          .priority = priority,
          .at = due_at,
          .id = place.id};
}

/// An open lease.
struct Engine::Lease {
  LoadedTask* task = nullptr;
  WallTime since{};
  std::string worker;
  RunOut run_out = RunOut::fails;
};

/// A task wherever it is.
struct Engine::Found {
  StoredTask stored;  // as staged
  TaskState state = TaskState::scheduled;
  LoadedTask* loaded = nullptr;  // null: it is on disk only
};

/// A part of the list of tasks: all that there are after some place, up to and with `until`.
struct Engine::Stretch {
  std::vector<StoredTask> tasks;  // in any order
  Place until;                    // as a place of the list
  bool is_last = false;           // nothing comes after it
};

/// A worker that waits for a task.
struct Engine::Wait {
  std::uint32_t index = 0;  // in waits_, and its timer's in wait_wheel_
  WaitId id = 0;
  std::vector<Queue*> queues = {};
  LeaseRequest request = {};
  LeaseDone done = {};
};

/// The conflict of who may not do this to a task as it is: leased by somebody, or ended.
Error not_allowed(TaskId id, TaskState state);

}  // namespace detent

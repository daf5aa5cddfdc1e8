// What the engine keeps of a task, a queue, a lease and a waiting worker in memory, and what its
// verbs refuse. Private to engine*.cc.
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <utility>

#include "engine/change_feed.h"
#include "engine/engine.h"
#include "engine/hand_out_rate.h"
#include "engine/held_time.h"

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
  Tick tick = 0;                            // when it becomes ready; not when its lease runs out
  MonotonicTime ready_since{};              // while it is ready
  HeldTime::Duration held_before_ready{0};  // held_total() of then
  Queue* queue = nullptr;
  std::uint64_t lease = 0;     // the token's number, while leased
  std::uint32_t attempts = 0;  // that have ended
  std::uint32_t payload_bytes = 0;
  TaskState state = TaskState::scheduled;
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

/// The ready tasks of a queue that have a webhook of their own, or those that have none: each with
/// a lane of their own on disk, so that neither hides the other.
struct Engine::ReadyTasks {
  explicit ReadyTasks(std::uint64_t& in_lane_of_record) noexcept : in_lane(in_lane_of_record) {}

  std::uint64_t& in_lane;  // tasks in the lane, as the queue's record counts them
  std::uint32_t lane = 0;  // its number, which is Place::queue
  std::set<LoadedTask*, ReadyOrder> in_memory;
  Place head_to = {};                  // invariant 1; in the lane
  std::uint64_t loaded_from_lane = 0;  // tasks in memory whose place is in the lane

  /// Starts with an empty head.
  void begin(std::uint32_t number) noexcept {
    lane = number;
    head_to = begin_of(Lane::ready, number);
  }
  /// How many there are on disk only.
  std::uint64_t spilled() const noexcept { return in_lane - loaded_from_lane; }
  bool is_spilled() const noexcept { return in_lane > loaded_from_lane; }
  bool empty() const noexcept { return in_memory.empty() && !is_spilled(); }
};

struct Engine::Queue {
  explicit Queue(std::string queue_name) { record.queue = std::move(queue_name); }

  QueueRecord record;         // as staged; its number is 0 until there is something to store
  StoredCounts counted;       // of the record, in Engine::counted_
  bool is_changed = false;    // is in changed_queues_
  bool to_serve = false;      // is in to_serve_
  bool to_deliver = false;    // is in to_deliver_ or held_
  bool is_held = false;       // is in held_
  bool had_webhooks = false;  // tasks with one of their own, since the start
  Tick serve_at = 0;          // is in serve_at_, unless 0
  std::size_t loaded = 0;     // tasks in memory: scheduled, ready and leased ones
  std::uint64_t leased = 0;
  std::uint64_t accepted = 0;  // since the start
  std::size_t urgent = 0;      // ready in memory, before the default priority
  Tick paused_until = 0;
  std::chrono::milliseconds pause{0};  // how long that was, when it began
  HandOutRate rate;
  HeldTime held;           // by its own limits
  Place cut_to = kNotCut;  // invariant 1: where its window ends, if not with the others'
  ReadyTasks ready{record.in_ready_lane};
  ReadyTasks webhooks{record.in_webhook_lane};  // with one of their own
  std::map<WaitId, Wait*> waits;                // in the order in which they came

  void set_number(std::uint32_t number) noexcept {
    record.number = number;
    ready.begin(number);
    webhooks.begin(number | kWebhookLane);
  }
  ReadyTasks& ready_of(const Task& task) noexcept {
    return task.webhook.empty() ? ready : webhooks;
  }
  /// Requires: the place is in a ready lane.
  ReadyTasks& ready_at(const Place& place) noexcept {
    return (place.queue & kWebhookLane) == 0 ? ready : webhooks;
  }
  /// Whether there is a ready task for workers, or one for the deliverer.
  bool has_work() const noexcept { return !record.settings.webhook && !ready.empty(); }
  bool has_deliveries() const noexcept {
    return !webhooks.empty() || (record.settings.webhook && !ready.empty());
  }
  bool is_cut() const noexcept { return cut_to != kNotCut; }
  std::size_t in_memory() const noexcept { return loaded; }
  std::size_t scheduled() const noexcept { return loaded - ready_in_memory() - leased; }
  std::size_t ready_in_memory() const noexcept {
    return ready.in_memory.size() + webhooks.in_memory.size();
  }
};

inline Engine::ReadyTasks& Engine::LoadedTask::ready_tasks() const noexcept {
  return has_webhook ? queue->webhooks : queue->ready;
}

inline Place Engine::LoadedTask::ready_place() const noexcept {
  return {.lane = Lane::ready,
          .queue = ready_tasks().lane,
          .priority = priority,
          .at = due_at,
          .id = place.id};
}

inline void Engine::tell(TaskId id, const Queue& queue, TaskEvent event, TaskState state) {
  if (options_.changes == nullptr || !options_.changes->is_watched()) return;
  options_.changes->note({.id = id,
                          .queue = queue.record.queue,
                          .event = event,
                          .state = state,
                          .at = time_.wall_now()});
}

/// An open lease.
struct Engine::Lease {
  LoadedTask* task = nullptr;
  std::uint64_t epoch = 0;  // of the engine that gave the token: this one, or one before
  WallTime since{};
  std::string worker;
  RunOut run_out = RunOut::fails;
  LatenessParts late = {};
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

/// The deliverer, when it waits.
struct Engine::DeliveryWait {
  DeliveryRequest request;
  HeldWebhooks held;
  DeliveriesDone done;
};

/// A worker that waits for a task.
struct Engine::Wait {
  std::uint32_t index = 0;  // in waits_, and its timer's in wait_wheel_
  WaitId id = 0;
  std::vector<Queue*> queues = {};
  LeaseRequest request = {};
  LeaseDone done = {};
};

template <class T>
void Engine::answer_after_commit(UniqueFunction<void(Result<T>)> done, Result<T> answer) {
  after_commit(
      [done = std::move(done), answer = std::move(answer)](const Result<void>& committed) mutable {
        if (!committed) {
          done(committed.error());
        } else {
          done(std::move(answer));
        }
      });
}

/// The conflict of who may not do this to a task as it is: leased by somebody, or ended.
Error not_allowed(TaskId id, TaskState state);

}  // namespace detent

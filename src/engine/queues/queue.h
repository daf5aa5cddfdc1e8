// A queue in memory: its record, its ready tasks, the waiting workers, and its positions in the
// rings of the engine.
//
// The ready tasks are in two orders: tasks with their own webhook, and all other tasks. Each order
// has a lane on disk and keeps the head of the lane in memory. So changing the webhook of the queue
// moves no task, and one kind of task does not delay the other kind. hand_out_turns.h describes the
// receiver of each kind.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>

#include "detent/check.h"
#include "detent/clock.h"
#include "detent/tick.h"
#include "engine/queues/hand_out_rate.h"
#include "engine/queues/loaded_task.h"
#include "engine/values/held_time.h"
#include "store/store.h"
#include "task/task.h"
#include "task/task_stats.h"

namespace detent {

struct WorkerWait;
/// The id of a wait of a worker. An id is used only once.
using WaitId = std::uint64_t;

/// The `cut_to` of a queue that is not cut.
inline constexpr Place kNotCut = end_of(Lane::due);

/// The greatest place before `place`. Requires: the id of `place` is not 0.
inline Place just_before(Place place) noexcept {
  DETENT_CHECK(place.id.value > 0);
  --place.id.value;
  return place;
}

/// The fields of the queue records that are summed over all queues.
struct QueueCounts {
  std::uint64_t waiting = 0;
  std::uint64_t dead = 0;
  std::uint64_t in_lanes = 0;
};

/// One of the two orders of a queue's ready tasks.
struct ReadyTasks {
  explicit ReadyTasks(std::uint64_t& in_lane_of_record) noexcept : in_lane(in_lane_of_record) {}

  std::uint64_t& in_lane;  // tasks in the lane, as the queue's record counts them
  std::uint32_t lane = 0;  // its number, which is Place::queue
  std::set<LoadedTask*, ReadyOrder> in_memory;
  Place head_to = {};                  // invariant 1 of load_window.h; in the lane
  std::uint64_t loaded_from_lane = 0;  // tasks in memory whose place is in the lane

  /// A record leaves the lane.
  void take_from_lane() noexcept {
    DETENT_CHECK(in_lane > 0);
    --in_lane;
  }
  /// Starts with an empty head.
  void begin(std::uint32_t number) noexcept {
    lane = number;
    head_to = begin_of(Lane::ready, number);
  }
  /// The number of ready tasks that are only on disk.
  std::uint64_t spilled() const noexcept { return in_lane - loaded_from_lane; }
  bool is_spilled() const noexcept { return in_lane > loaded_from_lane; }
  bool empty() const noexcept { return in_memory.empty() && !is_spilled(); }
  /// The place of a task in the lane. `due` has the due time and the id of the task.
  Place place_of(const Task& task, const Place& due) const noexcept {
    return {.lane = Lane::ready,
            .queue = lane,
            .priority = task.rules.priority,
            .at = due.at,
            .id = due.id};
  }
  /// Whether a task with this place in the lane comes before some task in memory.
  bool is_more_urgent(const Place& place) const noexcept;
  /// Moves the end of the head before `place`, so that tasks from `place` on come from the lane.
  /// Requires: `place` is not at the head, and the task is not yet counted in the lane.
  void put_behind_head(const Place& place) noexcept {
    head_to = is_spilled() ? std::min(head_to, just_before(place)) : just_before(place);
  }
  /// Whether no task on disk comes before this ready task.
  bool is_at_head(const LoadedTask& task) const noexcept {
    return !is_spilled() || task.ready_place() <= head_to;
  }
  /// The most urgent task. Null if there is no task in memory, or if a task on disk comes before.
  LoadedTask* head() const noexcept {
    if (in_memory.empty() || !is_at_head(**in_memory.begin())) return nullptr;
    return *in_memory.begin();
  }
};

struct Queue {
  explicit Queue(std::string queue_name) { record.queue = std::move(queue_name); }

  // QueueRegistry's.
  QueueRecord record;          // as staged; its number is 0 until it must be stored
  QueueCounts counted;         // the counts that the sums over all queues include
  bool is_changed = false;     // since the last commit
  std::size_t size_place = 0;  // index of its size in QueueRegistry

  // HandOutTurns'.
  bool to_serve = false;        // is in the ring of the workers
  bool to_deliver = false;      // is in the ring of the deliverer
  std::uint64_t held_turn = 0;  // is held for the deliverer, unless 0
  Tick serve_at = 0;            // a limit holds it back until this tick, unless 0

  // TaskNews'.
  TaskCounters* counters = nullptr;  // since the start; null until the first event

  // QueueHistories'.
  std::uint64_t history = 0;        // number of its history; 0, or of no history any more: none
  std::uint32_t history_index = 0;  // where the history is

  // LoadedTasks' and the LoadWindow's.
  bool had_webhooks = false;  // has had tasks with their own webhook, since the start
  std::size_t loaded = 0;     // tasks in memory: scheduled, ready and leased ones
  std::uint64_t leased = 0;
  std::uint64_t accepted = 0;      // since the start
  std::size_t urgent = 0;          // ready tasks in memory, more urgent than the default priority
  std::size_t among_ready_at = 0;  // index in LoadedTasks::queues_with_ready()
  std::optional<MonotonicTime> handed_out_at = {};  // the last task, since the start
  Place cut_to = kNotCut;                           // where its load window ends, if it is cut
  std::uint8_t wheel = 0;  // the wheel of TaskTimers for the timers of its tasks
  ReadyTasks ready{record.in_ready_lane};
  ReadyTasks webhooks{record.in_webhook_lane};  // the ready tasks with their own webhook

  // Its limits and waiting workers.
  Tick paused_until = 0;
  std::chrono::milliseconds pause{0};  // the whole length of this pause
  HandOutRate rate;
  HeldTime held;                        // runs while its own limits hold its tasks back
  std::map<WaitId, WorkerWait*> waits;  // in order of arrival

  void set_number(std::uint32_t number) noexcept {
    DETENT_CHECK(loaded == 0);  // no task in memory has a place in a lane of another number
    record.number = number;
    ready.begin(number);
    webhooks.begin(number | kWebhookLane);
  }
  ReadyTasks& ready_of(const Task& task) noexcept {
    return task.webhook.empty() ? ready : webhooks;
  }
  const ReadyTasks& ready_of(const Task& task) const noexcept {
    return task.webhook.empty() ? ready : webhooks;
  }
  /// Requires: the place is in a ready lane.
  ReadyTasks& ready_at(const Place& place) noexcept {
    return (place.queue & kWebhookLane) == 0 ? ready : webhooks;
  }
  /// Whether there is a ready task for workers. has_deliveries() is the same for the deliverer.
  bool has_work() const noexcept { return !record.settings.webhook && !ready.empty(); }
  bool has_deliveries() const noexcept {
    return !webhooks.empty() || (record.settings.webhook && !ready.empty());
  }
  /// Whether its limit of leased tasks is reached.
  bool awaits_a_lease() const noexcept {
    return record.settings.concurrency && leased >= *record.settings.concurrency;
  }
  bool is_held() const noexcept { return held_turn != 0; }
  bool is_cut() const noexcept { return cut_to != kNotCut; }
  std::size_t in_memory() const noexcept { return loaded; }
  std::size_t scheduled() const noexcept { return loaded - ready_in_memory() - leased; }
  std::size_t ready_in_memory() const noexcept {
    return ready.in_memory.size() + webhooks.in_memory.size();
  }
  /// The scheduled tasks in memory and on disk.
  std::uint64_t scheduled_count() const noexcept { return record.waiting - ready_count() - leased; }
  /// The ready tasks in memory and on disk.
  std::uint64_t ready_count() const noexcept {
    return ready_in_memory() + ready.spilled() + webhooks.spilled();
  }
};

inline ReadyTasks& LoadedTask::ready_tasks() const noexcept {
  return has_webhook ? queue->webhooks : queue->ready;
}

inline Place LoadedTask::ready_place() const noexcept {
  return {.lane = Lane::ready,
          .queue = ready_tasks().lane,
          .priority = priority,
          .at = due_at,
          .id = place.id};
}

inline bool ReadyTasks::is_more_urgent(const Place& place) const noexcept {
  return !in_memory.empty() && place < (*in_memory.rbegin())->ready_place();
}

}  // namespace detent

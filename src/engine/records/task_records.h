// The records of tasks as of this turn: the records of the store, and above them the staged
// records, which the next commit makes durable.
//
// Every change of a live task's record goes through put() and erase(), which also count the records
// in the lanes of its queue. Callers keep the other counts of the queue; for a task that leaves its
// queue, uncount() does it. The changed keys, schedules and due counts are in the same batch. A
// crash leaves the whole batch or no part of it, so the counts of a queue and the forecast are
// exact after a crash.
//
// Invariant: no ended task is at or before `forgotten_to_`. The search for expired ended tasks
// begins there, behind the removed tasks, because a store may have to walk over removed records.
// Thread-compatible.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <unordered_map>
#include <vector>

#include "base/result.h"
#include "detent/check.h"
#include "engine/queues/queue_registry.h"
#include "engine/records/commit_writer.h"
#include "engine/records/due_histogram.h"
#include "engine/records/key_index.h"
#include "engine/records/staging.h"
#include "engine/records/task_news.h"
#include "engine/schedules/schedule_registry.h"
#include "store/store.h"

namespace detent {

class TaskRecords {
 public:
  /// All references must outlive this object. `last_id` is the highest id that was ever given out.
  TaskRecords(Store& store, QueueRegistry& queues, TaskNews& news, CommitWriter& writer,
              TaskId last_id) noexcept
      : store_(store),
        queues_(queues),
        news_(news),
        writer_(writer),
        keys_(store),
        last_id_(last_id) {}

  /// Gives a task of the queue this record. `from` is the place that it leaves (empty for a new
  /// task).
  void put(Queue& queue, std::optional<Place> from, StoredTask to);
  /// Removes the record of a task of the queue.
  void erase(Queue& queue, Place from);
  /// Removes a live task from the counts of its queue and from the forecast.
  void uncount(Queue& queue, TaskId id, WallTime due_at, WallTime created_at,
               std::size_t payload_bytes);
  /// Moves records that cannot be read to the quarantine, in one synced write.
  void set_aside(std::span<const Place> places);

  /// Reads the records of these tasks. An element is an error if this record cannot be read. The
  /// whole call is an error if the store failed.
  Result<std::vector<Result<Task>>> read_all(const std::vector<LoadedTask*>& tasks);
  /// The record of a task in any lane; empty if there is no such task.
  Result<std::optional<StoredTask>> find(TaskId id);
  /// Whether the task has a record, even if the record cannot be read.
  bool is_there(TaskId id);
  /// As Engine::read_ahead().
  void read_ahead(std::span<const TaskId> ids);
  const Staging& staged() const noexcept { return staging_; }
  /// Whether a task was changed in this turn. A page of the store then shows its old record.
  bool is_staged(TaskId id) const noexcept { return staging_.find(id) != nullptr; }

  /// Whether a staged write or a write in progress changes the task.
  bool is_changing(TaskId id) const noexcept {
    return is_staged(id) || (writer_.is_writing() && staging_.was_taken(id));
  }

  KeyIndex& keys() noexcept { return keys_; }
  ScheduleRegistry& schedules() noexcept { return schedules_; }
  const ScheduleRegistry& schedules() const noexcept { return schedules_; }
  DueHistogram& due_counts() noexcept { return due_counts_; }
  const DueHistogram& due_counts() const noexcept { return due_counts_; }

  /// The highest id given out so far.
  TaskId last_id() const noexcept { return last_id_; }
  /// Requires: no id was given out above `id`.
  void note_id(TaskId id) noexcept {
    DETENT_CHECK(id >= last_id_);
    last_id_ = id;
  }

  /// Writes the staged records, whose changes will be acknowledged. Errors: as
  /// CommitWriter::commit().
  Result<void> commit();
  /// Writes the moves between lanes since the commit. No client was told of these moves. If a crash
  /// undoes them, the tasks are at their old places.
  Result<void> write_moved();

  /// Removes expired keys and expired ended tasks, at most `limit` of each. The removed tasks are
  /// staged for the next commit. Returns whether there may be more. Errors: the store failed.
  Result<bool> forget_ended(WallTime now, std::size_t limit);
  const Place& forgotten_to() const noexcept { return forgotten_to_; }

 private:
  WriteBatch take_staged();
  bool is_at_hand(TaskId id) const noexcept { return is_staged(id) || ahead_.contains(id.value); }

  Store& store_;
  QueueRegistry& queues_;
  TaskNews& news_;
  CommitWriter& writer_;

  Staging staging_;
  KeyIndex keys_;
  ScheduleRegistry schedules_;
  DueHistogram due_counts_;
  TaskId last_id_;
  Place forgotten_to_ = begin_of(Lane::ended);
  // The records of the last read_ahead(). They are valid until the next write.
  std::unordered_map<std::uint64_t, StoredTask> ahead_;
};

}  // namespace detent

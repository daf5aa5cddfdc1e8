// The records of tasks as this turn has left them: what the store holds, and over it what is staged
// and becomes durable with the next commit.
//
// Every change of a record goes through put() and erase(), which keep the counts of its queue; a
// task that leaves its queue also through uncount(). With them, in the same batch, go the changed
// keys, schedules and due counts. So what a queue's record and the forecast say is exact after a
// crash, which leaves all of a batch or nothing.
//
// Invariant: no task that is kept after its end lies at or before `forgotten_to_`. So a look for
// those whose time is over begins behind all that were removed, which a store may have to walk
// over. Thread-compatible.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <unordered_map>
#include <vector>

#include "base/result.h"
#include "engine/commit_writer.h"
#include "engine/due_histogram.h"
#include "engine/key_book.h"
#include "engine/queue_book.h"
#include "engine/schedule_book.h"
#include "engine/staging.h"
#include "engine/task_news.h"
#include "store/store.h"

namespace detent {

class TaskRecords {
 public:
  /// All must outlive it. `last_id` is the highest that was ever given out.
  TaskRecords(Store& store, QueueBook& queues, TaskNews& news, CommitWriter& writer,
              TaskId last_id) noexcept
      : store_(store),
        queues_(queues),
        news_(news),
        writer_(writer),
        keys_(store),
        last_id_(last_id) {}

  /// A task of the queue gets this record; `from` is the place it leaves (none for a new task).
  void put(Queue& queue, std::optional<Place> from, StoredTask to);
  /// The task of the queue at this place is removed.
  void erase(Queue& queue, Place from);
  /// A live task leaves its queue: its counts and the forecast's.
  void uncount(Queue& queue, TaskId id, WallTime due_at, WallTime created_at,
               std::size_t payload_bytes);
  /// Records that cannot be read go to the quarantine, in one synced write.
  void set_aside(std::span<const Place> places);

  /// The record of each of these. Errors of one: that it cannot be read; of all: the store's.
  Result<std::vector<Result<Task>>> read_all(const std::vector<LoadedTask*>& tasks);
  /// Wherever it lies; none when there is none.
  Result<std::optional<StoredTask>> find(TaskId id);
  /// Whether there is one, also when it can't be read.
  bool is_there(TaskId id);
  /// As Engine::read_ahead().
  void read_ahead(std::span<const TaskId> ids);
  const Staging& staged() const noexcept { return staging_; }
  /// Whether a task was changed in this turn, so that a page of the store shows it as it was.
  bool is_staged(TaskId id) const noexcept { return staging_.find(id) != nullptr; }

  /// The same, or while a batch is being written it is in that.
  bool is_changing(TaskId id) const noexcept {
    return is_staged(id) || (writer_.is_writing() && staging_.was_taken(id));
  }

  KeyBook& keys() noexcept { return keys_; }
  ScheduleBook& schedules() noexcept { return schedules_; }
  const ScheduleBook& schedules() const noexcept { return schedules_; }
  DueHistogram& due_counts() noexcept { return due_counts_; }
  const DueHistogram& due_counts() const noexcept { return due_counts_; }

  /// The highest id given out so far.
  TaskId last_id() const noexcept { return last_id_; }
  void note_id(TaskId id) noexcept { last_id_ = id; }

  /// Writes what is staged, to be acknowledged then. Errors: as CommitWriter::commit().
  Result<void> commit();
  /// Writes what moved between the lanes since the commit. Nobody was told of it, and a crash that
  /// takes it back leaves the tasks where they were.
  Result<void> write_moved();

  /// Forgets, at most `limit` each, keys whose time is over, and tasks kept after their end; what
  /// of the tasks is staged goes with the next commit. Answers whether there may be more. Errors:
  /// the store failed.
  Result<bool> forget_ended(WallTime now, std::size_t limit);
  const Place& forgotten_to() const noexcept { return forgotten_to_; }

 private:
  WriteBatch take_staged();
  bool is_at_hand(TaskId id) const noexcept { return is_staged(id) || ahead_.contains(id.value); }

  Store& store_;
  QueueBook& queues_;
  TaskNews& news_;
  CommitWriter& writer_;

  Staging staging_;
  KeyBook keys_;
  ScheduleBook schedules_;
  DueHistogram due_counts_;
  TaskId last_id_;
  Place forgotten_to_ = begin_of(Lane::ended);
  // Of the last read_ahead(), as the store has them until it is written to.
  std::unordered_map<std::uint64_t, StoredTask> ahead_;
};

}  // namespace detent

// The durable home of tasks: one interface, several back ends (memory here, rocksdb/ beside).
//
// A store keeps each task's record at a **place**. Places lie in lanes, each a sorted order: all
// live tasks of all queues by due time (the due order); of each queue, what became ready beyond the
// memory budget, most urgent first; its dead tasks; and tasks kept after their end. Pages are read
// by place, never by offset. Where a task lies is the engine's to decide; reading removes nothing.
//
// Contract, for every back end (tests/contract/store_contract_test.cc runs it over each):
//  1. write() applies a batch as a whole or not at all. With Durability::synced it, and every batch
//     before it, survives power loss once write() has returned ok; with buffered it survives a
//     crash of the process. An empty synced batch makes durable what was buffered.
//  2. After an error from write() the batch may be there or not, as a whole: the outcome is
//     unknown. Every later write fails too, until the store is opened again.
//  3. Reads see every batch that was written before, nothing of one that failed for certain.
//  4. A record reads back byte for byte, or as ErrorCode::data_loss: never as something else.
//  5. last_id() is the highest id that a batch ever put, or named as last_id, whatever became of
//     the task.
//  6. begin_epoch() gives a number higher than any earlier call ever gave, durably.
//  7. One process at a time: opening a store that is open elsewhere fails with `unavailable`.
//  8. identity() is made at random when the store is, the same at each open, and no other store's
//     but a copy's.
// Confined to one thread, but for what a back end does on threads of its own.
#pragma once

#include <compare>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.h"
#include "detent/clock.h"
#include "task/due_bin.h"
#include "task/queue_settings.h"
#include "task/recurring_schedule.h"
#include "task/task.h"

namespace detent {

/// A sorted order of tasks. `due` and `ended` are one for all queues, the others one a queue.
enum class Lane : std::uint8_t { due, ready, dead, ended };

/// The ready lane of a queue's tasks with a webhook of their own: the queue's number and this. They
/// are for another taker than the rest, and neither may hide the other.
inline constexpr std::uint32_t kWebhookLane = std::uint32_t{1} << 31;

/// Where a record lies. Places of different tasks differ, because ids do. Sorted by lane, then as
/// the lane is read.
struct Place {
  Lane lane = Lane::due;
  std::uint32_t queue = 0;     // QueueRecord::number; 0 in `due` and `ended`; see kWebhookLane
  std::uint32_t priority = 0;  // in `ready` only
  WallTime at{};
  TaskId id;

  friend auto operator<=>(const Place&, const Place&) = default;
};
/// After every instant that a task may have.
inline constexpr WallTime kNeverDue = WallTime::max();

/// Before and after every place of a lane.
constexpr Place begin_of(Lane lane, std::uint32_t queue = 0) noexcept {
  return {.lane = lane, .queue = queue, .priority = 0, .at = WallTime{}, .id = {}};
}
constexpr Place end_of(Lane lane, std::uint32_t queue = 0) noexcept {
  const bool has_priority = lane == Lane::ready;
  return {.lane = lane,
          .queue = queue,
          .priority = has_priority ? ~std::uint32_t{0} : 0,
          .at = kNeverDue,
          .id = TaskId{~std::uint64_t{0}}};
}
/// The last place in the due order, or among the ended, whose instant is `at`.
constexpr Place last_at(Lane lane, WallTime at) noexcept {
  return {.lane = lane, .queue = 0, .priority = 0, .at = at, .id = TaskId{~std::uint64_t{0}}};
}

/// A record and its place.
struct StoredTask {
  Place place;
  Task task;

  friend bool operator==(const StoredTask&, const StoredTask&) = default;
};

/// All that is durable of a queue but its tasks. The counts are written in the batch that changes
/// them, so they are exact after a crash and cost no scan.
struct QueueRecord {
  std::string queue;
  std::uint32_t number = 0;   // from 1; its own for ever
  std::uint64_t waiting = 0;  // scheduled, ready or leased
  std::uint64_t dead = 0;
  std::uint64_t bytes = 0;            // of the payloads of those two
  std::uint64_t in_ready_lane = 0;    // of those that wait
  std::uint64_t in_webhook_lane = 0;  // likewise, of those with a webhook of their own
  QueueSettings settings = {};

  friend bool operator==(const QueueRecord&, const QueueRecord&) = default;
};

/// The number that no queue has. The keys under it are the engine's own.
inline constexpr std::uint32_t kNoQueue = 0;

/// For which task a key stands in a queue, and what was asked for when it was made.
struct KeyRecord {
  std::uint32_t queue = 0;  // QueueRecord::number, or kNoQueue
  std::string key;
  TaskId id;
  std::uint64_t content = 0;           // a hash of the request
  std::optional<WallTime> expires_at;  // once the task has ended

  friend bool operator==(const KeyRecord&, const KeyRecord&) = default;
};

/// How many live tasks are due in a bin: as a sum, or as a change.
struct DueCount {
  DueBin bin;
  std::int64_t count = 0;

  friend bool operator==(const DueCount&, const DueCount&) = default;
};

/// What one write() changes. Requires: a task appears at most once; `from` and `erases` name places
/// where a record is; a put without `from` is of an id that has no record; no place is before or at
/// the beginning of its lane; a key appears at most once, a queue too, among those that are removed
/// and those that are put; the number of a queue put anew is above last_queue_number(). (Back ends
/// on disk do not look: that would cost a read a task. MemoryStore does.)
struct WriteBatch {
  struct Put {
    std::optional<Place> from;  // the place it leaves; none for a new task
    StoredTask to;
  };
  std::vector<Put> puts;
  std::vector<Place> erases;
  std::vector<QueueRecord> queues;             // as they are now
  std::vector<std::string> removed_queues;     // first: one of `queues` may have the same name
  std::vector<KeyRecord> keys;                 // as they are now
  std::vector<ScheduleRecord> schedules;       // as they are now
  std::vector<std::string> removed_schedules;  // names; first, as removed_queues
  std::vector<DueCount> due_counts;            // changes
  TaskId last_id;  // the highest id given out so far, if higher than any put

  bool empty() const noexcept {
    return puts.empty() && erases.empty() && queues.empty() && removed_queues.empty() &&
           keys.empty() && schedules.empty() && removed_schedules.empty() && due_counts.empty();
  }
};

enum class Durability : std::uint8_t { synced, buffered };

/// What a writer does while its batch is on its way to the disk; returns once `written` was rung,
/// which is a bell of Doorbell::Ringer::work.
using WhileWriting = std::function<void(Doorbell& written)>;

/// Part of a lane, or of all tasks by id. A record that could not be read is left out and its place
/// told, so that one bad record hides no other.
struct TaskPage {
  std::vector<StoredTask> tasks;  // in order
  std::vector<Place> damaged;     // likewise
  std::optional<Place> read_to;   // the page was full: there may be more, after this place
};
/// Adds what was read at a place, the next in order, to a page of at most `limit`. Requires: the
/// page is not full.
void add_to_page(TaskPage& page, std::size_t limit, Place place, Result<Task> task);

/// Part of a queue's keys. One whose record could not be read is told by its name, so that it hides
/// no other.
struct KeyPage {
  std::vector<KeyRecord> records;      // in byte order of the keys
  std::vector<std::string> damaged;    // likewise
  std::optional<std::string> read_to;  // the page was full: there may be more, after this key
};

class Store {
 public:
  virtual ~Store() = default;

  virtual Result<void> write(const WriteBatch& batch, Durability durability) = 0;
  /// The same, but a back end that can write on a thread of its own calls `meanwhile` on this one,
  /// at most once. That may call read_at() for places of tasks that the batch does not name, and
  /// nothing else of the store. Costs two hand-overs between threads.
  virtual Result<void> write_while(const WriteBatch& batch, Durability durability,
                                   const WhileWriting& /*meanwhile*/) {
    return write(batch, durability);
  }

  /// The records at places after `after`, up to and with `until`, at most `limit` of them, also
  /// counting damaged ones. Requires: both are of one lane (and queue); limit > 0.
  virtual Result<TaskPage> read(Place after, Place until, std::size_t limit) = 0;
  /// The records of all lanes with ids above `after`, by id. A task that is there while pages are
  /// read one after another is met once, wherever it moves.
  virtual Result<TaskPage> read_by_id(TaskId after, std::size_t limit) = 0;
  /// The records at these places, in the order asked; data_loss for one that is damaged, not_found
  /// for one that is not there.
  virtual Result<std::vector<Result<Task>>> read_at(std::span<const Place> places) = 0;
  /// The record of this id and its place, or nothing when there is none. Errors: data_loss when it
  /// is damaged.
  virtual Result<std::optional<StoredTask>> find(TaskId id) = 0;
  /// The records of those of these tasks that are there, each once, in any order. One that is
  /// damaged is left out: find() tells of it. Costs less than find() of each.
  virtual Result<std::vector<StoredTask>> find_all(std::span<const TaskId> ids);
  /// Sets damaged records aside: they leave their lanes and are kept, raw, in the quarantine. One
  /// synced write in the sense of the contract. Passes over places where no record is. Requires:
  /// each place once.
  virtual Result<void> quarantine(std::span<const Place> places) = 0;

  /// Also one that has expired and was not trimmed yet.
  virtual Result<std::optional<KeyRecord>> find_key(std::uint32_t queue, std::string_view key) = 0;
  /// The same of those of these keys that are there, each once, in any order; one that is damaged
  /// is left out.
  virtual Result<std::vector<KeyRecord>> find_keys(std::uint32_t queue,
                                                   std::span<const std::string> keys);
  /// A queue's keys after `after`, in byte order, at most `limit` > 0, also counting damaged ones.
  virtual Result<KeyPage> read_keys(std::uint32_t queue, std::string_view after,
                                    std::size_t limit) = 0;
  /// Removes keys that expired at or before `now`, the oldest first, at most `limit`; answers how
  /// many. One that was put again with another expiry is not among them. Buffered; a write in the
  /// sense of the contract.
  virtual Result<std::size_t> trim_keys(WallTime now, std::size_t limit) = 0;
  /// Those of these records, as they were read, that trim_keys() would not treat as they say: it
  /// would never meet one that expires, or remove one that does not.
  virtual Result<std::vector<KeyRecord>> wrong_expiries(std::span<const KeyRecord> records) = 0;

  /// All recurring schedules, by name; data_loss, with its name, for one that is damaged.
  virtual Result<std::vector<Result<ScheduleRecord>>> read_schedules() = 0;
  /// The same. Errors: data_loss when one is damaged.
  Result<std::vector<ScheduleRecord>> schedules();
  /// By queue name.
  virtual Result<std::vector<QueueRecord>> queues() = 0;
  /// The sums of all changes, by bin, without those that are 0.
  virtual Result<std::vector<DueCount>> due_counts() = 0;
  /// How many records the quarantine holds.
  virtual Result<std::uint64_t> quarantined() = 0;
  virtual TaskId last_id() const noexcept = 0;
  /// The highest QueueRecord::number a batch ever named, whatever became of the queue.
  virtual std::uint32_t last_queue_number() const noexcept = 0;
  virtual Result<std::uint64_t> begin_epoch() = 0;
  /// Letters, digits and hyphens; no secret. For who keeps something for this store elsewhere.
  virtual Result<std::string> identity() = 0;
};

}  // namespace detent

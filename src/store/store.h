// The durable store of tasks: one interface with several back ends. The back end in memory is in
// this folder; the others are in rocksdb/ and postgres/.
//
// A store keeps the record of each task at a **place**. Places lie in lanes. A lane is a sorted
// order of records. The lanes are:
//
//  - the due order: the live tasks of all queues, by due time,
//  - for each queue, a ready lane: ready tasks that exceed the memory of the engine, most urgent
//    first,
//  - for each queue, a dead lane: its dead tasks,
//  - the ended lane: tasks of all queues that are kept after their end.
//
// The store reads pages by place, never by offset. The engine decides where a task lies. Reading
// removes nothing.
//
// Contract for every back end (tests/contract/store_contract_test.cc checks it for each):
//  1. write() applies a batch completely or not at all. With Durability::synced, the batch and all
//     earlier batches survive a power loss after write() has returned ok. With
//     Durability::buffered, the batch survives a crash of the process. An empty synced batch makes
//     all buffered batches durable.
//  2. After an error from write(), the outcome is unknown: the store has either the whole batch or
//     no part of it. All later writes fail until the store is opened again.
//  3. A read sees all batches that were written before it. It sees no part of a batch that is known
//     to have failed.
//  4. A record reads back byte for byte, or the read fails with ErrorCode::data_loss. A read never
//     returns a changed record.
//  5. last_id() is the highest id that any batch has put or has named as last_id, even if the task
//     was removed since.
//  6. begin_epoch() returns a number that is higher than the results of all earlier calls. The
//     number is durable.
//  7. Only one process can have a store open. In other processes, opening it fails with
//     `unavailable`.
//  8. A new store gets a random identity(). It stays the same at each open. Only copies of a store
//     have the same identity.
//  9. A back end that several processes can reach refuses the write of a former owner, whose epoch
//     is lower than the store's. This is fencing: the PostgreSQL store does it in each statement
//     (postgres/fenced_statement.h). The RocksDB store has the lock of its folder instead.
//
// A store is confined to one thread. A back end may do part of its work on threads of its own.
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

/// A sorted order of tasks. `due` and `ended` each exist once, for all queues. `ready` and `dead`
/// exist once for each queue.
enum class Lane : std::uint8_t { due, ready, dead, ended };

/// Set this bit in the number of a queue to name the ready lane of its tasks that have a webhook of
/// their own. Workers do not lease these tasks; the deliverer does. With two lanes, tasks for
/// workers cannot hide tasks for the deliverer, and vice versa.
inline constexpr std::uint32_t kWebhookLane = std::uint32_t{1} << 31;

/// The position of a record. Two tasks never have equal places, because their ids differ. Places
/// sort by lane, and within a lane in reading order.
struct Place {
  Lane lane = Lane::due;
  std::uint32_t queue = 0;     // QueueRecord::number; 0 in `due` and `ended`; see kWebhookLane
  std::uint32_t priority = 0;  // in `ready` only
  WallTime at{};
  TaskId id;

  friend auto operator<=>(const Place&, const Place&) = default;
};
/// Later than the due time of any task.
inline constexpr WallTime kNeverDue = WallTime::max();

/// begin_of() is before all places of a lane, end_of() is after them.
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
/// The last possible place with the instant `at` in the due order or in the ended lane.
constexpr Place last_at(Lane lane, WallTime at) noexcept {
  return {.lane = lane, .queue = 0, .priority = 0, .at = at, .id = TaskId{~std::uint64_t{0}}};
}

/// A record and its place.
struct StoredTask {
  Place place;
  Task task;

  friend bool operator==(const StoredTask&, const StoredTask&) = default;
};

/// All durable data of a queue, except its tasks. The batch that changes the tasks also writes the
/// new counts. So the counts are exact after a crash, and recovery need not count the tasks.
struct QueueRecord {
  std::string queue;
  std::uint32_t number = 0;   // from 1; no other queue ever gets the same number
  std::uint64_t waiting = 0;  // scheduled, ready or leased
  std::uint64_t dead = 0;
  std::uint64_t bytes = 0;            // of the payloads of the waiting and the dead tasks
  std::uint64_t in_ready_lane = 0;    // waiting tasks in the ready lane
  std::uint64_t in_webhook_lane = 0;  // waiting tasks in the ready lane of kWebhookLane
  QueueSettings settings = {};

  friend bool operator==(const QueueRecord&, const QueueRecord&) = default;
};

/// The number that no queue has. The engine's own keys are stored under this number.
inline constexpr std::uint32_t kNoQueue = 0;

/// A key of a queue: its task, and a hash of the request that created the task.
struct KeyRecord {
  std::uint32_t queue = 0;  // QueueRecord::number, or kNoQueue
  std::string key;
  TaskId id;
  std::uint64_t content = 0;           // hash of the request
  std::optional<WallTime> expires_at;  // set when the task has ended

  friend bool operator==(const KeyRecord&, const KeyRecord&) = default;
};

/// The number of live tasks that are due in a bin. In a WriteBatch it is the change of that number.
struct DueCount {
  DueBin bin;
  std::int64_t count = 0;

  friend bool operator==(const DueCount&, const DueCount&) = default;
};

/// The changes of one write(). Requires:
///  - Each task, and each key, appears at most once.
///  - Each queue and each schedule appears at most once among the removed, and at most once among
///    the written.
///  - `from` and `erases` name places that have a record. A put without `from` has an id that has
///    no record.
///  - Each place is between begin_of() and end_of() of its lane.
///  - A new queue has a number above last_queue_number().
///
/// The back ends on disk do not check this, because that would cost one read for each task.
/// MemoryStore checks it; of a queue's number it checks only that no other queue has ever had it.
struct WriteBatch {
  struct Put {
    std::optional<Place> from;  // the present place; empty for a new task
    StoredTask to;
  };
  std::vector<Put> puts;
  std::vector<Place> erases;
  std::vector<QueueRecord> queues;          // the new records
  std::vector<std::string> removed_queues;  // removed first: `queues` may have the same name again
  std::vector<KeyRecord> keys;              // the new records
  std::vector<ScheduleRecord> schedules;    // the new records
  std::vector<std::string> removed_schedules;  // names; removed first, too
  std::vector<DueCount> due_counts;            // changes of the counts
  TaskId last_id;                              // the highest id given out so far, if no put has it

  bool empty() const noexcept {
    return puts.empty() && erases.empty() && queues.empty() && removed_queues.empty() &&
           keys.empty() && schedules.empty() && removed_schedules.empty() && due_counts.empty();
  }
};

enum class Durability : std::uint8_t { synced, buffered };

/// Work that a writer does while the store writes its batch. The function must return when
/// `written` rings. `written` is a bell of Doorbell::Ringer::work.
using WhileWriting = std::function<void(Doorbell& written)>;

/// Part of a lane, or part of all tasks in the order of their ids. If a record cannot be read, the
/// page has its place in `damaged` instead. So one damaged record does not hide others.
struct TaskPage {
  std::vector<StoredTask> tasks;  // in the order of the read
  std::vector<Place> damaged;     // in the same order
  std::optional<Place> read_to;   // set if the page is full: continue after this place
};
/// Adds the result of reading the next place to a page of at most `limit` entries. Requires: the
/// page is not full.
void add_to_page(TaskPage& page, std::size_t limit, Place place, Result<Task> task);

/// Part of the keys of a queue. If a record cannot be read, the page has its key in `damaged`
/// instead. So one damaged record does not hide others.
struct KeyPage {
  std::vector<KeyRecord> records;      // in byte order of the keys
  std::vector<std::string> damaged;    // in the same order
  std::optional<std::string> read_to;  // set if the page is full: continue after this key
};

class Store {
 public:
  virtual ~Store() = default;

  /// Applies a batch. See points 1 and 2 of the contract.
  virtual Result<void> write(const WriteBatch& batch, Durability durability) = 0;
  /// Like write(). A back end that can write on its own thread calls `meanwhile` on the calling
  /// thread while it writes, at most once. `meanwhile` may call read_at() for places of tasks that
  /// the batch does not name. It must not call other functions of the store. Costs two hand-overs
  /// between threads.
  virtual Result<void> write_while(const WriteBatch& batch, Durability durability,
                                   const WhileWriting& /*meanwhile*/) {
    return write(batch, durability);
  }

  /// The records at places after `after` up to and including `until`. At most `limit` records,
  /// damaged records included. Requires: both places are in the same lane of the same queue; limit
  /// > 0.
  virtual Result<TaskPage> read(Place after, Place until, std::size_t limit) = 0;
  /// The records of all lanes with ids above `after`, in the order of ids. A task may move to other
  /// places between the reads of two pages. The pages still have it exactly once, as long as it is
  /// stored.
  virtual Result<TaskPage> read_by_id(TaskId after, std::size_t limit) = 0;
  /// The records at these places, in the order of `places`. An element is data_loss if its record
  /// is damaged, and not_found if the place has no record.
  virtual Result<std::vector<Result<Task>>> read_at(std::span<const Place> places) = 0;
  /// The record of this id with its place. Empty if the id has no record. Errors: data_loss if the
  /// record is damaged.
  virtual Result<std::optional<StoredTask>> find(TaskId id) = 0;
  /// The records of these ids, each at most once, in any order. Ids without a record and damaged
  /// records are left out; find() tells which of the two it is. Costs less than one find() for each
  /// id.
  virtual Result<std::vector<StoredTask>> find_all(std::span<const TaskId> ids);
  /// Moves damaged records from their lanes to the quarantine, which keeps their raw bytes. This is
  /// one synced write in the sense of the contract. Places without a record are skipped. Requires:
  /// `places` has no duplicates.
  virtual Result<void> quarantine(std::span<const Place> places) = 0;

  /// The record of a key, empty if there is none. An expired key is also found until trim_keys()
  /// removes it. Errors: data_loss if the record is damaged.
  virtual Result<std::optional<KeyRecord>> find_key(std::uint32_t queue, std::string_view key) = 0;
  /// The records of these keys of a queue, each at most once, in any order. Missing keys and
  /// damaged records are left out.
  virtual Result<std::vector<KeyRecord>> find_keys(std::uint32_t queue,
                                                   std::span<const std::string> keys);
  /// The keys of a queue after `after`, in byte order. At most `limit` keys, damaged ones included.
  /// Requires: limit > 0.
  virtual Result<KeyPage> read_keys(std::uint32_t queue, std::string_view after,
                                    std::size_t limit) = 0;
  /// Removes at most `limit` keys whose expiry is at or before `now`, in the order of expiry.
  /// Returns the number of removed keys. If a key was written again with another expiry, only the
  /// new expiry counts. This is a buffered write in the sense of the contract.
  virtual Result<std::size_t> trim_keys(WallTime now, std::size_t limit) = 0;
  /// Checks the order of expiry, which trim_keys() follows. `records` are as they were read.
  /// Returns two kinds of records: those that expire but that trim_keys() would never find, and
  /// those that do not expire but that trim_keys() would remove.
  virtual Result<std::vector<KeyRecord>> wrong_expiries(std::span<const KeyRecord> records) = 0;

  /// All recurring schedules, sorted by name. An element is data_loss, with the name in the
  /// message, if its record is damaged.
  virtual Result<std::vector<Result<ScheduleRecord>>> read_schedules() = 0;
  /// Like read_schedules(), but fails with data_loss if one record is damaged.
  Result<std::vector<ScheduleRecord>> schedules();
  /// The records of all queues, sorted by name.
  virtual Result<std::vector<QueueRecord>> queues() = 0;
  /// For each bin the sum of all its changes, sorted by bin. Sums of 0 are left out.
  virtual Result<std::vector<DueCount>> due_counts() = 0;
  /// The number of records in the quarantine.
  virtual Result<std::uint64_t> quarantined() = 0;
  /// See point 5 of the contract.
  virtual TaskId last_id() const noexcept = 0;
  /// The highest QueueRecord::number that any batch has named, even if the queue was removed since.
  /// It is 0 if no batch has named one.
  virtual std::uint32_t last_queue_number() const noexcept = 0;
  /// See point 6 of the contract.
  virtual Result<std::uint64_t> begin_epoch() = 0;
  /// See point 8 of the contract. The text has letters, digits and hyphens, and is not secret. An
  /// external scheduler stores it together with the tasks of this store.
  virtual Result<std::string> identity() = 0;
};

}  // namespace detent

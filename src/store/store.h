// The durable home of tasks: one interface, several back ends (memory here, rocksdb/ beside).
//
// A store keeps task records in **due order**: each record has a place (DueKey: instant, id), and
// pages are read in that order by key, never by offset. The place is usually the task's due time,
// but the engine decides: a task that must wait for room in memory gets a later place, a dead one
// rests at the end of time. Reading removes nothing.
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
// Confined to one thread, but for what a back end does on threads of its own.
#pragma once

#include <compare>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/result.h"
#include "task/task.h"

namespace detent {

/// A place in the due order; places of different tasks differ, because ids do.
struct DueKey {
  WallTime at{};
  TaskId id;

  friend auto operator<=>(const DueKey&, const DueKey&) = default;
};
/// Before every place.
inline constexpr DueKey kFirstDueKey{WallTime{}, TaskId{0}};
/// The instant at which dead tasks rest: after every due time, never reached.
inline constexpr WallTime kNeverDue = WallTime::max();

/// A record and its place.
struct StoredTask {
  DueKey place;
  Task task;
};

/// How many tasks of a queue the store holds; written in the batch that changes them, so the
/// figures are exact after a crash and cost no scan.
struct QueueCounts {
  std::string queue;
  std::uint64_t waiting = 0;  // scheduled, ready or leased
  std::uint64_t dead = 0;

  friend bool operator==(const QueueCounts&, const QueueCounts&) = default;
};

/// What one write() changes. Requires: a task appears at most once; `from` and `erases` name places
/// where a record is; a put without `from` is of an id never put before; no place is before
/// kFirstDueKey. (Back ends on disk do not look: that would cost a read a task. MemoryStore does.)
struct WriteBatch {
  struct Put {
    std::optional<DueKey> from;  // the place it leaves; none for a new task
    StoredTask to;
  };
  std::vector<Put> puts;
  std::vector<DueKey> erases;
  std::vector<QueueCounts> counts;  // the new figures of the queues that changed; kept at 0 too
  TaskId last_id;                   // the highest id given out so far, if higher than any put

  bool empty() const noexcept { return puts.empty() && erases.empty() && counts.empty(); }
};

enum class Durability : std::uint8_t { synced, buffered };

/// Part of the due order. A record that could not be read is left out and its place told, so that
/// one bad record hides no other.
struct DuePage {
  std::vector<StoredTask> tasks;  // in due order
  std::vector<DueKey> damaged;    // before the last of `tasks` when there is more
  bool more = false;              // the page was full: there may be more, after the last of `tasks`
};

class Store {
 public:
  virtual ~Store() = default;

  virtual Result<void> write(const WriteBatch& batch, Durability durability) = 0;

  /// The records at places after `after`, up to and with instant `until`, at most `limit` of them
  /// (damaged ones are not counted). Requires: limit > 0.
  virtual Result<DuePage> read_due(DueKey after, WallTime until, std::size_t limit) = 0;
  /// The records at these places, in the order asked; data_loss for one that is damaged, not_found
  /// for one that is not there.
  virtual Result<std::vector<Result<Task>>> read_at(std::span<const DueKey> places) = 0;
  /// The record of this id and its place, or nothing when there is none. Errors: data_loss when it
  /// is damaged.
  virtual Result<std::optional<StoredTask>> find(TaskId id) = 0;
  /// Sets a damaged record aside: it leaves the due order and is kept, raw, in the quarantine.
  /// Synced; a write in the sense of the contract. Does nothing when there is no record.
  virtual Result<void> quarantine(DueKey place) = 0;

  /// By queue name.
  virtual Result<std::vector<QueueCounts>> queue_counts() = 0;
  /// How many records the quarantine holds.
  virtual Result<std::uint64_t> quarantined() = 0;
  virtual TaskId last_id() const noexcept = 0;
  virtual Result<std::uint64_t> begin_epoch() = 0;
};

}  // namespace detent

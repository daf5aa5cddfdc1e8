// Which of the stored tasks are in memory: the load window over the due order, and the heads of the
// ready lanes.
//
// Memory holds every live task whose place in the due order is at or before `loaded_to_`, and no
// other; far tasks cost nothing until the window reaches them. When `max_loaded` tasks are in
// memory the queue with most of them is **cut**: behind its `cut_to` it has only on disk what the
// others have in memory. Where no queue has a good part of the memory the window shrinks. Either
// way what is due first stays. Tasks that are due behind a cut, and have no room, move to their
// ready lane without being loaded; new ones that are due and have no room go there at once.
//
// What is ready and more than its part of the memory **spills**: the least urgent tasks of the
// queue that has most of them move to that queue's ready lane on disk. Memory holds only the head
// of the lane, everything up to `head_to`, so the most urgent task is always at hand, and a backlog
// in one queue leaves the due order, and the memory, to the others.
//
// Invariant, tested by check():
//  1. A live task of the due order is in memory when its place is ≤ loaded_to() and ≤ its queue's
//     cut_to, and never behind loaded_to(); one of a ready lane when its place is ≤ that lane's
//     head_to. Others may be: leased since, or not given back yet. Dead and ended ones never are.
// Thread-compatible.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "base/result.h"
#include "detent/tick.h"
#include "engine/commit_writer.h"
#include "engine/engine_time.h"
#include "engine/hand_out_turns.h"
#include "engine/loaded_tasks.h"
#include "engine/queue_book.h"
#include "engine/task_records.h"
#include "store/store.h"

namespace detent {

// The memory is shared out in eighths: pages fill it up to six, so that new tasks that are due soon
// find room; ready tasks take at most three, or they spill; leased ones, which cannot leave it, at
// most two. So however long the backlog, one eighth at least is left to go on with the due order.
inline constexpr std::size_t kMemoryParts = 8;
inline constexpr std::size_t kPageParts = 6;
inline constexpr std::size_t kReadyParts = 3;
inline constexpr std::size_t kLeasedParts = 2;
static_assert(kReadyParts + kLeasedParts < kPageParts);

// After a start nothing is handed out for so long at most, while what is due has yet to be read.
inline constexpr std::chrono::milliseconds kMostHold{2'000};

class LoadWindow {
 public:
  /// What it works on; all must outlive it.
  struct Parts {
    const Clock& clock;
    const EngineTime& time;
    Store& store;
    CommitWriter& writer;
    QueueBook& queues;
    HandOutTurns& turns;
    TaskRecords& records;
    LoadedTasks& tasks;
  };
  /// Reaches `length` ahead of now, with at most `max_loaded` tasks in memory.
  LoadWindow(Parts parts, std::chrono::milliseconds length, std::size_t max_loaded)
      : parts_(parts), length_(length), max_loaded_(max_loaded) {}

  /// Loads the first pages. Errors: the store failed.
  Result<void> open();
  /// Whether what was due when it was opened is still being read, so that of what is in memory
  /// nobody knows yet whether it is the most urgent: for kMostHold at most.
  bool holds_hand_outs() const;

  // The verbs' part.

  /// Where a task belongs that gets this place in the due order; may make room for it.
  enum class Home : std::uint8_t { memory, due_order, ready_lane };
  Home home_of(Queue& queue, const Place& place, const Task& task, const Deadline& deadline);
  /// A task that is due, since the tick `due`, gets its place in its ready lane, and is not loaded;
  /// `from` is the place it leaves (none for a new task).
  void put_in_lane(Queue& queue, std::optional<Place> from, Task task, Tick due);
  /// The next of these ready tasks, in memory; null when there is none. Loads a page of their lane
  /// when the head of it has been handed out.
  Result<LoadedTask*> head_of(Queue& queue, ReadyTasks& ready);
  /// Loads a page of a ready lane behind its head.
  Result<void> load_head(Queue& queue, ReadyTasks& ready);
  /// The queue is about to have no record.
  void forget_cut(Queue& queue);

  // The turn's part, after a commit, when nothing is staged.

  /// Whether there is time for a step before somebody who waits has something to take.
  enum class Time : std::uint8_t { enough, none };
  /// Whether moves to the ready lanes wait until there is time: not for ever, nor while the memory
  /// is short.
  bool gives_way(Time time);
  /// How much is moved in a step: a tenth of a millisecond of reading, or some tenths.
  enum class Moves : std::uint8_t { none, few, many };
  /// One step of what the memory needs: the next page, tasks behind a cut, ready tasks to their
  /// lane. Answers whether it needed any. Errors: the store failed.
  Result<bool> tend(Moves moves);
  /// Whether tend() has something to do, if moves may be made.
  bool has_work() const;
  /// Whether what it has to do must keep up with the load: tasks are to come into the memory, or it
  /// is short. Moves to the ready lanes need not, as long as there is room.
  bool is_pressed() const;
  /// When it will have, if nothing changes.
  std::optional<Tick> next_work() const;

  /// Where the window ends in the due order.
  const Place& loaded_to() const noexcept { return loaded_to_; }
  /// Stops the process if the invariant is broken for this task, or queue. O(queues that are cut).
  /// Returns whether the task is in memory.
  bool check(const StoredTask& stored) const;
  void check(const Queue& queue) const;

 private:
  /// Whether the next page is wanted.
  bool wants_page() const;
  /// Loads a page behind the window. Where there is no room for a task, its queue is cut if it has
  /// most of the memory; for the others room is made, so that the page waits for no queue's tasks.
  Result<void> load_page();

  /// Places looked at to find the queue that has most in memory: who has an eighth of it is met for
  /// certain, as good as.
  static constexpr std::uint32_t kLargestSamples = 256;
  static constexpr std::uint32_t kAllSlots = ~std::uint32_t{0};
  /// Tasks moved to a ready lane at a time: their records are read and written whole.
  static std::size_t count_of(Moves moves) noexcept { return moves == Moves::many ? 64 : 16; }

  bool is_full() const noexcept { return parts_.tasks.size() >= max_loaded_; }
  bool is_short() const noexcept;
  bool may_load_behind_cut() const noexcept;
  std::size_t room_for_pages() const noexcept;
  bool has_room_for_many() const noexcept;
  /// When what waits on disk for room, due in a moment, is loaded into however little there is.
  Tick last_call() const noexcept {
    return parts_.time.tick_at(loaded_to_.at - std::chrono::seconds{1});
  }
  Home home_of_due(const Queue& queue, const Place& place, const Task& task);
  void shrink();

  // Queues that are cut.
  std::size_t good_part() const noexcept;
  /// Visits about `most` of the tasks in memory, or all when there are no more slots. Cost: a wait
  /// for memory each, however many queues there are.
  template <class Visit>
  void sample_tasks(std::uint32_t most, Visit visit) {
    // Odd, so that queues that take turns are met alike.
    const std::uint32_t step = (parts_.tasks.slot_limit() / most) | 1u;
    // Never twice at the same places: those of the last sample may have gone to the disk.
    for (std::uint32_t at = samples_++ % step; at < parts_.tasks.slot_limit(); at += step) {
      if (LoadedTask* const task = parts_.tasks.at(at)) visit(*task);
    }
  }
  Queue* largest_queue(std::size_t (Queue::*count)() const noexcept);
  void cut(Queue& queue, const Place& place);
  void drop_cuts();
  bool make_room();
  bool cut_largest();
  Queue* next_behind_cut() const;
  Result<void> load_behind_cut(const Place& from, Moves moves);

  // The ready lanes.
  std::size_t ready_room() const noexcept;
  std::size_t ready_part() const noexcept;
  bool has_little_ready(const Queue& queue) const noexcept;
  bool would_spill(const ReadyTasks& ready, const Place& place) const noexcept;
  void load_staged(ReadyTasks& ready, const Place& from);
  Result<void> spill_ready(Moves moves);
  Result<void> spill(ReadyTasks& ready, std::size_t count);

  const Parts parts_;
  const std::chrono::milliseconds length_;
  const std::size_t max_loaded_;

  WallTime opened_at_{};  // what was due then is caught up with
  Tick hold_until_ = 0;   // at the latest
  Place loaded_to_ = begin_of(Lane::due);
  bool more_stored_ = true;      // a page was cut short, or the window has shrunk
  bool is_out_of_room_ = false;  // the last page was not loaded to its end
  std::uint32_t samples_ = 0;    // that sample_tasks() has taken
  Tick next_shrink_ = 0;         // not before: the last attempt was in vain
  std::vector<Queue*> cut_queues_;
  std::vector<Place> staged_in_lanes_;  // since the last commit: no page of a lane shows them yet
  std::uint32_t sweep_at_ = 0;          // a slot of the tasks: make_room() goes on there
  int waived_ = 0;                      // turns in a row in which moves gave way
};

}  // namespace detent

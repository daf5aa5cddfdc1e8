// Decides which stored tasks are in memory. These are the tasks in the load window, which is the
// front part of the due order, and the tasks in the heads of the ready lanes.
//
// The window ends at `loaded_to_`. Memory holds every live task whose place in the due order is at
// or before this place. Later tasks are only on disk and use no memory until the window reaches
// them.
//
// When `max_loaded` tasks are in memory, the queue with the most tasks in memory is **cut**: its
// tasks behind `cut_to` are only on disk, and the window of the other queues stays as long as it
// is. If no queue uses a large part of the memory, the window shrinks for all queues instead. In
// both cases, the tasks that are due first stay in memory.
//
// If a task behind a cut becomes due and memory has no room for it, the task moves to its ready
// lane without being loaded. If a new task is due and memory has no room for it, it goes to its
// ready lane immediately.
//
// Ready tasks may use only a part of the memory. If they exceed this part, they **spill**: the
// queue with the most ready tasks moves its least urgent ready tasks to its ready lane on disk.
// Memory keeps only the head of the lane, up to `head_to`. A backlog in one queue therefore leaves
// room for the due order and for the other queues, and the most urgent tasks are still in memory.
//
// Invariant, tested by check():
//  1. A live task of the due order is in memory if its place is ≤ loaded_to() and ≤ the cut_to of
//     its queue. It is never in memory if its place is behind loaded_to(). A task of a ready lane
//     is in memory if its place is ≤ head_to of the lane. A task behind cut_to or head_to may be in
//     memory too, because it is leased or was not unloaded yet. Dead and ended tasks are never in
//     memory.
// Thread-compatible.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "base/result.h"
#include "detent/tick.h"
#include "engine/queues/hand_out_turns.h"
#include "engine/queues/queue_registry.h"
#include "engine/records/commit_writer.h"
#include "engine/records/task_records.h"
#include "engine/values/engine_time.h"
#include "engine/window/loaded_tasks.h"
#include "store/store.h"

namespace detent {

// The memory is divided into eighths. Loading pages from disk fills at most six eighths, so that
// new tasks that are due soon find room. Ready tasks use at most three eighths, and then they
// spill. Leased tasks cannot leave the memory and use at most two eighths. So at least one of the
// six eighths is always left for the scheduled tasks of the due order, even with a long backlog.
inline constexpr std::size_t kMemoryParts = 8;
inline constexpr std::size_t kPageParts = 6;
inline constexpr std::size_t kReadyParts = 3;
inline constexpr std::size_t kLeasedParts = 2;
static_assert(kReadyParts + kLeasedParts < kPageParts);

// After a start, no task is handed out until the overdue tasks are read. This is the longest time
// that hand-outs wait for it.
inline constexpr std::chrono::milliseconds kMostHold{2'000};

class LoadWindow {
 public:
  /// The parts that it uses. All must outlive it.
  struct Parts {
    const Clock& clock;
    const EngineTime& time;
    Store& store;
    CommitWriter& writer;
    QueueRegistry& queues;
    HandOutTurns& turns;
    TaskRecords& records;
    LoadedTasks& tasks;
  };
  /// The window reaches `length` ahead of now, with at most `max_loaded` tasks in memory.
  LoadWindow(Parts parts, std::chrono::milliseconds length, std::size_t max_loaded)
      : parts_(parts), length_(length), max_loaded_(max_loaded) {}

  /// Loads the first pages. Errors: the store failed.
  Result<void> open();
  /// Whether the window is still reading the tasks that were due when it was opened. Until then a
  /// more urgent task may still be on disk, so hand-outs must wait. True for at most kMostHold.
  bool holds_hand_outs() const;

  // Called by verbs.

  /// Where to put a task with this place in the due order. May unload other tasks to make room.
  enum class Home : std::uint8_t { memory, due_order, ready_lane };
  Home home_of(Queue& queue, const Place& place, const Task& task, const Deadline& deadline);
  /// Puts a task that has been due since the tick `due` into its ready lane, without loading it.
  /// `from` is the place that it leaves (empty for a new task).
  void put_in_lane(Queue& queue, std::optional<Place> from, Task task, Tick due);
  /// The most urgent of these ready tasks, in memory; null if there is none. If the head of the
  /// lane has been handed out, this loads the next page of the lane.
  Result<LoadedTask*> head_of(Queue& queue, ReadyTasks& ready);
  /// Loads the page of a ready lane behind its head.
  Result<void> load_head(Queue& queue, ReadyTasks& ready);
  /// The record of the queue will be removed.
  void forget_cut(Queue& queue);

  // Called by the turn after a commit, when no change is staged.

  /// Whether there is time for a step of memory work before a waiting worker can get a task.
  enum class Time : std::uint8_t { enough, none };
  /// Returns true if the moves to the ready lanes should wait because there is no time for them.
  /// Returns false if memory is short, or if they have already waited for several turns in a row.
  bool gives_way(Time time);
  /// How many tasks one step moves. `few` takes a tenth of a millisecond of reading, `many` some
  /// tenths.
  enum class Moves : std::uint8_t { none, few, many };
  /// One step of memory work: load the next page, load tasks behind a cut, or move ready tasks to
  /// their lane. Returns whether there was such work. Errors: the store failed.
  Result<bool> tend(Moves moves);
  /// Whether tend() has work, if moves are allowed.
  bool has_work() const;
  /// Whether the work of tend() must keep up with the load, because tasks must be loaded or memory
  /// is short. Moves to the ready lanes can wait as long as there is room.
  bool is_pressed() const;
  /// When tend() will have work if there are no changes before.
  std::optional<Tick> next_work() const;

  /// The end of the window in the due order.
  const Place& loaded_to() const noexcept { return loaded_to_; }
  /// Stops the process if the invariant is broken for this task or queue. Returns whether the task
  /// is in memory. O(queues that are cut).
  bool check(const StoredTask& stored) const;
  void check(const Queue& queue) const;

 private:
  /// Whether to load the next page now.
  bool wants_page() const;
  /// Loads the next page behind the window. If memory has no room for a task, and no other queue
  /// has more tasks in memory than its queue, this queue is cut. For a task of a smaller queue,
  /// room is made. So the page is loaded to its end even if one queue fills the memory.
  Result<void> load_page();

  /// The number of slots in the sample that finds the queue with the most tasks in memory. A queue
  /// with an eighth of the memory is practically always found.
  static constexpr std::uint32_t kLargestSamples = 256;
  static constexpr std::uint32_t kAllSlots = ~std::uint32_t{0};
  /// The tasks moved to a ready lane at a time. Their complete records are read and written.
  static std::size_t count_of(Moves moves) noexcept { return moves == Moves::many ? 64 : 16; }

  bool is_full() const noexcept { return parts_.tasks.size() >= max_loaded_; }
  bool is_short() const noexcept;
  bool may_load_behind_cut() const noexcept;
  std::size_t room_for_pages() const noexcept;
  bool has_room_for_many() const noexcept;
  /// From this tick on, tasks that wait on disk for room are loaded even if there is little room,
  /// because they are due within a second.
  Tick last_call() const noexcept {
    return parts_.time.tick_at(loaded_to_.at - std::chrono::seconds{1});
  }
  Home home_of_due(const Queue& queue, const Place& place, const Task& task);
  void shrink();

  // Cut queues.
  std::size_t good_part() const noexcept;
  /// Visits about `most` of the tasks in memory, or all tasks if there are fewer slots. Cost: one
  /// cache miss per task, independent of the number of queues.
  template <class Visit>
  void sample_tasks(std::uint32_t most, Visit visit) {
    // Odd, so that queues whose tasks alternate are sampled equally.
    const std::uint32_t step = (parts_.tasks.slot_limit() / most) | 1u;
    // Each sample begins at another slot, because the tasks of the previous sample may have moved
    // to disk.
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

  WallTime opened_at_{};  // tasks that were due then must be read before hand-outs
  Tick hold_until_ = 0;   // the latest end of holds_hand_outs()
  Place loaded_to_ = begin_of(Lane::due);
  // The store has more tasks behind the window that are due within its length: more pages follow
  // the page that was read last, or the window has shrunk.
  bool more_stored_ = true;
  bool is_out_of_room_ = false;  // memory had no room for all tasks of the last page
  std::uint32_t samples_ = 0;    // number of calls of sample_tasks()
  Tick next_shrink_ = 0;         // when to try again, after shrink() could free no memory
  std::vector<Queue*> cut_queues_;
  std::vector<Place> staged_in_lanes_;  // staged by put_in_lane(), so the store lacks them yet
  std::uint32_t sweep_at_ = 0;          // the slot where make_room() continues
  int waived_ = 0;                      // consecutive turns in which moves waited
};

}  // namespace detent

// The tasks in memory: they are loaded, become ready, are leased, and leave. The load window
// decides which stored tasks are in memory (load_window.h).
//
// The tasks are in a slab. The timers of the wheels (task_timers.h) are the indices of the slab. A
// task has at most one timer: first until its due time, then until its lease deadline.
//
// Invariants, tested by check_invariants():
//  1. A task in memory is in exactly one of these states (lifecycle.h): scheduled (it has a timer),
//     ready (it is in the order of its queue), or leased (it has a timer until its lease deadline).
//  2. Every leased task has a lease with its number, and every lease has a leased task.
//  3. The memory counts of each queue, and their sums here, match the tasks in memory.
// Thread-compatible. Memory: about 300 bytes a task.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "base/result.h"
#include "base/slab.h"
#include "detent/clock.h"
#include "engine/queues/hand_out_turns.h"
#include "engine/queues/lateness_account.h"
#include "engine/queues/loaded_task.h"
#include "engine/queues/queue.h"
#include "engine/records/task_news.h"
#include "engine/records/task_records.h"
#include "engine/values/engine_time.h"
#include "engine/window/task_timers.h"
#include "task/request.h"

namespace detent {

/// An open lease.
struct Lease {
  LoadedTask* task = nullptr;
  std::uint64_t epoch = 0;  // of the engine that issued the token: this engine or an earlier engine
  WallTime since{};
  std::string worker;
  RunOut run_out = RunOut::fails;
  LatenessParts late = {};
  bool is_told = false;  // its holder got the answer before the next commit
};

/// A lease in the form in which another engine can take it over.
struct HeldLease {
  std::uint64_t number = 0;  // LeaseToken::number
  Lease lease;               // without its task
  TaskId task;
  std::uint32_t attempts = 0;  // ended attempts of the task
  Tick until = 0;
  bool is_delivery = false;  // the deliverer of webhooks holds it
};

/// A task in memory or on disk.
struct FoundTask {
  StoredTask stored;  // as staged
  TaskState state = TaskState::scheduled;
  LoadedTask* loaded = nullptr;  // null: the task is only on disk
};

class LoadedTasks {
 public:
  using Leases = std::unordered_map<std::uint64_t, Lease>;  // by LeaseToken::number

  /// The parts that it uses. All must outlive it.
  struct Parts {
    const Clock& clock;
    const EngineTime& time;
    QueueRegistry& queues;
    HandOutTurns& turns;
    TaskNews& news;
    LatenessAccount& lateness;
    TaskRecords& records;
  };
  /// At most `most_leased` tasks are leased at a time. A queue with `crowd` tasks in memory becomes
  /// a crowd (task_timers.h).
  LoadedTasks(Parts parts, std::size_t most_leased, std::size_t crowd);

  // Loading and unloading.

  /// Loads a task. The task is ready immediately if it is due or comes from a ready lane. Requires:
  /// it is not in memory.
  void load(const Task& task, Place place, Deadline deadline);
  /// Removes the task from memory. Its record, if there is one, stays on disk.
  void unload(LoadedTask& task);
  /// A record that cannot be read moves to the quarantine. Its task leaves the queue and the
  /// memory.
  void set_aside(LoadedTask& task);
  /// The same for the damaged records of a page, whether their tasks are in memory or not. Staged
  /// tasks are left out, because the verb that staged them did not need the record. `queue` is the
  /// owner of the lane; null for the due order.
  ///
  /// In the due order the engine cannot know the queue of a damaged record, so the counts of the
  /// queue stay too high. In every lane the place does not show the payload bytes and the due bin,
  /// so both stay counted. The bytes return to 0 when the queue has no tasks.
  void set_aside(std::span<const Place> places, Queue* queue);

  // Time.

  /// Makes the due tasks of one wheel ready, until it has looked at `limit` timers. Returns whether
  /// more are due. Tasks with expired leases, which have no timer now, are added to `ran_out`.
  bool fire(TaskTimers::Wheel wheel, Tick now, std::size_t limit,
            std::vector<LoadedTask*>& ran_out);
  TaskTimers& timers() noexcept { return timers_; }
  const TaskTimers& timers() const noexcept { return timers_; }
  /// The wall clock was stepped: gives tasks with a date new timers. O(tasks).
  void retime();
  /// Counts a task that became due, in memory or on disk.
  void note_fired(TaskId id, Queue& queue, Tick tick, MonotonicTime now);

  // Ready and leased tasks.

  /// Puts a task into the order of its queue, or takes it out. Requires: the task is not scheduled
  /// and not leased.
  void enter_ready(LoadedTask& task);
  void leave_ready(LoadedTask& task);
  void open_lease(std::uint64_t number, Lease lease, Tick until);
  /// Makes a leased task ready again, as if it had never been leased.
  void give_back(LoadedTask& task);
  /// How many tasks of the queue the limits allow to hand out now.
  std::size_t allowance(const Queue& queue) const;
  bool is_full_of_leases() const noexcept { return leases_.size() >= most_leased_; }
  /// Call this after a change of a limit of the queue, or of the used part of the limit.
  void note_limits(Queue& queue) { parts_.lateness.note_limits(queue, is_full_of_leases()); }
  const Leases& leases() const noexcept { return leases_; }
  /// Leases that verbs have ended since the last commit. If the commit fails, their tasks may be
  /// unchanged in the store.
  const std::vector<HeldLease>& ended_leases() const noexcept { return ended_leases_; }
  void forget_ended_leases() noexcept { ended_leases_.clear(); }
  /// All open leases.
  std::vector<HeldLease> held_leases() const;
  void note_told(std::uint64_t number) { leases_.at(number).is_told = true; }
  /// The lease of a token; null if it is no longer open.
  const Lease* find_lease(LeaseToken token) const noexcept;

  // Finding and reading.

  /// Null if the task is not in memory.
  LoadedTask* find_loaded(TaskId id) const noexcept;
  /// Errors: not_found.
  Result<FoundTask> find(TaskId id);
  /// A task at its place, with its holder if it is leased, and its time of death if it is dead.
  /// Requires: this is its state.
  TaskSnapshot snapshot(Task task, const Place& place, TaskState state) const;
  /// Whether there is a task with this id, in memory or on disk. A task whose record cannot be read
  /// counts. Errors: the store failed.
  Result<bool> has(TaskId id);
  /// The record of the task. A record that cannot be read is set aside.
  Result<Task> read(LoadedTask& task);
  /// The state of a task in memory or on disk. An overdue task on disk counts as ready: it waits to
  /// be loaded, or it is in the ready lane.
  TaskState state_of(const Task& task) const;
  /// The task at an index of the slab, below slot_limit(); null if the index is free.
  LoadedTask* at(std::uint32_t slot) const noexcept { return tasks_.find(slot); }
  std::uint32_t slot_limit() const noexcept { return tasks_.index_limit(); }
  template <class Visit>
  void for_each(Visit visit) const {
    tasks_.for_each(visit);
  }

  std::size_t size() const noexcept { return tasks_.size(); }
  std::size_t ready() const noexcept { return ready_; }
  /// The number of ready tasks that are more urgent than the default priority.
  std::size_t urgent() const noexcept { return urgent_; }
  /// The number of tasks whose place is in a ready lane.
  std::uint64_t loaded_from_lanes() const noexcept { return loaded_from_lanes_; }
  /// An upper bound of the due times of the ready tasks in memory.
  WallTime latest_ready() const noexcept { return latest_ready_; }

  /// Whether the task breaks invariant 1 or 2, so that no step would handle it again (an orphan).
  /// O(log ready).
  bool would_be_stuck(LoadedTask& task) const;
  /// Stops the process if an invariant is broken. O(queues × tasks).
  void check_invariants() const;
  /// The queues with a ready task in memory, in any order.
  const std::vector<Queue*>& queues_with_ready() const noexcept { return with_ready_; }

 private:
  friend struct PlantedOrphans;  // a test of would_be_stuck()

  void become_ready(LoadedTask& task, MonotonicTime now);
  void lose(LoadedTask& task);
  void drop_lease(const LoadedTask& task);
  HeldLease held_lease(const LoadedTask& task, Lease lease) const;
  TaskState state_on_disk(const Task& task) const;
  std::size_t check_ready(const Queue& queue, const ReadyTasks& ready) const;

  const Parts parts_;
  const std::size_t most_leased_;

  Slab<LoadedTask> tasks_;
  TaskTimers timers_;             // a timer is an index of the slab
  std::vector<LoadedTask*> due_;  // used while a wheel fires
  std::unordered_map<std::uint64_t, LoadedTask*> by_id_;
  Leases leases_;
  std::vector<HeldLease> ended_leases_;
  std::uint64_t loaded_from_lanes_ = 0;
  std::size_t ready_ = 0;
  std::size_t urgent_ = 0;
  WallTime latest_ready_{};
  std::vector<Queue*> with_ready_;  // at Queue::among_ready_at
};

/// The error of a verb on a task that does not exist.
Error no_such_task(TaskId id);
/// The conflict error of a verb that the state of the task does not allow: leased or ended.
Error not_allowed(TaskId id, TaskState state);

}  // namespace detent

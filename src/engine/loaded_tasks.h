// The tasks in memory: they come, become ready, are leased, and go. Which of those that are stored
// are here is for the load window to say (load_window.h).
//
// They lie in a slab, with wheels beside it whose timers are the slab's indices (task_timers.h). A
// task has at most one timer: until it is due, then for its lease.
//
// Invariants, tested by check_invariants():
//  1. A task in memory is scheduled (in a wheel), ready (in its queue's order), or leased (in a
//     wheel until its lease deadline), as lifecycle.h allows; it never is two of these.
//  2. Every leased task has a lease of its number, and every lease such a task.
//  3. The counts of a queue that concern the memory, and those of all queues here, are those of the
//     tasks in memory.
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
#include "engine/engine_time.h"
#include "engine/hand_out_turns.h"
#include "engine/lateness_account.h"
#include "engine/loaded_task.h"
#include "engine/queue.h"
#include "engine/task_news.h"
#include "engine/task_records.h"
#include "engine/task_timers.h"
#include "task/request.h"

namespace detent {

/// An open lease.
struct Lease {
  LoadedTask* task = nullptr;
  std::uint64_t epoch = 0;  // of the engine that gave the token: this one, or one before
  WallTime since{};
  std::string worker;
  RunOut run_out = RunOut::fails;
  LatenessParts late = {};
  bool is_told = false;  // its holder knows of it, whatever becomes of the next commit
};

/// A lease with all that another engine needs to hold it again.
struct HeldLease {
  std::uint64_t number = 0;  // LeaseToken::number
  Lease lease;               // without its task
  TaskId task;
  std::uint32_t attempts = 0;  // of the task, that have ended
  Tick until = 0;
  bool is_delivery = false;  // its holder is the deliverer of webhooks
};

/// A task wherever it is.
struct FoundTask {
  StoredTask stored;  // as staged
  TaskState state = TaskState::scheduled;
  LoadedTask* loaded = nullptr;  // null: it is on disk only
};

class LoadedTasks {
 public:
  using Leases = std::unordered_map<std::uint64_t, Lease>;  // by LeaseToken::number

  /// What it works on; all must outlive it.
  struct Parts {
    const Clock& clock;
    const EngineTime& time;
    QueueBook& queues;
    HandOutTurns& turns;
    TaskNews& news;
    LatenessAccount& lateness;
    TaskRecords& records;
  };
  /// At most `most_leased` are leased at a time; a queue of which `crowd` are here is a crowd
  /// (task_timers.h).
  LoadedTasks(Parts parts, std::size_t most_leased, std::size_t crowd);

  // Coming and going.

  /// Requires: it is not in memory. It is ready at once when it is due, or comes from a ready lane.
  void load(const Task& task, Place place, Deadline deadline);
  /// The task's record, if it has one still, is on disk only from now on.
  void unload(LoadedTask& task);
  /// A record that cannot be read leaves its queue, and the memory, for the quarantine.
  void set_aside(LoadedTask& task);
  /// The same of those that a page has met, be they in memory or not, but for what is staged: what
  /// becomes of that was decided without reading it. `queue` is whose lane they lie in; null for
  /// the due order, which can't tell, so that the counts of their queues stay too high. Nor can a
  /// place tell the bytes of the payload and the bin of the forecast: those stay counted (the bytes
  /// until the queue has no task at all).
  void set_aside(std::span<const Place> places, Queue* queue);

  // Time.

  /// Makes ready what is due of the timers in one wheel, or a part of it, for as long as it takes
  /// to look at `limit` timers; answers whether there are more. Tasks whose leases have run out,
  /// which have no timer now, come to `ran_out`.
  bool fire(TaskTimers::Wheel wheel, Tick now, std::size_t limit,
            std::vector<LoadedTask*>& ran_out);
  TaskTimers& timers() noexcept { return timers_; }
  const TaskTimers& timers() const noexcept { return timers_; }
  /// The wall clock was stepped: tasks with a date get new timers. O(tasks).
  void retime();
  /// A task became due: counts it, wherever it lies.
  void note_fired(TaskId id, const Queue& queue, Tick tick, MonotonicTime now);

  // Ready tasks, and leased ones.

  /// A task that is neither takes its place in the order of its queue; or leaves it.
  void enter_ready(LoadedTask& task);
  void leave_ready(LoadedTask& task);
  void open_lease(std::uint64_t number, Lease lease, Tick until);
  /// A leased task is ready again, as if it had not been leased.
  void give_back(LoadedTask& task);
  /// How many tasks of the queue may be handed out at this moment.
  std::size_t allowance(const Queue& queue) const;
  bool is_full_of_leases() const noexcept { return leases_.size() >= most_leased_; }
  /// A limit of the queue, or what it has used up of it, may have changed.
  void note_limits(Queue& queue) { parts_.lateness.note_limits(queue, is_full_of_leases()); }
  const Leases& leases() const noexcept { return leases_; }
  /// Those that verbs have ended since the last commit: if that fails, their tasks may be
  /// unchanged.
  const std::vector<HeldLease>& ended_leases() const noexcept { return ended_leases_; }
  void forget_ended_leases() noexcept { ended_leases_.clear(); }
  /// All that are open.
  std::vector<HeldLease> held_leases() const;
  void note_told(std::uint64_t number) { leases_.at(number).is_told = true; }
  /// The lease that a token stands for; null when nobody holds it any more.
  const Lease* find_lease(LeaseToken token) const noexcept;

  // Finding and reading.

  /// Null when it is not in memory.
  LoadedTask* find_loaded(TaskId id) const noexcept;
  /// Errors: not_found.
  Result<FoundTask> find(TaskId id);
  /// Its record. One that cannot be read is set aside.
  Result<Task> read(LoadedTask& task);
  /// Wherever it is. One that is overdue and on disk waits to be loaded, or for its turn in the
  /// ready lane: it is ready.
  TaskState state_of(const Task& task) const;
  /// The task in a place of the slab, below slot_limit(); null when there is none.
  LoadedTask* at(std::uint32_t slot) const noexcept { return tasks_.find(slot); }
  std::uint32_t slot_limit() const noexcept { return tasks_.index_limit(); }
  template <class Visit>
  void for_each(Visit visit) const {
    tasks_.for_each(visit);
  }

  std::size_t size() const noexcept { return tasks_.size(); }
  std::size_t ready() const noexcept { return ready_; }
  /// Of the ready ones, those before the default priority.
  std::size_t urgent() const noexcept { return urgent_; }
  /// Tasks whose place is in a ready lane.
  std::uint64_t loaded_from_lanes() const noexcept { return loaded_from_lanes_; }
  /// No ready task in memory is due after it.
  WallTime latest_ready() const noexcept { return latest_ready_; }

  /// Whether no step would ever touch the task again: invariants 1 and 2 of it. O(log ready).
  bool would_be_stuck(LoadedTask& task) const;
  /// Stops the process if an invariant is broken. O(queues × tasks).
  void check_invariants() const;
  /// The queues with a ready task in memory, in no order.
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
  TaskTimers timers_;             // named by their indices in the slab
  std::vector<LoadedTask*> due_;  // while they fire
  std::unordered_map<std::uint64_t, LoadedTask*> by_id_;
  Leases leases_;
  std::vector<HeldLease> ended_leases_;
  std::uint64_t loaded_from_lanes_ = 0;
  std::size_t ready_ = 0;
  std::size_t urgent_ = 0;
  WallTime latest_ready_{};
  std::vector<Queue*> with_ready_;  // at Queue::among_ready_at
};

/// What verbs on a task say when it is not there.
Error no_such_task(TaskId id);
/// The conflict of who may not do this to a task as it is: leased by somebody, or ended.
Error not_allowed(TaskId id, TaskState state);

}  // namespace detent

// The engine schedules tasks durably and hands them out when they are due.
//
// The engine has one method per verb. A verb changes memory immediately and stages the records that
// must become durable. commit() writes everything that was staged since the previous commit as one
// batch with one sync (group commit). A client must not get the answer of a verb before the next
// commit. Therefore callers leave their reply with after_commit(). turn() does the rest: it fires
// due tasks, ends expired leases, serves waiting workers, commits, and moves the load window.
//
// The verbs are in groups, one class for each idea. An Engine inherits all groups, so callers see
// one object (engine.schedule(), engine.lease()). The class Engine itself only has the start, the
// turn, the commit and the stop:
//
//     TaskVerbs       schedule, restore, get, edit, move, run now, redrive or cancel one task
//     QueueVerbs      settings and pause of a queue; redrive, purge or run all its tasks
//     HandOutVerbs    tasks for workers, which ask or wait, and for the deliverer of webhooks
//     LeaseVerbs      the holder of a lease: complete, fail, extend, release, bury
//     ScheduleVerbs   recurring schedules
//     FarVerbs        tasks that an external scheduler keeps
//     ListVerbs       lists, and the first task of a queue in a state
//     FigureVerbs     counts of queues, figures of the engine, the forecast
//
// The groups have no state. They use the parts (verbs/engine_parts.h), and each part has its own
// state and invariants:
//
//     Transitions      carries out the changes of a task's state
//     HandOut          which worker gets which ready task   (with HandOutTurns, WaitingWorkers)
//     LoadWindow       which stored tasks are in memory
//     LoadedTasks      the tasks in memory: scheduled, ready or leased
//     TaskRecords      the stored and the staged records   (with ScheduleRegistry)
//     QueueRegistry    the queues and their sums
//     CommitWriter     writes and syncs
//     Answers          the answers that wait for a commit
//     LatenessAccount, TaskNews   counters and events
//
// To follow a verb to the disk, read for example:
//
//  1. verbs/task_verbs.cc        schedule() and accept()
//  2. verbs/transitions.cc       add() gives the task its place
//  3. records/task_records.cc    put() stages the record; later, commit() takes all staged records
//  4. records/commit_writer.cc   commit(), called by turn()
//  5. the store                  write(); in RocksDB rocksdb/open_store.cc, write_while()
//
// A task has three positions:
// - Its **due time** (`due_at`) is the instant that the user asked for. It is in the record.
// - Its **tick** is the steady time when the wheel fires it.
// - Its **place** is the position of its record in the store: in the due order at its due time, in
//   a ready lane, in a dead lane, or among the ended tasks.
//
// After a crash the store has everything up to the last commit. Leases exist only in memory, so
// their tasks are handed out again with the same attempt number. Lease tokens from before the crash
// are stale, because the new epoch is higher. An attempt counts once its end is durable.
//
// After a failed commit the outcome is unknown. The engine then acknowledges no request and answers
// every verb with `unavailable`. A new engine must open the store again. It takes over the leases
// whose tasks are unchanged (take_over_leases).
//
// Confined to one thread. In the server this is the EngineThread (engine_thread.h).
#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <vector>

#include "base/result.h"
#include "detent/clock.h"
#include "engine/values/answers.h"
#include "engine/values/engine_values.h"
#include "engine/verbs/engine_parts.h"
#include "engine/verbs/far_verbs.h"
#include "engine/verbs/figure_verbs.h"
#include "engine/verbs/hand_out_verbs.h"
#include "engine/verbs/lease_verbs.h"
#include "engine/verbs/list_verbs.h"
#include "engine/verbs/queue_verbs.h"
#include "engine/verbs/schedule_verbs.h"
#include "engine/verbs/task_verbs.h"
#include "store/store.h"

namespace detent {

class Engine final : public TaskVerbs,
                     public QueueVerbs,
                     public HandOutVerbs,
                     public LeaseVerbs,
                     public ScheduleVerbs,
                     public FarVerbs,
                     public ListVerbs,
                     public FigureVerbs {
 public:
  using WaitId = detent::WaitId;
  using Committed = Answers::Committed;

  // One task, or one step of all tasks of a queue.
  using QueueVerbs::redrive;
  using QueueVerbs::run_now;
  using TaskVerbs::redrive;
  using TaskVerbs::run_now;

  /// Recovers from the store: takes a new epoch and loads the window, overdue tasks first.
  /// `store` and `clock` must outlive the engine.
  static Result<std::unique_ptr<Engine>> open(Store& store, Clock& clock, EngineOptions options);
  /// After a failure of the store: takes over the open leases of the previous engine, with their
  /// tokens. Some leases are left out: expired leases, leases whose task has changed in the store
  /// or cannot be read, and leases whose holder never got the answer. Does nothing without
  /// `keep_leases`, or if another engine had the store in between. Call it before the first verb.
  /// It does not read the store of `failed`, which may be closed. Cost: one read per lease.
  void take_over_leases(const Engine& failed);
  ~Engine();
  Engine(const Engine&) = delete;
  Engine& operator=(const Engine&) = delete;

  /// Runs `committed` with the result of the next commit, in the order of the calls. `committed`
  /// must not call a verb. Requires: no `done` of a wait is running.
  void after_commit(Committed committed);
  /// The number of tasks that the next commit changes.
  std::size_t staged() const noexcept { return parts_->records.staged().changes().size(); }
  /// Writes the staged records, then runs the callbacks of after_commit().
  Result<void> commit();
  /// The last verb, for a graceful stop: answers every wait, writes the open leases that should
  /// outlive the stop, and commits. Cost: one key per lease.
  Result<void> close();

  /// Call this before verbs that waited during a turn, or after a long sleep. It looks whether the
  /// wall clock was stepped, because a verb converts a date to a tick immediately. It also makes
  /// tasks ready that became due since the last turn, so that they are handed out before tasks that
  /// the new verbs create. A lease that expired in this time still counts until the turn, because
  /// its worker may have answered in time. Bounded: it fires one part of each wheel, as turn()
  /// does, and serves waiting workers between the wheels.
  void catch_up();
  /// Call this between the parts of long work. It makes due tasks ready and hands them to waiting
  /// workers before the commit (hand_out.h). It is bounded like one step of a turn. It costs almost
  /// no time if no worker waits, or for the second call in a tick.
  void hand_out_due();
  /// One turn: fires due tasks, ends expired leases, serves waiting workers, commits, and moves
  /// some tasks between memory and disk. The work is bounded. If some work is left, next_wakeup()
  /// is now. Returns the error that stopped the engine, if there is one.
  Result<void> turn();
  /// When the next turn is needed. Empty: not before the next call of a verb.
  std::optional<MonotonicTime> next_wakeup() const;

  /// The error after which this engine acknowledges no request; empty while the engine works.
  const std::optional<Error>& stopped_by() const noexcept { return parts_->writer.stopped_by(); }
  /// For tests: checks the invariants of all parts, and compares the counts with the store. Stops
  /// the process if an invariant is broken. Slow: reads everything.
  void check_invariants();

 private:
  explicit Engine(std::unique_ptr<EngineParts> parts);
  Result<void> recover();

  // Steps of a turn: engine_turn.cc.
  void notice_clock();
  void refresh_schedules();
  std::vector<LoadedTask*> fire_tasks();
  void fire_due();
  void end_leases(const std::vector<LoadedTask*>& ran_out);
  void serve_due();
  Result<void> tend_memory(MonotonicTime turn_start);
  LoadWindow::Moves moves_now(MonotonicTime now);
  bool do_workers_come();
  bool is_due_soon() const;
  void hand_out_until(Doorbell& written);
  Result<void> forget_ended();

  friend struct PlantedOrphans;  // a test of the look for orphans

  const std::unique_ptr<EngineParts> parts_;

  // State of the turn.
  MonotonicTime last_fired_{};           // when fire_tasks() was called last
  MonotonicTime::duration step_time_{};  // what a step of tend_memory() takes
  bool moves_wait_ = false;              // the last turn made no moves, because a task is due soon
  Tick workers_come_until_ = 0;
  // How often expired keys and ended tasks are removed, and how often the rules of schedules are
  // read again because tzdata may be newer. Then the ticks of the next times.
  static constexpr Tick kForgetTicks = 1'000;
  static constexpr Tick kRefreshTicks = 3'600'000;
  Tick next_forget_ = 0;
  Tick next_refresh_ = 0;
};

}  // namespace detent

// The product: schedules tasks durably, hands them out when they are due, and forgets none.
//
// One method a verb. A verb changes memory at once and stages what must become durable; commit()
// writes everything staged since the last one as one batch with one sync (group commit). Nobody may
// be told what a verb answered before the commit() after it: callers leave their reply with
// after_commit(). turn() does the rest: what has become due, leases that ran out, workers that
// wait, the commit, and the load window.
//
// Memory holds the tasks of the **load window** only: every stored task whose place in the due
// order is at or before `loaded_to_`, and no other (invariant 1). Their payloads stay in the store.
// Far tasks cost no memory until the window reaches them. When `max_loaded` tasks are in memory the
// window shrinks, so what is due first stays; only when due tasks alone fill the memory does a new
// one get a place behind the window, and waits on disk until workers have made room.
//
// Three times belong to a task. Its **due time** (`due_at`) is what the user asked for, in the
// record. Its **tick** is when the wheel fires it, on steady time. Its **place** is where it lies
// in the store's due order: at its due time, but for a task put behind a full memory and a dead
// one.
//
// Invariants, tested by check_invariants():
//  1. A live task is in memory exactly when its place is ≤ loaded_to_. Dead tasks never are.
//  2. A task in memory is scheduled (in the wheel), ready (in its queue's order), or leased (in the
//     wheel until its lease deadline), as lifecycle.h allows; it never is two of these.
//  3. A queue's counts are those of the store after the next commit.
//
// What a crash leaves: everything up to the last commit. Leases are memory, so their tasks are
// handed out again with the same attempt number, and tokens of the earlier run are stale because
// the epoch is higher. An attempt counts once it has ended and that is durable.
//
// After a failed commit the outcome is unknown; the engine then acknowledges nothing and refuses
// every verb with `unavailable` until the store is opened again by a new engine.
//
// Confined to one thread: EngineThread (engine_thread.h) in the server, the test's own in tests.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "base/histogram.h"
#include "base/result.h"
#include "base/rng.h"
#include "base/slab.h"
#include "detent/clock.h"
#include "detent/dense_wheel.h"
#include "detent/unique_function.h"
#include "engine/engine_stats.h"
#include "engine/engine_time.h"
#include "engine/staging.h"
#include "store/store.h"
#include "task/request.h"

namespace detent {

struct EngineOptions {
  /// How far ahead of now tasks are loaded.
  std::chrono::milliseconds window = std::chrono::minutes{10};
  /// Most tasks held in memory; about 300 bytes each.
  std::size_t max_loaded = 1'000'000;
  Durability durability = Durability::synced;
  /// Seeds the jitter of retries.
  std::uint64_t seed = 0;
};

/// Where a verb over a whole queue goes on: after this place, with tasks up to this id (0: all that
/// have been accepted). A new one begins.
struct QueueCursor {
  DueKey after = kFirstDueKey;
  TaskId last_id;
};
/// What one step of a verb over a whole queue did.
struct QueueStep {
  std::size_t count = 0;            // tasks changed
  std::optional<QueueCursor> next;  // none: it is done
};

class Engine {
 public:
  using WaitId = std::uint64_t;
  using Committed = UniqueFunction<void(const Result<void>&)>;
  using LeaseDone = UniqueFunction<void(Result<std::vector<LeasedTask>>)>;

  /// Recovers from the store: takes a new epoch and loads the window, overdue tasks first.
  /// `store` and `clock` must outlive the engine.
  static Result<std::unique_ptr<Engine>> open(Store& store, Clock& clock, EngineOptions options);
  ~Engine();
  Engine(const Engine&) = delete;
  Engine& operator=(const Engine&) = delete;

  /// Accepts a task and gives it its id. Errors: as validate(ScheduleRequest).
  Result<TaskView> schedule(const ScheduleRequest& request);
  /// Errors: not_found.
  Result<TaskView> get(TaskId id);
  /// Removes a task that is not leased. Errors: not_found; conflict when it is leased.
  Result<void> cancel(TaskId id);
  /// Gives a task another due time; the answer shows it as moved. A dead one lives again and has
  /// all its attempts before it, as redrive() does it. Durable: the new due time. Errors: as
  /// validate(ScheduleRequest) for `due`; not_found; conflict when it is leased.
  Result<TaskView> move(TaskId id, const Due& due);
  /// Makes a task due now. One that is ready stays where it is in its queue's order; a dead one
  /// lives again. Durable: the due time, where it changed. Errors: not_found; conflict when it is
  /// leased.
  Result<TaskView> run_now(TaskId id);
  /// Puts a dead task back, due now: it has all its attempts before it, and keeps its last error
  /// until the next. Durable: that it lives. Errors: not_found; conflict when it is not dead.
  Result<TaskView> redrive(TaskId id);

  /// One step of redrive() for the dead tasks of a queue, at most `limit`. A step reads at most
  /// 1 000 records and changes as many, however many there are: while its answer has `next`, call
  /// again with that, in a later turn. It reads the dead tasks of all queues from where it goes on.
  /// A record that is damaged is passed over. Durable: each step of its own. Errors: not_found when
  /// the queue never had a task.
  Result<QueueStep> redrive(const std::string& queue, std::size_t limit, QueueCursor from = {});
  /// Likewise removes the tasks of a queue that are not leased: scheduled, ready, dead. Tasks
  /// accepted after the first step stay. It reads the due order of all queues from its start until
  /// none of this queue is left, so a small queue among n tasks costs up to n reads, in steps.
  /// A task that is moved, or whose lease ends, behind a purge under way may be left.
  Result<QueueStep> purge(const std::string& queue, std::size_t limit, QueueCursor from = {});

  /// Hands out what is ready now, most urgent first (priority, then due time, then id); may be
  /// nothing. Answers at most kMaxLeaseBytes of payload at once.
  Result<std::vector<LeasedTask>> lease(const LeaseRequest& request);
  /// The same, but when nothing is ready waits for a task, at most `wait`; workers of a queue are
  /// served in the order in which they came. `done` runs after a commit, exactly once, with nothing
  /// when the wait was in vain or abandoned.
  WaitId lease_or_wait(const LeaseRequest& request, std::chrono::milliseconds wait, LeaseDone done);
  /// Ends a wait without a task, for a worker that has gone; one that is over is no matter.
  void abandon_wait(WaitId id);
  /// Ends every wait and lets none begin, for a stop.
  void end_waits();

  /// The work is done: the task is removed.
  Result<LeaseOutcome> complete(LeaseToken lease);
  /// The attempt failed: the task comes back after a delay, or is dead after its last attempt.
  Result<LeaseOutcome> fail(const FailRequest& request);
  /// The work takes longer: the lease runs out `by` from now, or when it did if that is later.
  /// Nothing is durable: leases are memory. Errors: invalid_argument unless `by` is 1 ms … 30 days.
  Result<LeaseOutcome> extend(LeaseToken lease, std::chrono::milliseconds by);
  /// Gives the task back unharmed: the attempt does not count. It is ready again at its old place
  /// in its queue's order, or scheduled when `delay` is more than nothing; `priority` is its new
  /// one. Durable: delay and priority; without them nothing has changed on disk. Errors:
  /// invalid_argument for `delay`.
  Result<LeaseOutcome> release(LeaseToken lease,
                               std::optional<std::chrono::milliseconds> delay = {},
                               std::optional<std::uint32_t> priority = {});
  /// The attempt failed and no other will do better: the task is dead at once. `priority` is its
  /// new one, for when it lives again. Durable: the task as dead, this attempt counted. Answers
  /// `dead`.
  Result<LeaseOutcome> bury(LeaseToken lease, std::string error,
                            std::optional<std::uint32_t> priority = {});

  /// Runs `committed` after the next commit, with its result; in the order of the calls.
  void after_commit(Committed committed);
  /// Writes what is staged, then runs what waits for it.
  Result<void> commit();

  /// Looks whether the wall clock was stepped. turn() does, too; who calls verbs after a long sleep
  /// calls it first, because a date is turned into a tick at once.
  void notice_clock();
  /// One round: fires what is due, ends leases that ran out, serves waiting workers, commits, and
  /// loads a page of the window if there is room. Work is bounded: next_wakeup() is now when some
  /// is left. Returns the error that stopped the engine, if one has.
  Result<void> turn();
  /// When the next turn is needed; none: not until a verb is called.
  std::optional<MonotonicTime> next_wakeup() const;

  EngineStats stats() const;
  /// The error after which this engine acknowledges nothing; none while it works.
  const std::optional<Error>& stopped_by() const noexcept { return stopped_by_; }
  /// Brute-force check of the invariants above; stops the process when one is broken. For tests.
  void check_invariants();

 private:
  struct Queue;
  struct LoadedTask;
  struct Wait;
  struct Found;
  struct ReadyOrder {
    bool operator()(const LoadedTask* a, const LoadedTask* b) const noexcept;
  };
  /// Where a task goes next: its due instant as stored, its tick, and whether it follows the wall
  /// clock when that is stepped.
  struct Deadline {
    WallTime due_at{};
    Tick tick = 0;
    bool follows_wall = false;
  };

  Engine(Store& store, Clock& clock, EngineOptions options);
  Result<void> recover();

  // Tasks in memory.
  void load(const Task& task, DueKey place, Deadline deadline);
  void unload(LoadedTask& task);
  void become_ready(LoadedTask& task);
  LoadedTask* find_loaded(TaskId id) noexcept;
  LoadedTask* holder_of(LeaseToken lease) noexcept;
  Queue& queue_of(const std::string& name);
  bool is_loaded_place(DueKey place) const noexcept { return place <= loaded_to_; }

  // Steps of the verbs.
  Deadline deadline_of(const Due& due) const;
  Deadline dated(WallTime due_at) const;
  /// Gives a task its place, in memory if that is within the window, and stages it.
  void place(Task task, std::optional<DueKey> from, Deadline deadline);
  /// The task has ended: stages its removal and forgets it.
  void remove(LoadedTask& task);
  /// Likewise for one that is on disk only.
  void remove(const StoredTask& stored);
  Result<std::vector<LeasedTask>> take_ready(Queue& queue, const LeaseRequest& request);
  LeasedTask hand_out(LoadedTask& loaded, Task task, const LeaseRequest& request);
  /// `verb` is fail or run_out.
  LeaseOutcome end_attempt(LoadedTask& loaded, Task task, TaskVerb verb,
                           std::optional<std::chrono::milliseconds> delay);
  void rest_dead(LoadedTask& loaded, Task task);
  void give_back(LoadedTask& loaded);
  /// A task that is not leased gets another due time, and lives if it was dead.
  TaskView put_at(Found found, Deadline deadline);
  template <class Visit>
  Result<QueueStep> sweep(Queue& queue, std::size_t limit, QueueCursor from, Visit visit);
  Result<Queue*> known_queue(const std::string& name);
  void note_counts(Queue& queue);

  // Records, as this turn has left them.
  Result<Task> read(LoadedTask& loaded);
  Result<std::vector<Result<Task>>> read_all(const std::vector<LoadedTask*>& tasks);
  Result<std::optional<StoredTask>> find_stored(TaskId id);
  /// Errors: not_found.
  Result<Found> find(TaskId id);
  TaskState state_on_disk(const Task& task) const;
  /// A record that cannot be read leaves the queue for the quarantine.
  void set_aside(LoadedTask& task);

  // Steps of a turn.
  void fire_due();
  void end_leases(const std::vector<LoadedTask*>& ran_out);
  void want_serving(Queue& queue);
  void serve_waits();
  void finish_wait(Wait& wait, Result<std::vector<LeasedTask>> answer);
  void forget_if_unused(Queue& queue);
  void answer_after_commit(LeaseDone done, Result<std::vector<LeasedTask>> answer);
  Result<void> write_staged();
  bool wants_page() const;
  bool is_full() const noexcept { return loaded_.size() >= options_.max_loaded; }
  bool has_placed_behind() const noexcept { return behind_to_ > loaded_to_.at; }
  std::size_t room_for_pages() const noexcept;
  void shrink_window();
  Result<void> load_page();
  Error stop_acknowledging(Error error);

  // Constant after construction.
  Store& store_;
  Clock& clock_;
  const EngineOptions options_;

  EngineTime time_;
  Rng rng_;
  std::uint64_t epoch_ = 0;
  std::uint64_t last_lease_ = 0;
  TaskId last_id_;
  DueKey loaded_to_ = kFirstDueKey;  // invariant 1
  bool more_stored_ = true;          // a page was cut short, or the window has shrunk
  WallTime behind_to_{};             // the farthest place given to a task behind a full memory
  Tick next_shrink_ = 0;             // not before: the last attempt looked at all tasks in vain
  std::optional<Error> stopped_by_;

  // The timers of a wheel are the indices of the slab above it.
  Slab<LoadedTask> loaded_;
  DenseWheel due_wheel_;  // due, or lease run out
  Slab<Wait> waits_;
  DenseWheel wait_wheel_;  // waited long enough
  std::unordered_map<std::uint64_t, LoadedTask*> loaded_by_id_;
  std::unordered_map<std::uint64_t, LoadedTask*> leases_;  // by token number
  std::unordered_map<WaitId, Wait*> waits_by_id_;
  std::unordered_map<std::string, std::unique_ptr<Queue>> queues_;
  WaitId last_wait_ = 0;
  bool waits_ended_ = false;
  std::vector<Queue*> to_serve_;  // have ready tasks and waiting workers

  Staging staging_;
  std::vector<Queue*> changed_counts_;
  std::vector<Committed> after_commit_;
  TaskCounters counters_;
  std::uint64_t commits_ = 0;
  std::uint64_t committed_tasks_ = 0;
  Histogram lateness_;
  Histogram commit_time_;
};

}  // namespace detent

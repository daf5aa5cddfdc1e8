// The engine schedules tasks durably and hands them out when they are due.
//
// The engine has one method per verb. A verb changes memory immediately and stages the records that
// must become durable. commit() writes everything that was staged since the previous commit as one
// batch with one sync (group commit). A client must not get the answer of a verb before the next
// commit. Therefore callers leave their reply with after_commit(). turn() does the rest: it fires
// due tasks, ends expired leases, serves waiting workers, commits, and moves the load window.
//
// A task has three positions:
// - Its **due time** (`due_at`) is the instant that the user asked for. It is in the record.
// - Its **tick** is the steady time when the wheel fires it.
// - Its **place** is the position of its record in the store: in the due order at its due time, in
//   a ready lane, in a dead lane, or among the ended tasks.
//
// An engine has several parts. Each part has its own state and invariants. The verbs use the parts
// (engine_*.cc, one file per theme):
//
//     HandOut          which worker gets which ready task   (with HandOutTurns, WaitingWorkers)
//     LoadWindow       which stored tasks are in memory
//     LoadedTasks      the tasks in memory: scheduled, ready or leased
//     TaskRecords      the stored and the staged records   (with ScheduleRegistry)
//     QueueRegistry    the queues and their sums
//     CommitWriter     writes and syncs
//     Answers          the answers that wait for a commit
//     LatenessAccount, TaskNews   counters and events
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

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "base/rng.h"
#include "detent/clock.h"
#include "engine/hand_out/hand_out.h"
#include "engine/queues/hand_out_turns.h"
#include "engine/queues/lateness_account.h"
#include "engine/queues/queue_registry.h"
#include "engine/records/commit_writer.h"
#include "engine/records/task_news.h"
#include "engine/records/task_records.h"
#include "engine/values/answers.h"
#include "engine/values/engine_stats.h"
#include "engine/values/engine_time.h"
#include "engine/values/engine_values.h"
#include "engine/values/external_stamp.h"
#include "engine/window/load_window.h"
#include "engine/window/loaded_tasks.h"
#include "engine/window/orphan_look.h"
#include "store/store.h"
#include "task/forecast.h"
#include "task/request.h"
#include "task/task_filter.h"
#include "task/wheel_view.h"

namespace detent {

class Engine {  // NOLINT(clang-analyzer-optin.performance.Padding): grouped by meaning
 public:
  using WaitId = detent::WaitId;
  using Committed = Answers::Committed;

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

  /// Accepts a task and gives it an id. If the key already stands for a task, the answer is that
  /// task in its present state, and no task is added. The answer has no payload. Errors: as
  /// validate(ScheduleRequest); conflict if the task of the key was requested with other content;
  /// resource_exhausted if the queue is at its quota.
  Result<TaskSnapshot> schedule(ScheduleRequest request);
  /// Copies a task from another store, with its id and state. Returns false, and changes nothing,
  /// if the task already exists. If the key stands for another task, the key stays with that task.
  /// A key whose task was set aside as damaged counts as free. Errors: as
  /// validate(ScheduleRequest). Conflict if the id belongs to another task: of another queue, or
  /// with another creation time. invalid_argument if no task can have the id, if the task has
  /// ended, or if this engine has no part of its queue.
  Result<bool> restore(Task task);
  /// Errors: not_found.
  Result<TaskSnapshot> get(TaskId id);
  /// The live or dead task of a key. Errors: not_found; unavailable as for set_queue().
  Result<TaskId> id_of_key(const std::string& queue, std::string_view key);
  /// One part of a list: at most `limit` > 0 tasks that match the filter, after the place `after`.
  /// The list begins with the dead tasks, queue by queue, in the order of their death. The live
  /// tasks follow by due time. The ended tasks are last, the next task to be forgotten first. A
  /// call reads a bounded number of records, so the answer may be short or empty. To continue, call
  /// again with its `next`. If no verb touches a task between two calls, the list has the task
  /// exactly once, even if the task moves between memory and disk. Damaged records are passed over.
  /// Errors: resource_exhausted if the ready tasks on disk have too many priorities for a merge by
  /// due time, or if a key must be searched in too many queues.
  Result<TaskList> list(const TaskFilter& filter, Place after, std::size_t limit);
  // Prepares one verb for many tasks: reads the records that the verb will need in one call of the
  // store. The verbs then need few reads of their own until the next commit or the next
  // read_ahead(). If a record cannot be read, the verb reports the error. Memory: these tasks.
  void read_ahead(std::span<const TaskId> ids);
  /// The same for the tasks of these keys, and for the records of the keys.
  void read_ahead(const std::string& queue, std::span<const std::string> keys);
  /// Removes a task. Errors: not_found; conflict if the task is leased or has ended.
  Result<void> cancel(TaskId id);
  /// Gives a task another due time. The answer shows the task after the move. A dead task becomes
  /// live with all its attempts, as with redrive(). Durable: the new due time. Errors: as
  /// validate(ScheduleRequest) for `due`; not_found; conflict if the task is leased.
  Result<TaskSnapshot> move(TaskId id, const Due& due);
  /// Changes the given fields of a task. If a due time is given, the task moves as with move().
  /// Otherwise it keeps its state: a dead task stays dead. Only its place in the order of its queue
  /// may change. The key still stands for the task as it was first requested. Durable. Errors: as
  /// validate(TaskEdit); not_found; conflict if the task is leased; resource_exhausted if a longer
  /// payload exceeds the quota of the queue.
  Result<TaskSnapshot> edit(TaskId id, const TaskEdit& edit);
  /// Makes a task due now. A ready task keeps its place in the order of its queue. A dead task
  /// becomes live. Durable: the due time, if it changed. Errors: not_found; conflict if the task is
  /// leased.
  Result<TaskSnapshot> run_now(TaskId id);
  /// Makes a dead task ready, due now, with all its attempts. The task keeps its last error until
  /// the next error. Durable: the new state. Errors: not_found; conflict if the task is not dead.
  Result<TaskSnapshot> redrive(TaskId id);

  /// One step of redrive() for the dead tasks of a queue, oldest first, at most `limit`. A step
  /// changes at most 1 000 tasks. While the answer has `next`, call again with it in a later turn.
  /// A damaged record is set aside. Durable: each step separately. Errors: not_found if the queue
  /// never had a task.
  Result<QueueStep> redrive(const std::string& queue, std::size_t limit, QueueCursor from = {});
  /// One step of removing the dead, scheduled and ready tasks of a queue. Leased tasks stay, and
  /// tasks accepted after the first step stay. Steps, cursor and errors are as for redrive() of a
  /// queue. A purge reads the due order of all queues from its start until this queue has no more
  /// tasks there. So a purge of a small queue among n tasks costs up to n reads, spread over steps.
  /// If a task moves, or its lease ends, at a place behind the cursor, the task may stay.
  Result<QueueStep> purge(const std::string& queue, std::size_t limit, QueueCursor from = {});
  /// One step of making the scheduled tasks of a queue due now, in the order of their due times. It
  /// reads the due order as purge() does. Steps, cursor and errors are as for redrive() of a queue.
  Result<QueueStep> run_now(const std::string& queue, std::size_t limit, QueueCursor from = {});

  /// The settings and counts of a queue. Errors: not_found if it has neither.
  Result<QueueView> queue(const std::string& name) const;
  /// Sets all settings of a queue, and creates the queue if necessary. The settings also apply to
  /// its present tasks, except that key retention and retention apply to tasks that end from now
  /// on. Durable. Errors: as validate(QueueSettings), or for the name; conflict if the queue was
  /// created with another number of partitions; unavailable if the queue is not on this engine
  /// (EngineOptions::is_here).
  Result<void> set_queue(const std::string& name, const QueueSettings& settings);
  /// Removes an empty queue and its settings. Errors: not_found; conflict while the queue has
  /// tasks.
  Result<void> remove_queue(const std::string& name);
  /// Pauses a queue for `length`, and replaces an earlier pause. 0 ends the pause. Creates the
  /// queue if necessary. The pause is in memory, not in the settings. Errors: as set_queue(),
  /// without conflict.
  Result<void> pause_for(const std::string& name, std::chrono::milliseconds length);
  /// Errors: not_found.
  Result<QueueDetail> queue_detail(const std::string& name) const;

  // The first task of a queue in a state, with its payload. For ready tasks this is the next task
  // that would be handed out. For dead tasks it is the task that has been dead longest. Errors:
  // not_found if there is no such task.
  Result<TaskSnapshot> first_ready(const std::string& queue);
  Result<TaskSnapshot> first_dead(const std::string& queue);
  /// Searches the due order of all queues for the next due task of the queue, in steps, as purge()
  /// does. If a step does not find it, `found` is empty, and `next` is the place for the next call.
  Result<ScheduledStep> first_scheduled(const std::string& queue, Place from = begin_of(Lane::due));
  /// The time until the lease of a task expires, or until a scheduled task is ready. 0 in the other
  /// states. Errors: not_found.
  Result<std::chrono::milliseconds> time_left(TaskId id);

  /// Hands out ready tasks without a webhook, most urgent first (priority, then due time, then id).
  /// The answer may be empty. It has at most 16 MiB of payload, or one task.
  Result<std::vector<LeasedTask>> lease(const LeaseRequest& request);
  /// The first task that lease() would hand out, for a caller that chooses between engines. Empty
  /// if no task is ready.
  Result<std::optional<ReadyHead>> next_ready(const LeaseRequest& request);
  /// Hands out a certain task, which is ready, scheduled or dead. A task that is not ready first
  /// becomes due now, durably. The queue and the number in `request` are ignored. Pauses and the
  /// rate limit do not apply. Errors: not_found; conflict if the task is leased, has ended, or has
  /// a webhook; resource_exhausted if its queue or the engine is at its limit of leases.
  Result<LeasedTask> lease_task(TaskId id, const LeaseRequest& request);
  /// As lease(), but if no task is ready, waits for a task, at most `wait`. The workers of a queue
  /// are served first come, first served. `done` runs exactly once, and never within this call. Its
  /// answer is empty if the wait expired or was abandoned. `done` usually runs after a commit. A
  /// waiting worker can get its tasks before the commit, even while the store writes, if the stored
  /// records of these tasks are current (hand_out_now.cc). Therefore `done` must not call a verb or
  /// after_commit().
  WaitId lease_or_wait(const LeaseRequest& request, std::chrono::milliseconds wait, LeaseDone done);
  /// Ends a wait without a task, because the worker has gone. Does nothing if the wait is over.
  void abandon_wait(WaitId id);
  /// For a stop: ends every wait and refuses new waits. Verbs that work in steps do not begin
  /// another step.
  void end_waits();
  /// Whether a verb that works in steps may begin another step. Errors: unavailable after
  /// end_waits().
  Result<void> expect_going_on() const;
  /// Whether a worker waits for a task.
  bool has_waits() const noexcept { return hand_out_.waiting() > 0; }

  // For the deliverer of webhooks. There is one deliverer. It ends its leases with the same verbs
  // as a worker. If it does not end a lease, the lease expires. After a crash, its tasks are ready
  // again.

  /// Hands out ready tasks with a webhook, at most `max`. The answer may be empty. The queues with
  /// such tasks take turns, and each queue gets an equal part of `max`. Within a queue, the most
  /// urgent task is first. Pauses, rate and concurrency of a queue apply as for workers. A queue
  /// in `held` is skipped until a later call leaves it out of `held`. Errors: as
  /// validate(DeliveryRequest).
  Result<std::vector<Delivery>> lease_deliveries(const DeliveryRequest& request,
                                                 const HeldWebhooks& held = {});
  /// As lease_deliveries(), but if there is no such task, waits without a time limit. `done` runs
  /// exactly once, after a commit. Its answer is empty if another call or end_waits() has ended the
  /// wait. `done` must not call a verb.
  void lease_deliveries_or_wait(const DeliveryRequest& request, const HeldWebhooks& held,
                                DeliveriesDone done);

  /// The queue of the leased task; "" if the lease is no longer open.
  std::string_view queue_of(LeaseToken lease) const noexcept;
  /// The work is done. Removes the task.
  Result<LeaseOutcome> complete(LeaseToken lease);
  /// The attempt failed: the task comes back after a delay, or is dead after its last attempt.
  Result<LeaseOutcome> fail(const FailRequest& request);
  /// Extends a lease: it expires `by` from now, or at its present deadline if that is later. Leases
  /// are in memory, so this call writes no record. Errors: invalid_argument unless `by` is 1 ms …
  /// 30 days.
  Result<LeaseOutcome> extend(LeaseToken lease, std::chrono::milliseconds by);
  /// Gives the task back. The attempt does not count. The task is ready again at its old place in
  /// the order of its queue, or scheduled if `delay` is greater than 0. `priority` replaces its
  /// priority. Durable: delay, priority and count. If none of these is given, the record on disk
  /// stays unchanged. Errors: invalid_argument for `delay`.
  Result<LeaseOutcome> release(LeaseToken lease,
                               std::optional<std::chrono::milliseconds> delay = {},
                               std::optional<std::uint32_t> priority = {},
                               ReleaseCount count = ReleaseCount::none);
  /// The attempt failed and a retry would not help: the task is dead immediately. `priority`
  /// replaces its priority, for the case that the task becomes live again. Durable: the dead task
  /// with this attempt counted. Answers `dead`.
  Result<LeaseOutcome> bury(LeaseToken lease, std::string error,
                            std::optional<std::uint32_t> priority = {});

  // Recurring schedules: engine_schedules.cc. turn() creates their tasks. The task and the step of
  // its schedule are in the same commit. All these calls can also answer not_found.

  /// Makes or replaces a schedule, as ScheduleRegistry::put(). Durable.
  Result<PutSchedule> put_schedule(RecurringSchedule schedule);
  /// Copies a schedule from another store, as ScheduleRegistry::restore(). Restore the tasks of the
  /// schedule first, so that no task is created a second time. Durable.
  Result<bool> restore_schedule(ScheduleRecord record);
  Result<ScheduleView> find_schedule(const std::string& name) const;
  /// At most `limit` schedules after the name `after`, by name.
  Result<std::vector<ScheduleView>> schedules_after(std::string_view after,
                                                    std::size_t limit) const;
  Result<std::vector<WallTime>> next_occurrences(const std::string& name, std::size_t count) const;
  /// A preview of put_schedule(): the rule in words, and its next occurrences, at most `count`.
  /// Changes nothing.
  Result<SchedulePreview> preview_schedule(RecurringSchedule schedule, std::size_t count) const;
  /// Removes a schedule. Its tasks stay. Durable.
  Result<void> remove_schedule(const std::string& name);
  /// Durable.
  Result<ScheduleView> pause_schedule(const std::string& name);
  Result<ScheduleView> resume_schedule(const std::string& name);
  /// Makes a task now. Durable. Errors: as schedule().
  Result<TaskSnapshot> trigger_schedule(const std::string& name);
  /// Checks that a back-fill of this range may begin. Errors: as
  /// ScheduleRegistry::check_backfill(); invalid_argument if the range ends before it begins. Cost:
  /// one search per occurrence.
  Result<void> check_backfill(const std::string& name, WallTime from, WallTime to) const;
  /// One step of a back-fill: creates the tasks of past occurrences, from `from` on and before
  /// `to`, due now. A step handles at most 1 000 occurrences. While the answer has `next` and no
  /// `stop`, call again from `next` on in a later turn. Durable. Errors: conflict if the schedule
  /// is broken or paused; unavailable after end_waits().
  Result<BackfillStep> backfill(const std::string& name, WallTime from, WallTime to,
                                std::size_t limit);

  // Far tasks, which an external scheduler keeps (external/far_tasks.h): engine_far.cc. While a
  // task is away, no verb finds it and no count includes it. A mark on an id says that the copy in
  // the external scheduler is not valid. All these changes, except unmark(), are synced with the
  // next commit, whatever `sync_interval` is. Otherwise a power cut could remove them here, while
  // the external scheduler keeps its side.

  /// Tasks after `after` in the due order that are only on disk, as of the last commit.
  Result<TaskPage> far_tasks(Place after, std::size_t limit);
  /// Marks tasks. Pass the copies of the external scheduler: after a copy is forgotten, its due
  /// time decides how long the engine remembers the id.
  void mark(std::span<const Task> tasks);
  /// Removes marks, after the external scheduler has forgotten the copies. Requires: the marks are
  /// in the last commit.
  Result<void> unmark(std::span<const TaskId> ids);
  /// At most `limit` > 0 marked ids, as of the last commit. Empty only if no id is marked.
  Result<std::vector<TaskId>> marked(std::size_t limit);
  /// Removes tasks and their marks, because the external scheduler now keeps the tasks. A task is
  /// removed if the stored task equals the given task, is only on disk and has no key. Tasks with a
  /// key stay, because a key stands for a task that is here. Returns the number of removed tasks.
  Result<std::size_t> hand_over(std::span<const Task> tasks);
  /// Restores and marks tasks that the external scheduler hands back. A marked task is skipped. A
  /// task that is already here is only marked. A task is also only marked if its copy was
  /// forgotten, until kForgottenFor after its due time, unless it was handed over again since.
  /// Returns the number of restored tasks. An error of one task is as for restore(); the call
  /// continues with the other tasks.
  Result<std::size_t> put_back(std::span<const Task> tasks);
  /// Whether a copy in the external scheduler is not valid, because the task is here, is marked, or
  /// its copy was forgotten.
  Result<bool> is_here_or_marked(TaskId id);
  void set_external_stamp(const ExternalStamp& stamp);
  /// The stored stamp. A default stamp if there is none, or if it cannot be read.
  Result<ExternalStamp> external_stamp();

  /// Runs `committed` with the result of the next commit, in the order of the calls. `committed`
  /// must not call a verb. Requires: no `done` of a wait is running.
  void after_commit(Committed committed);
  /// The number of tasks that the next commit changes.
  std::size_t staged() const noexcept { return records_.staged().changes().size(); }
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

  /// The figures of the engine, and of the at most `most_queues` queues with the most tasks. Cost:
  /// O(1) for 0, else O(queues); only the chosen queues are copied.
  EngineStats stats(std::size_t most_queues = kAllQueues) const;
  /// The figures of at most `most` queues with a ready task in memory. First is the queue whose
  /// most urgent ready task has been due longest. O(queues with a ready task).
  std::vector<QueueStats> oldest_queues(std::size_t most) const;
  /// The wheel of the tasks in memory. O(slots + timers / 56).
  WheelView wheel() const;
  /// How many live tasks are due in each of `bins` parts of the time from now on. O(bins + minutes
  /// with tasks). Errors: as validate_forecast().
  Result<Forecast> forecast(std::chrono::milliseconds span, std::size_t bins) const;
  /// Tasks of all states by id, to copy a store that is in use. A task that exists during the whole
  /// copy is read exactly once. The answer shows the last commit; a leased task is shown as before
  /// its lease.
  Result<TaskPage> tasks_after(TaskId after, std::size_t limit);
  /// The error after which this engine acknowledges no request; empty while the engine works.
  const std::optional<Error>& stopped_by() const noexcept { return writer_.stopped_by(); }
  /// For tests: checks the invariants of all parts, and compares the counts with the store. Stops
  /// the process if an invariant is broken. Slow: reads everything.
  void check_invariants();

 private:
  class Occurrences;
  struct KeptLease;

  Engine(Store& store, Clock& clock, EngineOptions options);
  Result<void> recover();
  void keep(std::uint64_t number, const Lease& lease);
  Result<void> take_up_leases();
  Result<void> take_up_leases(KeyRecord& note);
  template <class Visit>
  Result<void> visit_kept_leases(Visit visit);
  Result<void> take_up(const KeptLease& kept, const KeyRecord& record);
  void take_over(HeldLease held, const EngineTime& time);

  // Steps of the verbs.
  Result<std::optional<TaskSnapshot>> find_by_key(const ScheduleRequest& request, Queue& queue);
  Result<std::uint64_t> claim_key(const Queue& queue, Task& task);
  /// Stages a live task at its place in the due order. The task is also in memory if the place is
  /// within the window.
  void place(Queue& queue, Task task, std::optional<Place> from, Deadline deadline);
  /// The task has ended: stages its removal, or its record among the ended tasks, and removes it
  /// from memory.
  Result<void> remove(FoundTask found, TaskVerb verb);
  Result<void> remove(LoadedTask& loaded, TaskVerb verb);
  void tell_end(TaskId id, const Queue& queue, TaskState end);
  /// Gives a task that is not leased another due time. A dead task becomes live.
  TaskSnapshot put_at(FoundTask found, Deadline deadline);
  /// The same with the due time now, because of a request.
  TaskSnapshot put_now(FoundTask found);
  /// Stages the changed record of a task that keeps its due time.
  TaskSnapshot put_changed(FoundTask found);
  template <class Visit>
  Result<QueueStep> sweep(Queue& queue, std::size_t limit, QueueCursor from, Place until,
                          Visit visit);
  std::uint32_t partitions_of(const std::string& name) const;
  Result<void> expect_here(const std::string& queue, std::uint32_t partitions,
                           std::string_view key) const;
  Result<void> expect_here(const std::string& queue, std::string_view key) const {
    return options_.is_here ? expect_here(queue, partitions_of(queue), key) : ok();
  }
  /// Accepts a request that is valid and belongs to this engine.
  Result<TaskSnapshot> accept(ScheduleRequest request);
  Result<void> check_quota(const Queue& queue, std::size_t payload_bytes) const;
  Result<void> check_bytes(const Queue& queue, std::size_t more) const;
  QueueStats stats_of(const Queue& queue) const;
  QueueStats stats_of_all() const;
  Result<bool> is_here(TaskId id);
  Result<bool> is_marked(TaskId id);
  Result<bool> was_forgotten(TaskId id);
  Result<KeyRecord> lasting_key(std::string_view key);
  Result<bool> put_back(const Task& task);

  // Leases: engine_lease.cc.
  Result<LoadedTask*> bring_in(TaskId id);
  /// Loads a ready task of the store. If the window does not reach its place, the task moves to the
  /// ready lane of its queue, because a task of that lane may be in memory at any place.
  LoadedTask* load_ready(const FoundTask& found);
  const Lease* holder_of(LeaseToken lease) noexcept;
  /// `verb` is fail or run_out.
  LeaseOutcome end_attempt(const Lease& lease, Task task, TaskVerb verb, const FailRequest& how);
  void note_attempt(const Lease& lease, Task& task, std::string error);
  void rest_dead(LoadedTask& loaded, Task task, TaskVerb verb);
  void put_record_back(LoadedTask& loaded, Task task, std::optional<Deadline> deadline);
  void run_out(const Lease& lease, Task task);

  // Steps of a turn: engine_turn.cc.
  void notice_clock();
  void decide_schedules();
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

  // Constant after construction.
  Store& store_;
  Clock& clock_;
  const EngineOptions options_;
  std::uint64_t epoch_ = 0;

  // The parts. Each part uses only parts above it.
  EngineTime time_;
  QueueRegistry queues_;
  HandOutTurns turns_;
  TaskNews news_;
  LatenessAccount lateness_;
  CommitWriter writer_;
  TaskRecords records_;
  LoadedTasks tasks_;
  LoadWindow window_;
  Answers answers_;
  HandOut hand_out_;
  OrphanLook orphans_;

  // State of the turn.
  Rng rng_;
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

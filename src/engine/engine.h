// The product: schedules tasks durably, hands them out when they are due, and forgets none.
//
// One method a verb. A verb changes memory at once and stages what must become durable; commit()
// writes everything staged since the last one as one batch with one sync (group commit). Nobody may
// be told what a verb answered before the commit() after it: callers leave their reply with
// after_commit(). turn() does the rest: what has become due, leases that ran out, workers that
// wait, the commit, and the load window.
//
// Three times belong to a task. Its **due time** (`due_at`) is what the user asked for, in the
// record. Its **tick** is when the wheel fires it, on steady time. Its **place** is where its
// record lies in the store: in the due order at its due time, in a ready lane, among the dead, or
// among those kept after their end.
//
// An engine is made of parts, each with its own state and invariants; the verbs are written on
// these (engine_*.cc, by theme):
//
//     HandOut          who gets which ready task   (with HandOutTurns, WaitingWorkers)
//     LoadWindow       which of the stored tasks are in memory
//     LoadedTasks      those: scheduled, ready or leased
//     TaskRecords      what is stored, and over it what this turn has staged   (with ScheduleBook)
//     QueueBook        the queues, and what they add up to
//     CommitWriter     writes and syncs; Answers: what waits for them
//     LatenessAccount, TaskNews   what is counted and told
//
// What a crash leaves: everything up to the last commit. Leases are memory, so their tasks are
// handed out again with the same attempt number, and tokens of the earlier run are stale because
// the epoch is higher. An attempt counts once it has ended and that is durable.
//
// After a failed commit the outcome is unknown; the engine then acknowledges nothing and refuses
// every verb with `unavailable` until the store is opened again by a new engine, which takes over
// the leases whose tasks are unchanged (take_over_leases).
//
// Confined to one thread: EngineThread (engine_thread.h) in the server, the test's own in tests.
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
#include "engine/answers.h"
#include "engine/commit_writer.h"
#include "engine/engine_stats.h"
#include "engine/engine_time.h"
#include "engine/engine_values.h"
#include "engine/external_stamp.h"
#include "engine/hand_out.h"
#include "engine/hand_out_turns.h"
#include "engine/lateness_account.h"
#include "engine/load_window.h"
#include "engine/loaded_tasks.h"
#include "engine/orphan_look.h"
#include "engine/queue_book.h"
#include "engine/task_news.h"
#include "engine/task_records.h"
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
  /// After a failure of the store: takes over the leases of the engine before this one that have
  /// not run out, under their tokens, where their tasks are unchanged in the store. Leases whose
  /// holders were never told of them are left out. Does nothing without `keep_leases`, or when
  /// another engine had the store in between. A task that cannot be read is left out. Call it
  /// before the first verb. Reads nothing of the store of `failed`, which may be closed. Cost: a
  /// read a lease.
  void take_over_leases(const Engine& failed);
  ~Engine();
  Engine(const Engine&) = delete;
  Engine& operator=(const Engine&) = delete;

  /// Accepts a task and gives it its id. With a key that stands for a task already, the answer is
  /// that task, as it is now; nothing is added. The answer is without the payload. Errors: as
  /// validate(ScheduleRequest); conflict when the key stands for a task that was asked for with
  /// another content; resource_exhausted when the queue is at its quota.
  Result<TaskSnapshot> schedule(ScheduleRequest request);
  /// Takes over a task as it stands in another store, under its own id; does nothing when it is
  /// here. Answers whether it was not. A key that stands for another task here is left to that one;
  /// one whose task was set aside as damaged stands for none. Errors: as validate(ScheduleRequest);
  /// conflict when another task, of another queue or made at another time, has its id;
  /// invalid_argument for an id that no task can have, a task that has ended, or one of a queue of
  /// which no part is here.
  Result<bool> restore(Task task);
  /// Errors: not_found.
  Result<TaskSnapshot> get(TaskId id);
  /// The live or dead task that a key stands for. Errors: not_found; unavailable: see set_queue().
  Result<TaskId> id_of_key(const std::string& queue, std::string_view key);
  /// Tasks that the filter wants, at most `limit` > 0, after a place of this list: the dead ones,
  /// queue by queue in the order of their death; the live ones in due order; those kept after their
  /// end, in the order in which they will be forgotten. Reads a bounded number of records, so a
  /// step may find little; with `next` it goes on. A task that no verb touches between two steps is
  /// met once, whatever memory it moves to. A damaged record is passed over. Errors:
  /// resource_exhausted when ready tasks on disk are of too many priorities to be put in due order,
  /// or a key would have to be looked for in too many queues.
  Result<TaskList> list(const TaskFilter& filter, Place after, std::size_t limit);
  // Before the same verb for many: reads at once what it will ask of the store for each. Until the
  // next commit, or the next of these calls, verbs on these tasks cost few reads of their own. What
  // can't be read is left to the verb, which tells. Memory: these tasks.
  void read_ahead(std::span<const TaskId> ids);
  /// Those that the keys stand for, and the keys.
  void read_ahead(const std::string& queue, std::span<const std::string> keys);
  /// Removes a task that is not leased. Errors: not_found; conflict when it is leased, or ended.
  Result<void> cancel(TaskId id);
  /// Gives a task another due time; the answer shows it as moved. A dead one lives again and has
  /// all its attempts before it, as redrive() does it. Durable: the new due time. Errors: as
  /// validate(ScheduleRequest) for `due`; not_found; conflict when it is leased.
  Result<TaskSnapshot> move(TaskId id, const Due& due);
  /// Changes what is given of a task that is not leased. With another due time it is moved, as
  /// above; without one it stays where it is, but for the order of its queue: a dead one stays
  /// dead. Its key stands for it still, as it was asked for. Durable. Errors: as
  /// validate(TaskEdit); not_found; conflict when it is leased; resource_exhausted when a longer
  /// payload puts the queue over its quota.
  Result<TaskSnapshot> edit(TaskId id, const TaskEdit& edit);
  /// Makes a task due now. One that is ready stays where it is in its queue's order; a dead one
  /// lives again. Durable: the due time, where it changed. Errors: not_found; conflict when it is
  /// leased.
  Result<TaskSnapshot> run_now(TaskId id);
  /// Puts a dead task back, due now: it has all its attempts before it, and keeps its last error
  /// until the next. Durable: that it lives. Errors: not_found; conflict when it is not dead.
  Result<TaskSnapshot> redrive(TaskId id);

  /// One step of redrive() for the dead tasks of a queue, oldest first, at most `limit`. A step
  /// changes at most 1 000 tasks, however many there are: while its answer has `next`, call again
  /// with that, in a later turn. A record that is damaged is set aside. Durable: each step of its
  /// own. Errors: not_found when the queue never had a task.
  Result<QueueStep> redrive(const std::string& queue, std::size_t limit, QueueCursor from = {});
  /// Likewise removes the tasks of a queue that are not leased: dead, scheduled, ready. Tasks
  /// accepted after the first step stay. It reads the due order of all queues from its start until
  /// none of this queue is left, so a small queue among n tasks costs up to n reads, in steps.
  /// A task that is moved, or whose lease ends, behind a purge under way may be left.
  Result<QueueStep> purge(const std::string& queue, std::size_t limit, QueueCursor from = {});
  /// Likewise makes scheduled tasks of a queue due now, those that are due next first; read as by
  /// purge().
  Result<QueueStep> run_now(const std::string& queue, std::size_t limit, QueueCursor from = {});

  /// A queue's settings and counts. Errors: not_found when it has neither.
  Result<QueueView> queue(const std::string& name) const;
  /// Sets all settings of a queue, which is made if it is not there. They hold from now on, for the
  /// tasks it has, too; key retention and retention for those that end from now on. Durable.
  /// Errors: as validate(QueueSettings), or for the name; conflict for another number of partitions
  /// than the queue was made with; unavailable when it is not here (EngineOptions::is_here).
  Result<void> set_queue(const std::string& name, const QueueSettings& settings);
  /// Forgets an empty queue and its settings. Errors: not_found; conflict while it has tasks.
  Result<void> remove_queue(const std::string& name);
  /// Hands out nothing of a queue for so long, which ends a pause of before; 0 only ends it. Makes
  /// it if need be; kept in memory, not in settings. Errors: as set_queue(), but for conflict.
  Result<void> pause_for(const std::string& name, std::chrono::milliseconds length);
  /// Errors: not_found.
  Result<QueueDetail> queue_detail(const std::string& name) const;

  // The first of a queue's tasks in a state, with its payload: the next that would be handed out,
  // the one that has been dead longest, the one due next. Errors: not_found when there is none.
  Result<TaskSnapshot> first_ready(const std::string& queue);
  Result<TaskSnapshot> first_dead(const std::string& queue);
  /// The one due next is looked for in the due order of all queues, in steps, as purge() does it:
  /// `found` is empty and `next` is where to go on.
  Result<ScheduledStep> first_scheduled(const std::string& queue, Place from = begin_of(Lane::due));
  /// How long until the lease of a task runs out, or until a scheduled one is ready; 0 for others.
  /// Errors: not_found.
  Result<std::chrono::milliseconds> time_left(TaskId id);

  /// Hands out what is ready now and has no webhook, most urgent first (priority, then due time,
  /// then id); may be nothing. Answers at most 16 MiB of payload at once, or one task.
  Result<std::vector<LeasedTask>> lease(const LeaseRequest& request);
  /// What lease() would hand out first, for who chooses between engines; none: nothing.
  Result<std::optional<ReadyHead>> next_ready(const LeaseRequest& request);
  /// Hands out this one task, which is ready, scheduled or dead; what is not ready is made due now
  /// first, durably. Queue and number are those of the task; pauses and the rate do not count.
  /// Errors: not_found; conflict when it is leased, has ended, or goes to a webhook;
  /// resource_exhausted when its queue or the engine has as many leases as it may.
  Result<LeasedTask> lease_task(TaskId id, const LeaseRequest& request);
  /// The same, but when nothing is ready waits for a task, at most `wait`; workers of a queue are
  /// served in the order in which they came. `done` runs exactly once, never within this call, with
  /// nothing when the wait was in vain or abandoned: after a commit, or, for who has waited for
  /// tasks that are stored as they are, at once, also while the store writes (hand_out_now.cc). So
  /// it must call no verb, nor after_commit().
  WaitId lease_or_wait(const LeaseRequest& request, std::chrono::milliseconds wait, LeaseDone done);
  /// Ends a wait without a task, for a worker that has gone; one that is over is no matter.
  void abandon_wait(WaitId id);
  /// Ends every wait and lets none begin, for a stop. Verbs that go in steps go no further.
  void end_waits();
  /// Whether a verb that goes in steps may take another. Errors: unavailable after end_waits().
  Result<void> expect_going_on() const;
  /// Whether a worker waits for a task.
  bool has_waits() const noexcept { return hand_out_.waiting() > 0; }

  // For the deliverer of webhooks, of which there is one. What it leases it ends
  // with the same verbs as a worker; what it does not end runs out, and a crash gives it back.

  /// Hands out ready tasks that go to a webhook, at most `max`; may be nothing. The queues that
  /// have any take turns, each with an equal part of what is asked for, and within a queue the most
  /// urgent is first; pauses, rate and concurrency of a queue hold as for workers. Those that are
  /// held wait until a call no longer holds them. Errors: as validate(DeliveryRequest).
  Result<std::vector<Delivery>> lease_deliveries(const DeliveryRequest& request,
                                                 const HeldWebhooks& held = {});
  /// The same, but when there is nothing waits until there is, without end. `done` runs after a
  /// commit, exactly once: with nothing when another call or end_waits() has ended the wait. It
  /// must call no verb.
  void lease_deliveries_or_wait(const DeliveryRequest& request, const HeldWebhooks& held,
                                DeliveriesDone done);

  /// Of the task that is held under this lease; "" when it is no longer held.
  std::string_view queue_of(LeaseToken lease) const noexcept;
  /// The work is done: the task is removed.
  Result<LeaseOutcome> complete(LeaseToken lease);
  /// The attempt failed: the task comes back after a delay, or is dead after its last attempt.
  Result<LeaseOutcome> fail(const FailRequest& request);
  /// The work takes longer: the lease runs out `by` from now, or when it did if that is later.
  /// Nothing is durable: leases are memory. Errors: invalid_argument unless `by` is 1 ms … 30 days.
  Result<LeaseOutcome> extend(LeaseToken lease, std::chrono::milliseconds by);
  /// Gives the task back unharmed: the attempt does not count. It is ready again at its old place
  /// in its queue's order, or scheduled when `delay` is more than nothing; `priority` is its new
  /// one. Durable: delay, priority and count; without them nothing has changed on disk. Errors:
  /// invalid_argument for `delay`.
  Result<LeaseOutcome> release(LeaseToken lease,
                               std::optional<std::chrono::milliseconds> delay = {},
                               std::optional<std::uint32_t> priority = {},
                               ReleaseCount count = ReleaseCount::none);
  /// The attempt failed and no other will do better: the task is dead at once. `priority` is its
  /// new one, for when it lives again. Durable: the task as dead, this attempt counted. Answers
  /// `dead`.
  Result<LeaseOutcome> bury(LeaseToken lease, std::string error,
                            std::optional<std::uint32_t> priority = {});

  // Recurring schedules: engine_schedules.cc. Their tasks are made in turn(), each with the step of
  // its schedule in one commit. Errors, besides those told: not_found.

  /// Makes or replaces a schedule, as ScheduleBook::put(). Durable.
  Result<PutSchedule> put_schedule(RecurringSchedule schedule);
  /// Takes over a schedule as it stands in another store, as ScheduleBook::restore(); the tasks it
  /// has made must be restored before, so that none is made a second time. Durable.
  Result<bool> restore_schedule(ScheduleRecord record);
  Result<ScheduleView> find_schedule(const std::string& name) const;
  /// By name, at most `limit` after `after`.
  Result<std::vector<ScheduleView>> schedules_after(std::string_view after,
                                                    std::size_t limit) const;
  Result<std::vector<WallTime>> next_occurrences(const std::string& name, std::size_t count) const;
  /// What put_schedule() would make of it: the rule in words, and its next occurrences, at most
  /// `count`. Changes nothing.
  Result<SchedulePreview> preview_schedule(RecurringSchedule schedule, std::size_t count) const;
  /// Tasks it has made stay. Durable.
  Result<void> remove_schedule(const std::string& name);
  /// Durable.
  Result<ScheduleView> pause_schedule(const std::string& name);
  Result<ScheduleView> resume_schedule(const std::string& name);
  /// Makes a task now. Durable. Errors: as schedule().
  Result<TaskSnapshot> trigger_schedule(const std::string& name);
  /// Checks that a back-fill of this range may begin. Errors: as ScheduleBook::check_backfill();
  /// invalid_argument when the range ends before it begins. Cost: a search for each occurrence.
  Result<void> check_backfill(const std::string& name, WallTime from, WallTime to) const;
  /// One step of making the tasks of past occurrences, from `from` on and before `to`, due now. A
  /// step goes through at most 1 000 occurrences. While its answer has `next` and no `stop`, call
  /// again from `next` on, in a later turn. Durable. Errors: conflict when the schedule is broken
  /// or paused; unavailable once end_waits() was called.
  Result<BackfillStep> backfill(const std::string& name, WallTime from, WallTime to,
                                std::size_t limit);

  // Tasks that another system keeps while they are far (external/far_tasks.h): engine_far.cc. One
  // that is there is not here in any sense: no verb finds it, no count has it in it. A mark on an
  // id says that a copy there does not count. All but unmark() is synced with the next commit,
  // whatever `sync_interval` is: the other system may keep what the power takes from here.

  /// Tasks after `after` in the due order that are on disk only, as the last commit left them.
  Result<TaskPage> far_tasks(Place after, std::size_t limit);
  /// As they are there: the copy's due time tells how long it is remembered once it is forgotten.
  void mark(std::span<const Task> tasks);
  /// Their copies were forgotten there. Requires: the last commit has the marks.
  Result<void> unmark(std::span<const TaskId> ids);
  /// At most `limit` > 0, as the last commit left them; none only when there is none.
  Result<std::vector<TaskId>> marked(std::size_t limit);
  /// Removes, with its mark, every task that is stored just as it is given, on disk only, and has
  /// no key: a key stands for tasks that are here. Answers how many.
  Result<std::size_t> hand_over(std::span<const Task> tasks);
  /// Restores and marks these tasks; those that are marked are passed over, those that are here
  /// only marked. So are those whose copy was forgotten before, until kForgottenFor after its due
  /// time, if they were not handed over since. Answers how many were restored. After an error of
  /// one, as of restore(), it goes on with the others.
  Result<std::size_t> put_back(std::span<const Task> tasks);
  /// Whether a copy there does not count: the task is here or marked, or its copy was forgotten.
  Result<bool> is_here_or_marked(TaskId id);
  void set_external_stamp(const ExternalStamp& stamp);
  /// A default one when there is none, or when it cannot be read.
  Result<ExternalStamp> external_stamp();

  /// Runs `committed` after the next commit, with its result; in the order of the calls. It must
  /// call no verb. Requires: no `done` of a wait is running.
  void after_commit(Committed committed);
  /// Tasks that the next commit changes.
  std::size_t staged() const noexcept { return records_.staged().changes().size(); }
  /// Writes what is staged, then runs what waits for it.
  Result<void> commit();
  /// The last verb, for a graceful stop: answers every wait, writes open leases out where they are
  /// to be kept, and commits. Cost: a key a lease.
  Result<void> close();

  /// Before verbs that came while others ran, or after a long sleep: looks whether the wall clock
  /// was stepped, because a date is turned into a tick at once, and makes ready what has become due
  /// since the last turn, so that it is handed out before what these verbs make. A lease that has
  /// run out meanwhile still counts until the turn: its worker may have been in time. Costs one
  /// part of the firing, as turn() does, with hand-outs between its wheels.
  void catch_up();
  /// Between parts of what takes its time: makes ready what has become due and hands it to workers
  /// who wait for it, who are told at once and not after the commit (hand_out.h). Bounded as a step
  /// of a turn is; nearly nothing while nobody waits, and twice in a tick.
  void hand_out_due();
  /// One round: fires what is due, ends leases that ran out, serves waiting workers, commits, and
  /// moves tasks between memory and disk, a small part of them at a time. Work is bounded:
  /// next_wakeup() is now when some is left. Returns the error that stopped the engine, if one has.
  Result<void> turn();
  /// When the next turn is needed; none: not until a verb is called.
  std::optional<MonotonicTime> next_wakeup() const;

  /// Each queue's figures are those of at most `most_queues`, the ones with most tasks. O(1) for
  /// 0, else O(queues); the others cost no copy.
  EngineStats stats(std::size_t most_queues = kAllQueues) const;
  /// The figures of at most `most` queues with a ready task in memory, those first whose most
  /// urgent ready task has been due longest. O(queues with a ready task).
  std::vector<QueueStats> oldest_queues(std::size_t most) const;
  /// The wheel of the tasks in memory. O(slots + timers / 56).
  WheelView wheel() const;
  /// How many live tasks are due in each of `bins` parts of the time from now on. O(bins + minutes
  /// that have tasks). Errors: as validate_forecast().
  Result<Forecast> forecast(std::chrono::milliseconds span, std::size_t bins) const;
  /// Tasks of all states by id, for a copy of everything while it is at work: one that is there
  /// all the time is met once. As the last commit left them; leased ones as before their lease.
  Result<TaskPage> tasks_after(TaskId after, std::size_t limit);
  /// The error after which this engine acknowledges nothing; none while it works.
  const std::optional<Error>& stopped_by() const noexcept { return writer_.stopped_by(); }
  /// Brute-force check of the invariants of all parts, and that what they count is what is stored;
  /// stops the process when one is broken. For tests.
  void check_invariants();

 private:
  class Occurrences;
  struct KeptLease;
  /// Why a task is removed.

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
  /// Gives a live task its place in the due order, in memory if that is within the window, and
  /// stages it.
  void place(Queue& queue, Task task, std::optional<Place> from, Deadline deadline);
  /// The task has ended: stages its removal, or that it is kept, and forgets it.
  Result<void> remove(FoundTask found, TaskVerb verb);
  Result<void> remove(LoadedTask& loaded, TaskVerb verb);
  void tell_end(TaskId id, const Queue& queue, TaskState end);
  /// A task that is not leased gets another due time, and lives if it was dead.
  TaskSnapshot put_at(FoundTask found, Deadline deadline);
  /// The same, by request and due now.
  TaskSnapshot put_now(FoundTask found);
  /// The same without another due time: its record has changed.
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
  /// A request that is valid, and for this engine.
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
  /// A ready task of the store, in memory. Where the memory does not reach, it goes to its queue's
  /// ready lane: one of that lane may be in memory wherever the head is.
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

  // The parts, each on those above it.
  EngineTime time_;
  QueueBook queues_;
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

  // The turn's own.
  Rng rng_;
  MonotonicTime last_fired_{};           // when fire_tasks() was called last
  MonotonicTime::duration step_time_{};  // what a step of tend_memory() takes
  bool moves_wait_ = false;              // the last turn left them, as something is due soon
  Tick workers_come_until_ = 0;
  // How often what is kept for a time only is looked through, and the rules of schedules are read
  // anew, as tzdata may be newer; and when next.
  static constexpr Tick kForgetTicks = 1'000;
  static constexpr Tick kRefreshTicks = 3'600'000;
  Tick next_forget_ = 0;
  Tick next_refresh_ = 0;
};

}  // namespace detent

// The product: schedules tasks durably, hands them out when they are due, and forgets none.
//
// One method a verb. A verb changes memory at once and stages what must become durable; commit()
// writes everything staged since the last one as one batch with one sync (group commit). Nobody may
// be told what a verb answered before the commit() after it: callers leave their reply with
// after_commit(). turn() does the rest: what has become due, leases that ran out, workers that
// wait, the commit, and the load window.
//
// Memory holds the tasks of the **load window** only: every live task whose place in the due order
// is at or before `loaded_to_`, and no other. Their payloads stay in the store. Far tasks cost no
// memory until the window reaches them. When `max_loaded` tasks are in memory the queue with most
// of them is **cut**: behind its `cut_to` it has only on disk what the others have in memory. Where
// no queue has a good part of the memory the window shrinks. Either way what is due first stays.
// Tasks that are due behind a cut, and have no room, move to their ready lane without being loaded.
//
// What is ready and more than its part of the memory **spills**: the least urgent tasks of the
// queue that has most of them move to that queue's ready lane on disk. Memory holds only the head
// of the lane, everything up to `head_to`, so the most urgent task is always at hand, and a backlog
// in one queue leaves the due order, and the memory, to the others.
//
// A task with a webhook of its own, or in a queue that has one, is never leased to workers: the
// **deliverer** takes it. Which of the two it is may change with the queue's settings while
// thousands are ready. So the ready tasks of a queue are in two orders, each with a lane and a head
// of its own: those with a webhook of their own, and the others. The deliverer takes from the
// first, and from both, merged, while the queue has a webhook; workers take from the second, while
// it has none. A setting moves no task; neither kind hides the other on disk, because neither lies
// in the other's lane. All else there is of a queue (counts, limits, keys, its cut, its dead) is
// one.
//
// Three times belong to a task. Its **due time** (`due_at`) is what the user asked for, in the
// record. Its **tick** is when the wheel fires it, on steady time. Its **place** is where its
// record lies in the store: in the due order at its due time, in a ready lane, among the dead, or
// among those kept after their end.
//
// Invariants, tested by check_invariants():
//  1. A live task of the due order is in memory when its place is ≤ loaded_to_ and ≤ its queue's
//     cut_to, and never behind loaded_to_; one of a ready lane when its place is ≤ that lane's
//     head_to. Others may be: leased since, or not given back yet. Dead and ended ones never are.
//  2. A task in memory is scheduled (in the wheel), ready (in its queue's order), or leased (in the
//     wheel until its lease deadline), as lifecycle.h allows; it never is two of these.
//  3. A ready task with a webhook of its own is in the lane, or the order, of those; any other in
//     the other one. A queue with tasks for the deliverer is in `to_deliver_` or `held_`, or a
//     limit of the queue holds it back.
//  4. A queue's counts, and those of the forecast, are those of the store after the next commit.
//  5. No task that is kept after its end lies at or before `forgotten_to_`. So a look for those
//  whose
//     time is over begins behind all that were removed, which a store may have to walk over.
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
#include <deque>
#include <limits>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "base/histogram.h"
#include "base/result.h"
#include "base/rng.h"
#include "base/slab.h"
#include "detent/clock.h"
#include "detent/dense_wheel.h"
#include "detent/unique_function.h"
#include "engine/due_histogram.h"
#include "engine/engine_stats.h"
#include "engine/engine_time.h"
#include "engine/held_time.h"
#include "engine/key_book.h"
#include "engine/schedule_book.h"
#include "engine/staging.h"
#include "store/store.h"
#include "task/forecast.h"
#include "task/request.h"
#include "task/task_change.h"
#include "task/task_filter.h"
#include "task/wheel_view.h"

namespace detent {

class ChangeFeed;

struct EngineOptions {
  /// How far ahead of now tasks are loaded.
  std::chrono::milliseconds window = std::chrono::minutes{10};
  /// Most tasks held in memory, give or take those of one turn; about 300 bytes each. At most a
  /// quarter of them may be leased at a time.
  std::size_t max_loaded = 1'000'000;
  /// How long a commit may wait to be synced, for syncs that are shared by many: what was
  /// acknowledged in that time is lost with the power, though not with the process. 0: never; each
  /// commit is synced before it is acknowledged.
  std::chrono::milliseconds sync_interval{0};
  /// Workers' open leases outlive a graceful stop: close() writes them out, and this takes up those
  /// of the engine before. For those whose workers are elsewhere and go on meanwhile.
  bool keep_leases = false;
  /// In all ids and leases that the engine makes; below 2^TaskId::kShardBits.
  std::uint64_t shard = 0;
  /// Seeds the jitter of retries.
  std::uint64_t seed = 0;
  /// Is told what happens to tasks; must outlive the engine. Null: nobody is.
  ChangeFeed* changes = nullptr;
};

/// Where a verb over a whole queue goes on: after this place, with tasks up to this id (0: all that
/// have been accepted). A new one begins.
struct QueueCursor {
  Place after = begin_of(Lane::due);
  TaskId last_id;
};
/// What one step of first_scheduled() found.
struct ScheduledStep {
  std::optional<TaskSnapshot> found;
  Place next = begin_of(Lane::due);
};
/// A ready task's place among others: the least is handed out first.
struct ReadyHead {
  std::uint32_t priority = 0;
  WallTime due_at{};
  TaskId id;

  friend auto operator<=>(const ReadyHead&, const ReadyHead&) = default;
};
/// What one step of a verb over a whole queue did.
struct QueueStep {
  std::size_t count = 0;            // tasks changed
  std::optional<QueueCursor> next;  // none: it is done
};

struct PutSchedule {
  ScheduleView view;
  bool was_there = false;
};

/// What verbs on a task say when it is not there.
Error no_such_task(TaskId id);

/// More than there can be.
inline constexpr std::size_t kAllQueues = std::numeric_limits<std::size_t>::max();

/// Where a list of all tasks begins.
inline constexpr Place kListStart = begin_of(Lane::dead);
/// Part of a list of tasks, which may be short or empty, and where it goes on; none: it is over.
struct TaskList {
  std::vector<TaskSnapshot> tasks;
  std::optional<Place> next;
};

class Engine {  // NOLINT(clang-analyzer-optin.performance.Padding): grouped by meaning
 public:
  using WaitId = std::uint64_t;
  using Committed = UniqueFunction<void(const Result<void>&)>;
  using LeaseDone = UniqueFunction<void(Result<std::vector<LeasedTask>>)>;
  /// Queues whose webhook is one of these wait, but for their tasks with one of their own: what it
  /// stands for takes nothing now.
  using HeldWebhooks = std::vector<std::string>;
  using DeliveriesDone = UniqueFunction<void(Result<std::vector<Delivery>>)>;

  /// Recovers from the store: takes a new epoch and loads the window, overdue tasks first.
  /// `store` and `clock` must outlive the engine.
  static Result<std::unique_ptr<Engine>> open(Store& store, Clock& clock, EngineOptions options);
  ~Engine();
  Engine(const Engine&) = delete;
  Engine& operator=(const Engine&) = delete;

  /// Accepts a task and gives it its id. With a key that stands for a task already, the answer is
  /// that task, as it is now; nothing is added. The answer is without the payload. Errors: as
  /// validate(ScheduleRequest); conflict when the key stands for a task that was asked for with
  /// another content; resource_exhausted when the queue is at its quota.
  Result<TaskSnapshot> schedule(ScheduleRequest request);
  /// Takes over a task as it stands in another store, under its own id; does nothing when there is
  /// a task of this id. Answers whether there was none. A key that stands for another task here is
  /// left to that one. Errors: as validate(ScheduleRequest); invalid_argument for an id that no
  /// task can have, or a task that has ended.
  Result<bool> restore(Task task);
  /// Errors: not_found.
  Result<TaskSnapshot> get(TaskId id);
  /// The live or dead task that a key stands for. Errors: not_found.
  Result<TaskId> id_of_key(const std::string& queue, std::string_view key);
  /// Tasks that the filter wants, at most `limit` > 0, after a place of this list: the dead ones,
  /// queue by queue in the order of their death; the live ones in due order; those kept after their
  /// end, in the order in which they will be forgotten. Reads a bounded number of records, so a
  /// step may find little; with `next` it goes on. A task that no verb touches between two steps is
  /// met once, whatever memory it moves to. A damaged record is passed over. Errors:
  /// resource_exhausted when ready tasks on disk are of too many priorities to be put in due order.
  Result<TaskList> list(const TaskFilter& filter, Place after, std::size_t limit);
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
  /// with that, in a later turn. A record that is damaged is passed over. Durable: each step of its
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
  /// Errors: as validate(QueueSettings), or for the name.
  Result<void> set_queue(const std::string& name, const QueueSettings& settings);
  /// Forgets an empty queue and its settings. Errors: not_found; conflict while it has tasks.
  Result<void> remove_queue(const std::string& name);
  /// Hands out nothing of a queue for so long, which ends a pause of before; 0 only ends it. A
  /// queue that is not there is made. Memory only: a start ends it. Settings say nothing of it.
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
  /// then id); may be nothing. Answers at most kMaxLeaseBytes of payload at once.
  Result<std::vector<LeasedTask>> lease(const LeaseRequest& request);
  /// What lease() would hand out first, for who chooses between engines; none: nothing.
  Result<std::optional<ReadyHead>> next_ready(const LeaseRequest& request);
  /// Hands out this one task, which is ready, scheduled or dead; what is not ready is made due now
  /// first, durably. Queue and number are those of the task; pauses and the rate do not count.
  /// Errors: not_found; conflict when it is leased, has ended, or goes to a webhook;
  /// resource_exhausted when its queue
  /// or the engine has as many leases as it may.
  Result<LeasedTask> lease_task(TaskId id, const LeaseRequest& request);
  /// The same, but when nothing is ready waits for a task, at most `wait`; workers of a queue are
  /// served in the order in which they came. `done` runs after a commit, exactly once, with nothing
  /// when the wait was in vain or abandoned.
  WaitId lease_or_wait(const LeaseRequest& request, std::chrono::milliseconds wait, LeaseDone done);
  /// Ends a wait without a task, for a worker that has gone; one that is over is no matter.
  void abandon_wait(WaitId id);
  /// Ends every wait and lets none begin, for a stop.
  void end_waits();
  /// Whether a worker waits for a task.
  bool has_waits() const noexcept { return waits_.size() > 0; }

  // For the deliverer of webhooks, of which there is one: engine_deliver.cc. What it leases it ends
  // with the same verbs as a worker; what it does not end runs out, and a crash gives it back.

  /// Hands out ready tasks that go to a webhook, at most `max`; may be nothing. The queues that
  /// have any take turns, each with an equal part of what is asked for, and within a queue the most
  /// urgent is first; pauses, rate and concurrency of a queue hold as for workers. Those that are
  /// held wait until a call no longer holds them. Errors: as validate(DeliveryRequest).
  Result<std::vector<Delivery>> lease_deliveries(const DeliveryRequest& request,
                                                 const HeldWebhooks& held = {});
  /// The same, but when there is nothing waits until there is, without end. `done` runs after a
  /// commit, exactly once: with nothing when another call or end_waits() has ended the wait.
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
  /// One step of making the tasks of past occurrences, from `from` on and before `to`, due now. A
  /// step makes at most 1 000: while its answer has `next`, call again with a millisecond after
  /// that, in a later turn. Durable. Errors: as schedule(); what a step made before one stays.
  Result<BackfillStep> backfill(const std::string& name, WallTime from, WallTime to);

  // Tasks that another system keeps while they are far (external/far_tasks.h): engine_far.cc. One
  // that is there is not here in any sense: no verb finds it, no count has it in it. A mark on an
  // id says that a copy there does not count. All but unmark() is synced with the next commit,
  // whatever `sync_interval` is: the other system may keep what the power takes from here.

  /// Tasks after `after` in the due order that are on disk only, as the last commit left them.
  Result<TaskPage> far_tasks(Place after, std::size_t limit);
  void mark(std::span<const TaskId> ids);
  void unmark(std::span<const TaskId> ids);
  /// At most `limit` > 0, as the last commit left them; none only when there is none.
  Result<std::vector<TaskId>> marked(std::size_t limit);
  /// Removes, with its mark, every task that is stored just as it is given, on disk only, and has
  /// no key: a key stands for tasks that are here. Answers how many.
  Result<std::size_t> hand_over(std::span<const Task> tasks);
  /// Restores and marks these tasks; those that are marked are passed over, those that are here
  /// only marked. Answers how many were restored. After an error of one, as of restore(), it goes
  /// on with the others.
  Result<std::size_t> put_back(std::span<const Task> tasks);
  Result<bool> is_here_or_marked(TaskId id);

  /// Runs `committed` after the next commit, with its result; in the order of the calls.
  void after_commit(Committed committed);
  /// Writes what is staged, then runs what waits for it.
  Result<void> commit();
  /// The last verb, for a graceful stop: answers every wait, writes open leases out where they are
  /// to be kept, and commits. Cost: a key a lease.
  Result<void> close();

  /// Before verbs that came while others ran, or after a long sleep: looks whether the wall clock
  /// was stepped, because a date is turned into a tick at once, and makes ready what has become due
  /// since the last turn, so that it is handed out before what these verbs make. A lease that has
  /// run out meanwhile still counts until the turn: its worker may have been in time. Costs one
  /// part of the firing, as turn() does.
  void catch_up();
  /// One round: fires what is due, ends leases that ran out, serves waiting workers, commits, and
  /// moves tasks between memory and disk, a small part of them at a time. Work is bounded:
  /// next_wakeup() is now when some is left. Returns the error that stopped the engine, if one has.
  Result<void> turn();
  /// When the next turn is needed; none: not until a verb is called.
  std::optional<MonotonicTime> next_wakeup() const;

  /// Each queue's figures are those of at most `most_queues`, the ones with most tasks. O(1) for
  /// 0, else O(queues); the others cost no copy.
  EngineStats stats(std::size_t most_queues = kAllQueues) const;
  /// The wheel of the tasks in memory. O(slots + timers / 56).
  WheelView wheel() const;
  /// How many live tasks are due in each of `bins` parts of the time from now on. O(bins + minutes
  /// that have tasks). Errors: as validate_forecast().
  Result<Forecast> forecast(std::chrono::milliseconds span, std::size_t bins) const;
  /// Tasks of all states by id, for a copy of everything while it is at work: one that is there
  /// all the time is met once. As the last commit left them; leased ones as before their lease.
  Result<TaskPage> tasks_after(TaskId after, std::size_t limit);
  /// The error after which this engine acknowledges nothing; none while it works.
  const std::optional<Error>& stopped_by() const noexcept { return stopped_by_; }
  /// Brute-force check of the invariants above; stops the process when one is broken. For tests.
  void check_invariants();

 private:
  struct Queue;
  struct ReadyTasks;
  struct LoadedTask;
  struct Lease;
  struct Wait;
  struct DeliveryWait;
  struct Found;
  class Occurrences;
  struct Stretch;
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
  /// What of the queues' records is counted for all queues together.
  struct StoredCounts {
    std::uint64_t waiting = 0;
    std::uint64_t dead = 0;
    std::uint64_t in_lanes = 0;
  };
  /// Why a task is removed.
  enum class End : std::uint8_t { completed, cancelled };

  Engine(Store& store, Clock& clock, EngineOptions options);
  Result<void> recover();
  Result<void> restore_schedules();
  void keep(std::uint64_t number, const Lease& lease);
  Result<void> take_up_leases();
  Result<void> take_up(const KeyRecord& record, std::string_view text);

  // Tasks in memory.
  void load(const Task& task, Place place, Deadline deadline);
  void unload(LoadedTask& task);
  void become_ready(LoadedTask& task);
  void note_fired(TaskId id, const Queue& queue, Tick tick, MonotonicTime now);
  void enter_ready(LoadedTask& task);
  void leave_ready(LoadedTask& task);
  LoadedTask* find_loaded(TaskId id) noexcept;
  Lease* holder_of(LeaseToken lease) noexcept;

  // Queues.
  Queue& queue_of(const std::string& name);
  Result<Queue*> known_queue(const std::string& name);
  void note_change(Queue& queue);
  static std::uint64_t ready_of(const Queue& queue) noexcept;
  QueueStats stats_of(const Queue& queue) const;
  QueueStats stats_of_all() const;
  static void recount(const Queue& queue, StoredCounts& sums) noexcept;
  void note_counts(Queue& queue);
  /// How many tasks of the queue may be handed out at this moment.
  std::size_t allowance(Queue& queue) const;
  /// How many may be leased at a time, of all queues.
  std::size_t most_leased() const noexcept;
  Result<void> check_quota(const Queue& queue, std::size_t payload_bytes) const;
  Result<void> check_bytes(const Queue& queue, std::size_t more) const;

  /// Has those who watch told what happened to a task, once it is durable. A branch, mostly.
  void tell(TaskId id, const Queue& queue, TaskEvent event, TaskState state);
  void tell_end(TaskId id, const Queue& queue, End end);
  /// What was told up to now is durable, or not.
  void publish_changes(const Result<void>& committed);

  // Why tasks are handed out late: engine_lateness.cc.
  void note_limits(Queue& queue);
  MonotonicTime held_until(const Queue& queue) const;
  MonotonicTime::duration held_total(const Queue& queue, MonotonicTime now) const;
  LatenessParts note_hand_out(const LoadedTask& task);

  // What becomes durable: every change of a record goes through these, which keep the counts.
  void stage_put(Queue& queue, std::optional<Place> from, StoredTask to);
  void stage_erase(Queue& queue, Place from);
  /// A live task leaves its queue: its counts and the forecast's.
  void uncount(Queue& queue, TaskId id, WallTime due_at, WallTime created_at,
               std::size_t payload_bytes);

  // Steps of the verbs.
  Deadline deadline_of(const Due& due) const;
  Deadline dated(WallTime due_at) const;
  /// What becomes of a live task that gets this deadline.
  TaskState state_at(const Deadline& deadline) const noexcept {
    return deadline.tick <= time_.now() ? TaskState::ready : TaskState::scheduled;
  }
  Result<std::optional<TaskSnapshot>> find_by_key(const ScheduleRequest& request, Queue& queue);
  /// Gives a live task its place in the due order, in memory if that is within the window, and
  /// stages it.
  void place(Queue& queue, Task task, std::optional<Place> from, Deadline deadline);
  /// The task has ended: stages its removal, or that it is kept, and forgets it.
  Result<void> remove(Found found, End end);
  Result<void> remove(LoadedTask& loaded, End end);
  Result<std::vector<LeasedTask>> lease_from(const std::string& name, const LeaseRequest& request);
  Result<std::vector<LeasedTask>> lease_most_urgent(const LeaseRequest& request);
  std::vector<Queue*> queues_of(const LeaseRequest& request) const;
  Result<Queue*> most_urgent(const std::vector<Queue*>& queues, const Wait* wait);
  Result<LoadedTask*> head_of(Queue& queue, ReadyTasks& ready);
  Result<LoadedTask*> bring_in(TaskId id);
  Result<std::vector<LeasedTask>> take_ready(Queue& queue, ReadyTasks& ready,
                                             const LeaseRequest& request,
                                             const LoadedTask* until = nullptr);
  /// A ready task of the store, in memory. Where the memory does not reach, it goes to its queue's
  /// ready lane: one of that lane may be in memory wherever the head is.
  LoadedTask* load_ready(const Found& found);
  void open_lease(std::uint64_t number, Lease lease, Tick until);
  LeasedTask hand_out(LoadedTask& loaded, Task task, const LeaseRequest& request);
  void drop_lease(const LoadedTask& loaded);
  /// `verb` is fail or run_out.
  LeaseOutcome end_attempt(Lease& lease, Task task, TaskVerb verb,
                           std::optional<std::chrono::milliseconds> delay, std::string error);
  void note_attempt(const Lease& lease, Task& task, std::string error);
  void rest_dead(LoadedTask& loaded, Task task);
  void give_back(LoadedTask& loaded);
  void put_record_back(LoadedTask& loaded, Task task, std::optional<Deadline> deadline);
  void run_out(Lease& lease, Task task);
  /// A task that is not leased gets another due time, and lives if it was dead.
  TaskSnapshot put_at(Found found, Deadline deadline);
  /// The same, by request and due now.
  TaskSnapshot put_now(Found found);
  /// The same without another due time: its record has changed.
  TaskSnapshot put_changed(Found found);
  template <class Visit>
  Result<QueueStep> sweep(Queue& queue, std::size_t limit, QueueCursor from, Place until,
                          Visit visit);
  bool is_scheduled(const StoredTask& stored) noexcept;

  // Steps of a list: engine_list.cc.
  Result<Stretch> list_dead(const TaskFilter& filter, Place after);
  Result<Stretch> list_live(const TaskFilter& filter, Place after);
  Result<Stretch> list_leased(const TaskFilter& filter, Place after);
  Result<Stretch> list_ended(Place after);
  Result<Stretch> list_by_key(const TaskFilter& filter);
  Result<std::vector<Place>> ready_runs(const TaskFilter& filter);
  TaskList pick(const TaskFilter& filter, Place after, Stretch stretch, std::size_t limit);

  // Records, as this turn has left them.
  Result<Task> read(LoadedTask& loaded);
  Result<std::vector<Result<Task>>> read_all(const std::vector<LoadedTask*>& tasks);
  Result<std::optional<StoredTask>> find_stored(TaskId id);
  /// Errors: not_found.
  Result<Found> find(TaskId id);
  TaskState state_on_disk(const Task& task) const;
  /// A record that cannot be read leaves the queue for the quarantine.
  void set_aside(LoadedTask& task);
  void set_aside(Place place);

  // Steps of a turn.
  void decide_schedules();
  void refresh_schedules();
  void notice_clock();
  std::vector<LoadedTask*> fire_tasks(Tick now);
  void fire_due();
  void end_leases(const std::vector<LoadedTask*>& ran_out);
  void want_serving(Queue& queue);
  void serve_later(Queue& queue);
  void hold_back(Queue& queue);
  void serve_due();
  void serve_waits();
  void serve_waits_before(const LeaseRequest& request);
  std::size_t serve_next(Queue& queue);
  std::size_t share_of(const Queue& queue) noexcept;
  void finish_wait(Wait& wait, Result<std::vector<LeasedTask>> answer);
  void forget_if_unused(Queue& queue);
  template <class T>
  void answer_after_commit(UniqueFunction<void(Result<T>)> done, Result<T> answer);
  void want_delivery(Queue& queue);
  void release_held();
  static bool is_held(const Queue& queue, const HeldWebhooks& held);
  Result<std::vector<LeasedTask>> take_deliveries(Queue& queue, const LeaseRequest& request);
  Result<std::vector<LeasedTask>> take_run(Queue& queue, const LeaseRequest& request);
  void serve_delivery_wait();
  void end_delivery_wait(Result<std::vector<Delivery>> answer);
  Result<void> forget_ended();
  WriteBatch take_staged();
  Result<void> write_staged();
  Result<void> write_moved();
  Result<void> sync_if_due();
  Error stop_acknowledging(Error error);

  // The load window and the ready lanes: engine_window.cc.
  bool wants_page() const;
  bool is_full() const noexcept { return loaded_.size() >= options_.max_loaded; }
  std::size_t room_for_pages() const noexcept;
  bool wants_in_memory(Queue& queue, const Place& place, const Task& task,
                       const Deadline& deadline);
  /// Whether many tasks became due in this turn.
  enum class Load : std::uint8_t { usual, storm };
  Result<void> tend_memory(MonotonicTime turn_start, Load load);
  bool gives_way(Load load);
  Result<void> load_page();
  void shrink_window();
  std::size_t good_part() const noexcept;
  Queue* largest_queue(std::size_t (Queue::*count)() const noexcept) const;
  void cut(Queue& queue, const Place& place);
  void drop_cuts();
  bool make_room();
  bool cut_largest();
  bool is_overdue(const Queue& queue) const noexcept;
  Queue* next_behind_cut() const;
  Result<void> load_behind_cut(const Place& from);
  std::size_t ready_room() const noexcept;
  static Place ready_place(const ReadyTasks& ready, const Place& place,
                           std::uint32_t priority) noexcept;
  static bool is_more_urgent(const ReadyTasks& ready, const Place& place) noexcept;
  std::size_t ready_part() const noexcept;
  bool has_little_ready(const Queue& queue) const noexcept;
  bool would_spill(const ReadyTasks& ready, const Place& place) const noexcept;
  static void put_behind_head(ReadyTasks& ready, const Place& place) noexcept;
  void move_to_lane(Queue& queue, const Place& from, const Task& task);
  Result<void> spill_ready();
  Result<void> spill(ReadyTasks& ready, std::size_t count);
  static bool is_at_head(const ReadyTasks& ready, const LoadedTask& task) noexcept;
  Result<void> load_head(Queue& queue, ReadyTasks& ready);

  // Tasks that nothing would touch again: engine_orphans.cc.
  friend struct PlantedOrphans;  // its test
  void look_for_orphans();
  bool would_be_stuck(LoadedTask& task) const;

  // engine_far.cc.
  Result<bool> is_marked(TaskId id);
  Result<bool> put_back(const Task& task);

  // engine_check.cc.
  bool check_stored(const StoredTask& stored);
  void check_memory();
  std::size_t check_ready(const Queue& queue, const ReadyTasks& ready);
  void check_turn(const Queue& queue);

  // Constant after construction.
  Store& store_;
  Clock& clock_;
  const EngineOptions options_;

  EngineTime time_;
  const MonotonicTime opened_at_;
  Rng rng_;
  std::uint64_t epoch_ = 0;
  std::uint64_t last_lease_ = 0;  // LeaseToken::number
  TaskId last_id_;
  std::uint32_t last_queue_number_ = 0;
  Place loaded_to_ = begin_of(Lane::due);  // invariant 1
  bool more_stored_ = true;                // a page was cut short, or the window has shrunk
  bool is_out_of_room_ = false;            // the last page was not loaded to its end
  Tick next_shrink_ = 0;                   // not before: the last attempt was in vain
  std::vector<Queue*> cut_queues_;
  std::uint32_t sweep_at_ = 0;           // in loaded_: make_room() goes on there
  std::uint32_t look_at_ = 0;            // in loaded_: look_for_orphans() looked there last
  Tick next_look_ = 0;                   // of it, not before
  std::uint64_t orphans_ = 0;            // that it found
  int waived_ = 0;                       // turns in a row in which moves gave way
  MonotonicTime last_fired_{};           // when fire_tasks() was called last
  std::uint64_t fired_before_turn_ = 0;  // of counters_.fired, by the end of the last turn
  std::optional<Error> stopped_by_;

  // The timers of a wheel are the indices of the slab above it.
  Slab<LoadedTask> loaded_;
  DenseWheel due_wheel_;  // due, or lease run out
  Slab<Wait> waits_;
  DenseWheel wait_wheel_;  // waited long enough
  std::unordered_map<std::uint64_t, LoadedTask*> loaded_by_id_;
  std::unordered_map<std::uint64_t, Lease> leases_;  // by token number
  std::unordered_map<WaitId, Wait*> waits_by_id_;
  std::unordered_map<std::string, std::unique_ptr<Queue>> queues_;
  StoredCounts counted_;                 // of all queues, but for those of changed_queues_
  std::uint64_t loaded_from_lanes_ = 0;  // of all queues: ReadyTasks::loaded_from_lane
  std::size_t ready_count_ = 0;          // of all queues, in memory
  std::size_t urgent_count_ = 0;         // of those: before the default priority
  WallTime latest_ready_{};              // no ready task in memory is due after it
  WaitId last_wait_ = 0;
  bool waits_ended_ = false;
  std::deque<Queue*> to_serve_;                 // have ready tasks and waiting workers; a ring
  std::deque<Queue*> to_deliver_;               // have deliveries; the next in turn first
  std::vector<Queue*> held_;                    // likewise, but the deliverer does not want them
  std::set<std::pair<Tick, Queue*>> serve_at_;  // one or the other, held back by a limit
  Tick shared_until_ = 0;  // workers of several queues were there of late: share_of()
  std::unique_ptr<DeliveryWait> delivery_wait_;
  bool is_deliverers_turn_ = false;  // whoever took last is served second

  // Staged: durable with the next commit.
  Staging staging_;
  KeyBook keys_;
  ScheduleBook schedules_;
  DueHistogram due_counts_;
  std::vector<Queue*> changed_queues_;
  std::vector<std::string> removed_queues_;
  std::vector<Committed> after_commit_;

  bool must_sync_ = false;                       // with the next commit
  Tick next_forget_ = 0;                         // of what is kept for a time only
  Place forgotten_to_ = begin_of(Lane::ended);   // invariant 5
  Tick next_refresh_ = 0;                        // of the schedules' rules
  std::optional<MonotonicTime> unsynced_since_;  // the oldest commit that is not synced
  TaskCounters counters_;
  std::uint64_t commits_ = 0;
  std::uint64_t committed_tasks_ = 0;
  Histogram lateness_;
  HeldTime all_held_;  // every queue: as many are leased as may be
  bool is_full_of_leases_ = false;
  ByCause<std::uint64_t> late_tasks_{};
  ByCause<std::chrono::milliseconds> late_time_{};  // nanoseconds of many would soon overflow
  ByCause<std::chrono::nanoseconds> late_rest_{};   // of it, below a millisecond
  Histogram commit_time_;
};

}  // namespace detent

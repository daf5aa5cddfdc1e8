// Leases over several queues, leases of one task by its id, leases that end without a report,
// pauses, and the counts in the record of a task.
#include <algorithm>

#include "engine/testing/engine_fixture.h"

namespace detent {
namespace {

class EnginePick : public EngineFixture {
 protected:
  static LeaseRequest of(std::vector<std::string> queues, RunOut run_out = RunOut::fails) {
    LeaseRequest request{.queue = queues.front(), .run_out = run_out};
    request.other_queues.assign(queues.begin() + 1, queues.end());
    return request;
  }
  TaskId schedule_with(const std::string& queue, std::uint32_t priority, Due due = 0ms) {
    ScheduleRequest asked = request(queue, due);
    asked.rules.priority = priority;
    return schedule(asked);
  }
  /// Leases one task. Returns its id, or 0 if there is none.
  TaskId pick(const LeaseRequest& request) {
    const std::vector<LeasedTask> tasks = engine_->lease(request).value();
    settle();
    engine_->check_invariants();
    return tasks.empty() ? TaskId{} : tasks.front().task.id;
  }
  LeasedTask take(TaskId id, const LeaseRequest& request = {.queue = "q"}) {
    LeasedTask leased = engine_->lease_task(id, request).value();
    settle();
    engine_->check_invariants();
    return leased;
  }
  /// Starts a very long wait of a worker. The ids of its tasks are added to `got`.
  Engine::WaitId wait(const LeaseRequest& request, std::vector<TaskId>& got) {
    return engine_->lease_or_wait(request, kMaxDelay,
                                  [&got](Result<std::vector<LeasedTask>> tasks) {
                                    for (const LeasedTask& task : tasks.value())
                                      got.push_back(task.task.id);
                                  });
  }
};

TEST_F(EnginePick, ALeaseOverQueuesTakesTheMostUrgentOfAll) {
  const TaskId third = schedule_with("a", 5);
  const TaskId first = schedule_with("b", 3);
  const TaskId second = schedule_with("c", 4);
  const LeaseRequest all = of({"a", "b", "c", "nobody"});
  EXPECT_EQ(pick(all), first);
  EXPECT_EQ(pick(all), second);
  EXPECT_EQ(pick(all), third);
  EXPECT_EQ(pick(all), TaskId{});
}

TEST_F(EnginePick, ALeaseOverQueuesPassesThePausedAndTheExhausted) {
  schedule_with("paused", 1);
  set("paused", {.paused = true});
  schedule_with("full", 2);
  schedule_with("full", 2);
  set("full", {.concurrency = 1});
  EXPECT_EQ(lease_count("full", 1), 1u);
  const TaskId last = schedule_with("free", 9);
  EXPECT_EQ(pick(of({"paused", "full", "free"})), last);
}

TEST_F(EnginePick, NextReadyShowsTheNextTaskWithoutLeasingIt) {
  schedule_with("paused", 1);
  set("paused", {.paused = true});
  const TaskId later = schedule_with("a", 5);
  const TaskId first = schedule_with("b", 3);
  const LeaseRequest all = of({"paused", "a", "b", "nobody"});
  for (const TaskId next : {first, later}) {
    const std::optional<ReadyHead> head = engine_->next_ready(all).value();
    ASSERT_TRUE(head);
    EXPECT_EQ(head->id, next);
    EXPECT_EQ(head->priority, next == first ? 3u : 5u);
    EXPECT_EQ(head->due_at, engine_->get(next).value().task.due_at);
    EXPECT_EQ(pick(all), next);
  }
  EXPECT_FALSE(engine_->next_ready(all).value());
  EXPECT_FALSE(engine_->next_ready(of({"nobody"})).value());
  EXPECT_FALSE(engine_->next_ready({.queue = "no name"}));
}

TEST_F(EnginePick, AWaitOverQueuesIsServedOnceAndLeavesAllItsQueues) {
  std::vector<TaskId> got;
  wait(of({"a", "b", "c"}), got);
  settle();
  EXPECT_FALSE(engine_->next_wakeup() && *engine_->next_wakeup() <= clock_.now())
      << "it costs nothing while it waits";
  schedule_with("b", 5);
  schedule_with("c", 5);
  EXPECT_EQ(got.size(), 1u);
  EXPECT_EQ(engine_->stats().waiting_workers, 0u);
  ASSERT_EQ(engine_->stats().queues.size(), 2u) << "nobody ever put anything into a";
  engine_->check_invariants();
}

TEST_F(EnginePick, AWaitOverQueuesGetsTheMostUrgentOfTasksThatBecomeDueTogether) {
  schedule_with("a", 5, 10ms);
  const TaskId urgent = schedule_with("b", 3, 10ms);
  std::vector<TaskId> got;
  wait(of({"a", "b"}), got);
  advance(10ms);
  EXPECT_EQ(got, std::vector<TaskId>{urgent});
}

TEST_F(EnginePick, WorkersOfAQueueAreServedInTheirOrderEvenIfTheyWaitForOtherQueuesToo) {
  std::vector<TaskId> first;
  std::vector<TaskId> second;
  std::vector<TaskId> third;
  wait(of({"b", "a"}), first);
  wait(of({"a"}), second);
  const Engine::WaitId gone = wait(of({"a", "c"}), third);
  const TaskId one = schedule_with("a", 1);
  const TaskId two = schedule_with("a", 1);
  engine_->abandon_wait(gone);
  schedule_with("a", 1);
  EXPECT_EQ(first, std::vector<TaskId>{one});
  EXPECT_EQ(second, std::vector<TaskId>{two});
  EXPECT_TRUE(third.empty());
  engine_->check_invariants();
}

TEST_F(EnginePick, ATaskIsLeasedByItsIdWhateverItsState) {
  const TaskId ready = schedule("q", 0ms);
  const TaskId scheduled = schedule("q", 1min);
  const TaskId far = schedule("q", 24h);
  const TaskId dead = schedule("q", 0ms);
  ASSERT_EQ(engine_->bury(take(dead).lease, "no"), LeaseOutcome::dead);
  settle();
  for (const TaskId id : {ready, scheduled, far, dead}) {
    EXPECT_EQ(take(id).task.id, id);
    EXPECT_EQ(state_of(id), TaskState::leased);
    EXPECT_EQ(engine_->lease_task(id, {.queue = "q"}).error().code, ErrorCode::conflict);
  }
  EXPECT_EQ(engine_->lease_task(TaskId{4'096'000}, {.queue = "q"}).error().code,
            ErrorCode::not_found);
  crash_and_open();
  for (const TaskId id : {ready, scheduled, far, dead}) {
    EXPECT_EQ(state_of(id), TaskState::ready) << "each was made due now, for good";
  }
}

TEST_F(EnginePick, ATaskBeyondTheMemoryIsLeasedByItsId) {
  options_.max_loaded = 64;
  open_on_a_new_disk();
  std::vector<TaskId> ids;
  for (int i = 0; i < 200; ++i) ids.push_back(engine_->schedule(request("q", 0ms)).value().task.id);
  settle();
  engine_->check_invariants();
  for (const std::size_t at : {199u, 100u, 150u}) {
    const LeasedTask leased = take(ids[at]);
    EXPECT_EQ(leased.task.id, ids[at]);
    ASSERT_EQ(engine_->release(leased.lease, {}, {}, ReleaseCount::release), LeaseOutcome::done);
    settle();
    engine_->check_invariants();
    ASSERT_EQ(complete(take(ids[at]).lease), LeaseOutcome::done);
    engine_->check_invariants();
  }
  // The lease makes this task due now. Memory has no room for it then either.
  const TaskId far = schedule("q", 24h);
  const LeasedTask leased = take(far);
  EXPECT_EQ(leased.task.id, far);
  EXPECT_EQ(complete(leased.lease), LeaseOutcome::done);
  engine_->check_invariants();
  std::size_t left = 0;
  while (true) {
    const std::vector<LeasedTask> tasks = lease("q", 10);
    if (tasks.empty()) break;
    for (const LeasedTask& task : tasks) ASSERT_EQ(complete(task.lease), LeaseOutcome::done);
    left += tasks.size();
  }
  EXPECT_EQ(left, 197u);
}

TEST_F(EnginePick, LeasesByIdRespectTheLimitsOfLeases) {
  schedule("q", 0ms);
  const TaskId second = schedule("q", 0ms);
  set("q", {.concurrency = 1});
  EXPECT_EQ(lease_count("q", 1), 1u);
  EXPECT_EQ(engine_->lease_task(second, {.queue = "q"}).error().code,
            ErrorCode::resource_exhausted);
}

TEST_F(EnginePick, ALeaseThatReturnsItsTaskOnExpiryNeverMakesItDead) {
  ScheduleRequest asked = request("q", 0ms);
  asked.rules = {.priority = 7, .max_attempts = 2, .visibility_timeout = 1s};
  const TaskId id = schedule(asked);
  for (std::uint32_t times = 1; times <= 5; ++times) {
    ASSERT_EQ(pick(of({"q"}, RunOut::is_ready_again)), id);
    advance(1s);
    ASSERT_EQ(state_of(id), TaskState::ready) << "without a backoff";
    const Task task = engine_->get(id).value().task;
    ASSERT_EQ(task.tally.run_outs, times);
    ASSERT_EQ(task.tally.leases, times);
    engine_->check_invariants();
  }
  ASSERT_EQ(pick(of({"q"})), id);
  advance(1s);
  EXPECT_EQ(state_of(id), TaskState::dead) << "another kind of lease counts its attempts";
}

TEST_F(EnginePick, TheTallyOfATaskIsDurable) {
  const TaskId id = schedule("q", 0ms);
  ASSERT_EQ(engine_->release(take(id).lease, 0ms, {}, ReleaseCount::release), LeaseOutcome::done);
  settle();
  ASSERT_EQ(engine_->release(take(id).lease, {}, {}, ReleaseCount::lease), LeaseOutcome::done);
  settle();
  ASSERT_EQ(engine_->release(take(id).lease), LeaseOutcome::done);  // not counted
  settle();
  fail(take(id).lease, 1h);
  EXPECT_EQ(engine_->bury(take(id).lease, "no"), LeaseOutcome::dead);  // taking it is no redrive
  settle();
  ASSERT_TRUE(engine_->redrive(id));
  settle();
  ASSERT_EQ(engine_->release(take(id).lease, 2h, {}, ReleaseCount::release), LeaseOutcome::done);
  settle();
  crash_and_open();
  const TaskTally expected{
      .leases = 5, .run_outs = 0, .releases = 2, .burials = 1, .redrives = 1, .delay = 2h};
  const TaskTally tally = engine_->get(id).value().task.tally;
  EXPECT_EQ(tally, expected) << tally.leases << " " << tally.redrives;
}

TEST_F(EnginePick, APauseEndsByItselfAndServesWaitingWorkers) {
  std::vector<TaskId> got;
  ASSERT_TRUE(engine_->pause_for("q", 10s));
  EXPECT_EQ(engine_->queue_detail("q").value().pause, 10s);
  const TaskId id = schedule("q", 0ms);
  wait(of({"q"}), got);
  advance(9'999ms);
  EXPECT_TRUE(got.empty());
  EXPECT_EQ(lease_count("q", 1), 0u);
  EXPECT_EQ(engine_->queue_detail("q").value().pause_left, 1ms);
  ASSERT_TRUE(engine_->next_wakeup());
  advance_to_wakeup();
  EXPECT_EQ(got, std::vector<TaskId>{id});
  EXPECT_EQ(engine_->queue_detail("q").value().pause, 0ms);
}

TEST_F(EnginePick, APauseEndsWithItsQueue) {
  std::vector<TaskId> got;
  ASSERT_TRUE(engine_->pause_for("q", 24h));
  wait(of({"q"}), got);
  ASSERT_TRUE(engine_->remove_queue("q"));
  const TaskId id = schedule("q", 0ms);
  EXPECT_EQ(got, std::vector<TaskId>{id});
}

TEST_F(EnginePick, AShorterPauseReplacesALongerOne) {
  std::vector<TaskId> got;
  schedule("q", 0ms);
  ASSERT_TRUE(engine_->pause_for("q", 24h));
  wait(of({"q"}), got);
  settle();
  ASSERT_TRUE(engine_->pause_for("q", 5s));
  settle();
  advance(5s);
  EXPECT_EQ(got.size(), 1u);
  ASSERT_TRUE(engine_->pause_for("q", 24h));
  schedule("q", 0ms);
  wait(of({"q"}), got);
  settle();
  ASSERT_TRUE(engine_->pause_for("q", 0ms));
  settle();
  EXPECT_EQ(got.size(), 2u);
  EXPECT_EQ(engine_->pause_for("-", 1s).error().field, "queue");
}

}  // namespace
}  // namespace detent

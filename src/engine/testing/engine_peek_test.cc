// The first task of a queue in each state, before and after the commit. Also run_now() for a queue.
#include "engine/testing/engine_fixture.h"

namespace detent {
namespace {

class EnginePeek : public EngineFixture {
 protected:
  /// The first scheduled task of a queue, all steps in one; 0 when there is none.
  TaskId first_scheduled(const std::string& queue) {
    ScheduledStep step;
    do {
      Result<ScheduledStep> next = engine_->first_scheduled(queue, step.next);
      if (!next) {
        EXPECT_EQ(next.error().code, ErrorCode::not_found);
        return {};
      }
      step = *std::move(next);
    } while (!step.found);
    EXPECT_EQ(step.found->state, TaskState::scheduled);
    return step.found->task.id;
  }
  void bury(TaskId id) {
    const LeasedTask leased = engine_->lease_task(id, {.queue = "q"}).value();
    ASSERT_EQ(engine_->bury(leased.lease, "no"), LeaseOutcome::dead);
  }
};

TEST_F(EnginePeek, TheFirstTaskOfEachStateIsTheNextTask) {
  EXPECT_EQ(engine_->first_ready("q").error().code, ErrorCode::not_found);
  ScheduleRequest asked = request("q", 0ms);
  const TaskId second = schedule(asked);
  EXPECT_EQ(engine_->first_dead("q").error().code, ErrorCode::not_found);
  EXPECT_EQ(first_scheduled("q"), TaskId{});
  asked.rules.priority = 1;
  const TaskId first = schedule(asked);
  schedule("q", 2h);
  const TaskId next = schedule("q", 1h);
  schedule("other", 1s);
  EXPECT_EQ(engine_->first_ready("q").value().task.id, first);
  EXPECT_EQ(engine_->first_ready("q").value().task.payload.data, "{\"n\":1}");
  EXPECT_EQ(first_scheduled("q"), next);
  bury(second);
  settle();
  clock_.advance(1ms);
  bury(first);
  settle();
  EXPECT_EQ(engine_->first_dead("q").value().task.id, second) << "it has been dead longest";
  EXPECT_EQ(engine_->first_ready("q").error().code, ErrorCode::not_found);
}

TEST_F(EnginePeek, ChangesOfThisTurnAreShown) {
  const TaskId stored = schedule("q", 2h);
  const TaskId staged = engine_->schedule(request("q", 1h)).value().task.id;
  EXPECT_EQ(first_scheduled("q"), staged);
  ASSERT_TRUE(engine_->cancel(staged));
  EXPECT_EQ(first_scheduled("q"), stored);
  ASSERT_TRUE(engine_->cancel(stored));
  EXPECT_EQ(first_scheduled("q"), TaskId{});
  const TaskId dead = schedule("q", 0ms);
  const TaskId dead_later = schedule("q", 0ms);
  bury(dead);
  settle();
  clock_.advance(1ms);
  bury(dead_later);
  EXPECT_EQ(engine_->first_dead("q").value().task.id, dead);
  ASSERT_TRUE(engine_->redrive(dead));
  EXPECT_EQ(engine_->first_dead("q").value().task.id, dead_later);
  settle();
  engine_->check_invariants();
}

TEST_F(EnginePeek, AScheduledTaskIsFoundBehindThoseOfOtherQueues) {
  for (int i = 0; i < 2'300; ++i) ASSERT_TRUE(engine_->schedule(request("other", 1h)));
  settle();
  const TaskId id = schedule("q", 2h);
  EXPECT_FALSE(engine_->first_scheduled("q").value().found) << "one step does not reach so far";
  EXPECT_EQ(first_scheduled("q"), id);
}

TEST_F(EnginePeek, ScheduledTasksOfAQueueAreMadeDueNowAsManyAsAsked) {
  const TaskId later = schedule("q", 24h);
  const TaskId sooner = schedule("q", 1h);
  const TaskId other = schedule("other", 1s);
  const QueueStep step = engine_->run_now("q", 1).value();
  EXPECT_EQ(step.count, 1u);
  EXPECT_EQ(state_of(sooner), TaskState::ready) << "at once, before the commit";
  EXPECT_EQ(state_of(later), TaskState::scheduled);
  settle();
  engine_->check_invariants();
  EXPECT_EQ(engine_->run_now("q", 10).value().count, 1u);
  EXPECT_EQ(engine_->run_now("q", 10).value().count, 0u);
  settle();
  EXPECT_EQ(state_of(later), TaskState::ready);
  EXPECT_EQ(state_of(other), TaskState::scheduled);
  EXPECT_EQ(engine_->get(later).value().task.tally.redrives, 1u);
  EXPECT_EQ(engine_->run_now("nobody", 1).error().code, ErrorCode::not_found);
  engine_->check_invariants();
}

TEST_F(EnginePeek, TheTimeLeftIsThatOfTheLeaseOrOfTheDelay) {
  const TaskId near = schedule("q", 5s);
  const TaskId far = schedule("q", 24h);
  advance(1s);
  EXPECT_EQ(engine_->time_left(near).value(), 4s);
  EXPECT_EQ(engine_->time_left(far).value(), 24h - 1s);
  advance(4s);
  EXPECT_EQ(engine_->time_left(near).value(), 0s);
  lease("q");
  advance(20s);
  EXPECT_EQ(engine_->time_left(near).value(), 40s);
  EXPECT_EQ(engine_->time_left(TaskId{4'096'000}).error().code, ErrorCode::not_found);
}

TEST_F(EnginePeek, UrgentTasksAreCountedWhileTheyAreReady) {
  ScheduleRequest asked = request("q", 0ms);
  asked.rules.priority = kDefaultPriority - 1;
  schedule(asked);
  schedule("q", 0ms);
  EXPECT_EQ(engine_->queue_detail("q").value().urgent, 1u);
  EXPECT_EQ(engine_->queue_detail("q").value().accepted, 2u);
  EXPECT_EQ(engine_->stats().urgent, 1u);
  lease("q");
  EXPECT_EQ(engine_->queue_detail("q").value().urgent, 0u);
  EXPECT_EQ(engine_->stats().urgent, 0u);
}

TEST_F(EnginePeek, AFailedStoreIsReported) {
  const TaskId id = schedule("q", 24h);
  store_->fail_reads(Error{ErrorCode::unavailable, "no disk", ""});
  EXPECT_EQ(engine_->first_scheduled("q").error().code, ErrorCode::unavailable);
  EXPECT_EQ(engine_->lease_task(id, {.queue = "q"}).error().code, ErrorCode::unavailable);
}

}  // namespace
}  // namespace detent

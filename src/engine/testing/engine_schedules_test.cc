// Recurring schedules in the engine: their tasks and their durability. The decisions about
// occurrences are tested in schedule_registry_test.cc.
#include "base/wall_time.h"
#include "engine/testing/engine_fixture.h"

namespace detent {
namespace {

class EngineSchedules : public EngineFixture {
 protected:
  static RecurringSchedule minutely() {
    return {.name = "s",
            .rule = CronRule{"* * * * *"},
            .queue = "q",
            .payload = {.data = "{\"report\":1}"},
            .rules = {.priority = 7}};
  }
  ScheduleView put(const RecurringSchedule& schedule) {
    ScheduleView view = engine_->put_schedule(schedule).value().view;
    settle();
    return view;
  }
  ScheduleView view_of(const std::string& name) { return engine_->find_schedule(name).value(); }
  void advance_to_next() { advance(*view_of("s").next_at - wall_now()); }
  std::uint64_t waiting(const std::string& queue) {
    const QueueStats counts = view(queue).stats;
    return counts.scheduled + counts.ready + counts.leased;
  }
};

TEST_F(EngineSchedules, TasksAreReadyAtTheirOccurrenceAsTheScheduleSays) {
  const WallTime first = *put(minutely()).next_at;
  advance(first - wall_now() - 1ms);
  EXPECT_EQ(lease_count("q", 10), 0u);
  advance(1ms);
  const std::vector<LeasedTask> tasks = lease("q", 10);
  ASSERT_EQ(tasks.size(), 1u);
  EXPECT_EQ(tasks[0].task.due_at, first);
  EXPECT_EQ(tasks[0].task.key, "s@" + format_rfc3339(first));
  EXPECT_EQ(tasks[0].task.payload.data, "{\"report\":1}");
  EXPECT_EQ(tasks[0].task.rules.priority, 7u);
  EXPECT_EQ(view_of("s").record.progress.last_task, tasks[0].task.id);
  engine_->check_invariants();
}

TEST_F(EngineSchedules, AWorkerThatWaitsIsServed) {
  put(minutely());
  std::vector<LeasedTask> got;
  advance(10s);
  wait_for_one("q", got);
  settle();
  ASSERT_TRUE(engine_->next_wakeup());
  advance_to_next();
  EXPECT_EQ(got.size(), 1u);
}

TEST_F(EngineSchedules, SchedulesAndTheirTasksSurviveACrash) {
  put(minutely());
  advance_to_next();
  const ScheduleRecord before = view_of("s").record;
  crash_and_open();
  EXPECT_EQ(view_of("s").record, before);
  settle();
  EXPECT_EQ(waiting("q"), 1u) << "not made again";
  advance_to_next();
  EXPECT_EQ(waiting("q"), 2u);
}

TEST_F(EngineSchedules, UncommittedOccurrencesAreDecidedAgain) {
  put(minutely());
  clock_.advance(61s);
  store_->fail_write(1, WriteFault::not_applied);
  EXPECT_FALSE(engine_->turn());
  crash_and_open();
  settle();
  EXPECT_EQ(waiting("q"), 1u);
  EXPECT_EQ(view_of("s").record.progress.made, 1u);
}

TEST_F(EngineSchedules, RemovedAndPausedSchedulesStaySoAfterACrash) {
  put(minutely());
  RecurringSchedule other = minutely();
  other.name = "other";
  put(other);
  ASSERT_TRUE(engine_->remove_schedule("s"));
  EXPECT_TRUE(engine_->pause_schedule("other")->record.progress.paused);
  settle();
  crash_and_open();
  EXPECT_EQ(engine_->find_schedule("s").error().code, ErrorCode::not_found);
  advance(10min);
  EXPECT_EQ(engine_->queue("q").error().code, ErrorCode::not_found) << "nothing was made";
  EXPECT_FALSE(engine_->resume_schedule("other")->record.progress.paused);
  settle();
  advance(1min);
  EXPECT_EQ(waiting("q"), 1u);
}

TEST_F(EngineSchedules, AFullQueueDelaysATaskAndLosesNone) {
  set("q", {.max_tasks = 1});
  put(minutely());
  advance_to_next();
  advance(1min);
  EXPECT_EQ(waiting("q"), 1u);
  EXPECT_EQ(view_of("s").record.progress.made, 1u);
  complete(lease("q")[0].lease);
  advance(1s);
  EXPECT_EQ(waiting("q"), 1u);
  EXPECT_EQ(view_of("s").record.progress.made, 2u);
}

TEST_F(EngineSchedules, TheQueuedOneFollowsTheEndOfItsTaskHoweverThatEnds) {
  RecurringSchedule schedule = minutely();
  schedule.overlap = ScheduleOverlap::queue_one;
  schedule.rules.max_attempts = 1;
  put(schedule);
  const auto next_follows = [&](const char* how) {
    settle();
    EXPECT_EQ(view_of("s").record.progress.queued_at, std::nullopt) << how;
    EXPECT_EQ(view("q").stats.ready, 1u) << how;
  };
  advance_to_next();
  advance(1min);
  ASSERT_TRUE(view_of("s").record.progress.queued_at);
  complete(lease("q")[0].lease);
  next_follows("completed");
  advance(1min);
  ASSERT_TRUE(engine_->cancel(view_of("s").record.progress.last_task));
  next_follows("cancelled");
  advance(1min);
  fail(lease("q")[0].lease);
  next_follows("dead");
  advance(1min);
  disk_->flip_bit({.lane = Lane::due,
                   .at = engine_->get(view_of("s").record.progress.last_task)->task.due_at,
                   .id = view_of("s").record.progress.last_task},
                  5);
  EXPECT_EQ(lease_count("q", 1), 0u);
  next_follows("set aside");
}

TEST_F(EngineSchedules, TheQueuedOccurrenceFollowsATaskThatWasSetAside) {
  options_.max_loaded = 16;
  crash_and_open();
  RecurringSchedule schedule = minutely();
  schedule.overlap = ScheduleOverlap::queue_one;
  schedule.rules.priority = kDefaultPriority + 1;
  put(schedule);
  schedule_many("q", 40);
  advance_to_next();
  advance(1min);
  ASSERT_TRUE(view_of("s").record.progress.queued_at);
  const Place place = store_->find(view_of("s").record.progress.last_task).value().value().place;
  ASSERT_EQ(place.lane, Lane::ready);
  disk_->flip_bit(place, 5);
  int handed_out = 0;
  for (int i = 0; i < 50; ++i) {
    for (const LeasedTask& task : lease("q")) {
      complete(task.lease);
      ++handed_out;
    }
  }
  EXPECT_EQ(handed_out, 41) << "in place of the damaged one the one that was queued";
  EXPECT_EQ(view_of("s").record.progress.queued_at, std::nullopt);
}

TEST_F(EngineSchedules, AMisfireAfterALongStopMakesOneTask) {
  put(minutely());
  crash();
  clock_.advance(24h + 30s);
  open();
  settle();
  EXPECT_EQ(waiting("q"), 2u) << "one for what was missed, one for the minute that has just begun";
  EXPECT_EQ(lease("q")[0].task.due_at, std::chrono::floor<std::chrono::minutes>(wall_now()) - 1min);
}

TEST_F(EngineSchedules, MissedOccurrencesAreDecidedInShortTurns) {
  RecurringSchedule schedule = minutely();
  schedule.misfire = Misfire::all;
  schedule.misfire_limit = 1'000;
  put(schedule);
  schedule.name = "t";
  put(schedule);
  crash();
  clock_.advance(24h + 30s);
  open();
  ASSERT_TRUE(engine_->turn());
  EXPECT_LE(waiting("q"), 1'000u);
  settle();
  EXPECT_EQ(waiting("q"), 2'002u);
  engine_->check_invariants();
}

TEST_F(EngineSchedules, AStepOfTheWallClockDecidesSkippedOccurrencesOnce) {
  put(minutely());
  advance_to_next();
  advance(30s);
  clock_.step_wall(1h);
  settle();
  EXPECT_EQ(waiting("q"), 3u) << "the last that was jumped over, and that of this minute";
  clock_.step_wall(-1h);
  settle();
  advance(1h);
  EXPECT_EQ(waiting("q"), 3u);
  advance(30s);
  EXPECT_EQ(waiting("q"), 4u);
}

TEST_F(EngineSchedules, TriggerAndBackfillMakeTasksNow) {
  put(minutely());
  const TaskSnapshot task = engine_->trigger_schedule("s").value();
  EXPECT_EQ(task.task.due_at, wall_now());
  settle();
  clock_.advance(10s);
  const WallTime day = std::chrono::floor<std::chrono::days>(wall_now());
  BackfillStep step = engine_->backfill("s", day - 24h, day, 9'999).value();
  EXPECT_EQ(step.made, 1'000u);
  std::size_t made = step.made;
  while (step.next) {
    settle();
    step = engine_->backfill("s", *step.next, day, 9'999).value();
    made += step.made;
  }
  settle();
  EXPECT_EQ(made, 1'440u);
  EXPECT_EQ(waiting("q"), 1'441u);
  EXPECT_EQ(engine_->check_backfill("s", day, day - 1ms).error().field, "to");
  EXPECT_EQ(engine_->backfill("s", day - 24h, day, 9'999)->there, 1'000u);
  EXPECT_EQ(engine_->trigger_schedule("none").error().code, ErrorCode::not_found);
}

TEST_F(EngineSchedules, AStartAfterTheClockWasPutBackByMoreThanADayBeginsThemAnew) {
  put(minutely());
  advance(10min);
  for (const auto step : {-25h, -24h * 365}) {
    crash();
    clock_.step_wall(step);
    open();
    settle();
    EXPECT_EQ(*view_of("s").next_at, std::chrono::floor<std::chrono::minutes>(wall_now()) + 1min);
    const std::uint64_t made = view_of("s").record.progress.made;
    crash_and_open();
    for (int i = 0; i < 5; ++i) advance(1min);
    EXPECT_EQ(view_of("s").record.progress.made, made + 5);
  }
  crash();
  clock_.step_wall(-23h);
  open();
  advance(5min);
  EXPECT_GT(*view_of("s").next_at, wall_now() + 22h) << "nothing occurs twice";
}

TEST_F(EngineSchedules, TheQueuedOneIsDueAtOnceAfterTheClockWasPutBack) {
  RecurringSchedule schedule = minutely();
  schedule.overlap = ScheduleOverlap::queue_one;
  put(schedule);
  advance_to_next();
  advance(1min);
  ASSERT_TRUE(view_of("s").record.progress.queued_at);
  crash();
  clock_.step_wall(-24h * 365);
  open();
  ASSERT_TRUE(engine_->cancel(view_of("s").record.progress.last_task));
  settle();
  EXPECT_EQ(lease_count("q", 10), 1u);
}

TEST_F(EngineSchedules, AScheduleRestoredFromAClockThatWasAheadContinuesNow) {
  ASSERT_TRUE(engine_->restore_schedule(
      {.schedule = minutely(), .progress = {.decided_to = wall_now() + 24h * 365}}));
  EXPECT_LE(*view_of("s").next_at, wall_now() + 1min);
}

TEST_F(EngineSchedules, NextAndPages) {
  put(minutely());
  const WallTime first = *view_of("s").next_at;
  EXPECT_EQ(engine_->next_occurrences("s", 2).value(),
            (std::vector<WallTime>{first, first + 1min}));
  EXPECT_EQ(engine_->schedules_after("", 10)->size(), 1u);
  EXPECT_EQ(engine_->schedules_after("s", 10)->size(), 0u);
}

TEST_F(EngineSchedules, NothingIsAcceptedAfterAFailedWrite) {
  put(minutely());
  store_->fail_write(1, WriteFault::not_applied);
  ASSERT_TRUE(engine_->schedule(request("q", 1h)));
  EXPECT_FALSE(engine_->turn());
  EXPECT_EQ(engine_->put_schedule(minutely()).error().code, ErrorCode::unavailable);
  EXPECT_EQ(engine_->find_schedule("s").error().code, ErrorCode::unavailable);
}

TEST_F(EngineSchedules, ARestoredOneGoesOnWhereItStoodAndIsDurable) {
  const WallTime now = wall_now();
  const ScheduleRecord record{
      .schedule = minutely(),
      .progress = {
          .created_at = now - 1h, .decided_to = now - 90s, .made = 7, .last_at = now - 2min}};
  EXPECT_TRUE(engine_->restore_schedule(record).value());
  EXPECT_EQ(view_of("s").record, record);
  EXPECT_FALSE(engine_->restore_schedule({.schedule = minutely(), .progress = {}}).value());
  EXPECT_EQ(view_of("s").record, record);
  EXPECT_EQ(engine_->stats().schedules, 1u);
  ASSERT_TRUE(engine_->commit());
  crash();
  open();
  settle();
  EXPECT_GT(view_of("s").record.progress.made, 7u);
  EXPECT_GE(waiting("q"), 1u);
}

TEST_F(EngineSchedules, APreviewIsWhatPuttingItWouldMakeAndChangesNothing) {
  RecurringSchedule schedule = minutely();
  const SchedulePreview preview = engine_->preview_schedule(schedule, 3).value();
  EXPECT_EQ(engine_->find_schedule("s").error().code, ErrorCode::not_found);
  const ScheduleView put = engine_->put_schedule(schedule)->view;
  EXPECT_EQ(preview.words, put.words);
  EXPECT_EQ(preview.next, engine_->next_occurrences("s", 3).value());
  EXPECT_EQ(preview.next.size(), 3u);
  schedule.time_zone = "Mars/X";
  EXPECT_EQ(engine_->preview_schedule(schedule, 3).error().field, "time_zone");
  schedule.name = "a b";
  EXPECT_EQ(engine_->preview_schedule(schedule, 3).error().field, "name");
}

TEST_F(EngineSchedules, APreviewOfAnIntervalThatIsThereCountsOnFromItsAnchor) {
  RecurringSchedule schedule = minutely();
  schedule.rule = IntervalRule{.period = 10min};
  ASSERT_TRUE(engine_->put_schedule(schedule));
  const auto next = engine_->next_occurrences("s", 2).value();
  advance(3min);
  EXPECT_EQ(engine_->preview_schedule(schedule, 2)->next, next);
  schedule.name = "other";
  EXPECT_EQ(engine_->preview_schedule(schedule, 1)->next.at(0), wall_now() + 10min);
}

TEST_F(EngineSchedules, ARestoredOneMakesNoTaskThatWasRestoredBefore) {
  const WallTime occurrence = std::chrono::floor<std::chrono::minutes>(wall_now());
  Task task{.id = TaskId{512}, .queue = "q", .due_at = occurrence};
  task.key = occurrence_key(minutely(), occurrence);
  ASSERT_TRUE(engine_->restore(task));
  ASSERT_TRUE(engine_->restore_schedule(
      {.schedule = minutely(), .progress = {.decided_to = occurrence - 1ms}}));
  settle();
  EXPECT_EQ(waiting("q"), 1u);
  EXPECT_EQ(view_of("s").record.progress.decided_to, occurrence);
  EXPECT_EQ(view_of("s").record.progress.made, 0u);
}

TEST_F(EngineSchedules, AnUnreadableRuleIsRestoredBrokenAndAnInvalidScheduleIsRefused) {
  ScheduleRecord record{.schedule = minutely(), .progress = {}};
  record.schedule.name = "a b";
  EXPECT_EQ(engine_->restore_schedule(record).error().field, "name");
  record.schedule.name = "s";
  record.schedule.time_zone = "Mars/X";
  EXPECT_TRUE(engine_->restore_schedule(record).value());
  EXPECT_EQ(detent::state_of(view_of("s")), "broken");
  settle();
  EXPECT_EQ(view_of("s").record, record);
}

}  // namespace
}  // namespace detent

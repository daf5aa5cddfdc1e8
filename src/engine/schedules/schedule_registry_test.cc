#include "engine/schedules/schedule_registry.h"

#include <gtest/gtest.h>

#include <chrono>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "base/wall_time.h"

namespace detent {
namespace {

using namespace std::chrono_literals;

WallTime at(const std::string& text) { return parse_rfc3339(text).value(); }

/// A fake of the engine's tasks: the registry creates them, and the test ends them.
class FakeTasks final : public OccurrenceTasks {
 public:
  struct Made {
    std::string key;
    WallTime due;
  };

  Result<bool> lives(TaskId id) override {
    if (broken) return Error{ErrorCode::unavailable, "cannot be read", ""};
    return living.contains(id.value);
  }
  Result<std::optional<TaskId>> make(const RecurringSchedule& schedule, WallTime occurrence,
                                     WallTime due) override {
    if (broken) return Error{ErrorCode::resource_exhausted, "the queue is full", ""};
    const std::string key = occurrence_key(schedule, occurrence);
    if (!keys.insert(key).second) return std::optional<TaskId>();
    made.push_back({key, due});
    living.insert(made.size());
    return TaskId{made.size()};
  }

  std::vector<Made> made;  // by id, from 1
  std::set<std::uint64_t> living;
  std::set<std::string> keys;
  bool broken = false;
};

class ScheduleRegistryTest : public ::testing::Test {
 protected:
  static RecurringSchedule hourly() {
    return {.name = "s", .rule = CronRule{"0 * * * *"}, .queue = "q"};
  }
  void put(const RecurringSchedule& schedule) { ASSERT_TRUE(book_->put(schedule, now_)); }
  /// The occurrences for which tasks were made since the last call: "01:00", …
  std::vector<std::string> run_to(const std::string& time) {
    now_ = at("2026-03-02T" + time + ":00Z");
    book_->decide(now_, 100'000, tasks_);
    return taken();
  }
  std::vector<std::string> taken() {
    std::vector<std::string> times;
    for (; seen_ < tasks_.made.size(); ++seen_) {
      times.push_back(tasks_.made[seen_].key.substr(sizeof("s@2026-03-02T") - 1, 5));
    }
    return times;
  }
  void end_task(std::uint64_t id) {
    tasks_.living.erase(id);
    book_->task_ended(TaskId{id});
  }
  ScheduleProgress progress() { return book_->view("s").value().record.progress; }
  /// Loads the stored schedules into a new registry, as a restart does.
  void restart() {
    const std::vector<ScheduleView> all = book_->page("", 10);
    std::vector<ScheduleRecord> records;
    for (const ScheduleView& view : all) records.push_back(view.record);
    book_ = std::make_unique<ScheduleRegistry>();
    book_->restore(std::move(records));
    book_->clock_stepped(now_);
  }
  using Times = std::vector<std::string>;

  WallTime now_ = at("2026-03-02T00:30:00Z");
  FakeTasks tasks_;
  std::unique_ptr<ScheduleRegistry> book_ = std::make_unique<ScheduleRegistry>();
  std::size_t seen_ = 0;
};

TEST_F(ScheduleRegistryTest, MakesATaskForEachOccurrenceOnceItsTimeHasCome) {
  put(hourly());
  EXPECT_EQ(book_->next_wake(), at("2026-03-02T01:00:00Z"));
  EXPECT_EQ(run_to("00:59"), Times());
  EXPECT_EQ(run_to("01:00"), Times{"01:00"});
  EXPECT_EQ(run_to("01:00"), Times());
  EXPECT_EQ(tasks_.made[0].due, at("2026-03-02T01:00:00Z"));
  EXPECT_EQ(book_->next_wake(), at("2026-03-02T02:00:00Z"));
  EXPECT_EQ(progress().made, 1u);
  EXPECT_EQ(progress().last_at, at("2026-03-02T01:00:00Z"));
  EXPECT_EQ(progress().last_task, TaskId{1});
}

TEST_F(ScheduleRegistryTest, EndsAfterItsCount) {
  RecurringSchedule schedule = hourly();
  schedule.count = 2;
  put(schedule);
  EXPECT_EQ(run_to("01:00"), Times{"01:00"});
  EXPECT_EQ(run_to("02:00"), Times{"02:00"});
  EXPECT_EQ(book_->next_wake(), std::nullopt);
  EXPECT_EQ(book_->view("s").value().next_at, std::nullopt);
  EXPECT_EQ(run_to("09:00"), Times());
  schedule.count = 3;
  put(schedule);
  EXPECT_EQ(run_to("10:00"), Times{"10:00"}) << "what passed meanwhile is not made up for";
}

TEST_F(ScheduleRegistryTest, StartIsTheFirstThatMayOccurAndEndIsTooLate) {
  RecurringSchedule schedule = hourly();
  schedule.start = at("2026-03-02T03:00:00Z");
  schedule.end = at("2026-03-02T05:00:00Z");
  put(schedule);
  EXPECT_EQ(run_to("02:00"), Times());
  EXPECT_EQ(run_to("03:00"), Times{"03:00"});
  EXPECT_EQ(run_to("04:00"), Times{"04:00"});
  EXPECT_EQ(run_to("05:00"), Times());
  EXPECT_EQ(book_->next_wake(), std::nullopt);
}

TEST_F(ScheduleRegistryTest, JitterMovesTheTaskNotTheOccurrence) {
  RecurringSchedule schedule = hourly();
  schedule.jitter = 10min;
  put(schedule);
  const auto phase = phase_of(schedule);
  ASSERT_GT(phase, 0ms);
  EXPECT_EQ(book_->next_wake(), at("2026-03-02T01:00:00Z") + phase);
  EXPECT_EQ(book_->view("s").value().next_at, at("2026-03-02T01:00:00Z"));
  EXPECT_EQ(run_to("01:00"), Times());
  EXPECT_EQ(run_to("01:10"), Times{"01:00"});
  EXPECT_EQ(tasks_.made[0].due, at("2026-03-02T01:00:00Z") + phase);
}

TEST_F(ScheduleRegistryTest, MissedOnesAreSkippedMadeOnceOrAllUpToALimit) {
  RecurringSchedule schedule = hourly();
  schedule.misfire = Misfire::skip;
  put(schedule);
  EXPECT_EQ(run_to("05:30"), Times());
  EXPECT_EQ(book_->next_wake(), at("2026-03-02T06:00:00Z"));
  schedule.misfire = Misfire::once;
  put(schedule);
  EXPECT_EQ(run_to("09:30"), Times{"09:00"});
  schedule.misfire = Misfire::all;
  schedule.misfire_limit = 3;
  put(schedule);
  EXPECT_EQ(run_to("11:30"), (Times{"10:00", "11:00"}));
  EXPECT_EQ(run_to("17:30"), (Times{"15:00", "16:00", "17:00"}));
}

TEST_F(ScheduleRegistryTest, MissedOnesEndAtTheCountToo) {
  RecurringSchedule schedule = hourly();
  schedule.misfire = Misfire::all;
  schedule.count = 2;
  put(schedule);
  EXPECT_EQ(run_to("05:30"), (Times{"01:00", "02:00"}));
  EXPECT_EQ(book_->next_wake(), std::nullopt);
}

TEST_F(ScheduleRegistryTest, WhatIsLateByItsGraceIsNotMissed) {
  RecurringSchedule schedule = hourly();
  schedule.misfire = Misfire::skip;
  schedule.misfire_grace = 2h;
  put(schedule);
  EXPECT_EQ(run_to("06:00"), (Times{"04:00", "05:00", "06:00"}));
}

TEST_F(ScheduleRegistryTest, MissedOnesOfALongStopAreMadeABudgetAtATime) {
  RecurringSchedule schedule = hourly();
  schedule.rule = CronRule{"* * * * *"};
  schedule.misfire = Misfire::all;
  schedule.misfire_limit = 100;
  put(schedule);
  now_ = at("2026-03-02T12:00:30Z");
  for (int turn = 0; turn < 20 && book_->next_wake() <= now_; ++turn) {
    const std::size_t before = tasks_.made.size();
    book_->decide(now_, 11, tasks_);
    EXPECT_LE(tasks_.made.size() - before, 11u);
    if (turn % 3 == 0) restart();
  }
  const Times made = taken();
  EXPECT_EQ(made.size(), 101u) << "100 that were missed, and the one at 12:00";
  EXPECT_EQ(made.front(), "10:20");
  EXPECT_EQ(made.back(), "12:00");
}

TEST_F(ScheduleRegistryTest, SkipsWhileTheTaskBeforeLives) {
  RecurringSchedule schedule = hourly();
  schedule.overlap = ScheduleOverlap::skip;
  put(schedule);
  EXPECT_EQ(run_to("01:00"), Times{"01:00"});
  EXPECT_EQ(run_to("02:00"), Times());
  EXPECT_EQ(progress().overlapped, 1u);
  end_task(1);
  EXPECT_EQ(run_to("02:30"), Times());
  EXPECT_EQ(run_to("03:00"), Times{"03:00"});
}

TEST_F(ScheduleRegistryTest, QueuesOneUntilTheTaskBeforeEnds) {
  RecurringSchedule schedule = hourly();
  schedule.overlap = ScheduleOverlap::queue_one;
  put(schedule);
  EXPECT_EQ(run_to("01:00"), Times{"01:00"});
  EXPECT_EQ(run_to("02:00"), Times());
  EXPECT_EQ(run_to("03:00"), Times());
  EXPECT_EQ(progress().queued_at, at("2026-03-02T02:00:00Z"));
  EXPECT_EQ(progress().overlapped, 1u);
  EXPECT_EQ(book_->next_wake(), at("2026-03-02T04:00:00Z")) << "it waits to be told";
  end_task(1);
  EXPECT_EQ(run_to("03:10"), Times{"02:00"});
  EXPECT_EQ(progress().queued_at, std::nullopt);
}

TEST_F(ScheduleRegistryTest, WhatIsQueuedSurvivesARestartAndTheEndOfItsTaskMeanwhile) {
  RecurringSchedule schedule = hourly();
  schedule.overlap = ScheduleOverlap::queue_one;
  put(schedule);
  run_to("01:00");
  run_to("02:00");
  taken();
  restart();
  EXPECT_EQ(run_to("02:10"), Times());
  restart();
  tasks_.living.clear();
  EXPECT_EQ(run_to("02:20"), Times{"02:00"});
}

TEST_F(ScheduleRegistryTest, PassesWithoutTasksWhilePaused) {
  put(hourly());
  ASSERT_TRUE(book_->pause("s"));
  EXPECT_EQ(book_->next_wake(), std::nullopt);
  EXPECT_EQ(run_to("03:30"), Times());
  ASSERT_TRUE(book_->resume("s", now_));
  EXPECT_EQ(run_to("03:40"), Times());
  EXPECT_EQ(run_to("04:00"), Times{"04:00"});
}

TEST_F(ScheduleRegistryTest, TriggerMakesATaskNowThatDoesNotCount) {
  RecurringSchedule schedule = hourly();
  schedule.count = 1;
  schedule.overlap = ScheduleOverlap::skip;
  put(schedule);
  ASSERT_TRUE(book_->pause("s"));
  EXPECT_EQ(book_->trigger("s", now_, tasks_).value(), TaskId{1});
  EXPECT_EQ(book_->trigger("s", now_, tasks_).error().code, ErrorCode::conflict);
  EXPECT_EQ(taken(), Times{"00:30"});
  EXPECT_EQ(progress().made, 0u);
  ASSERT_TRUE(book_->resume("s", now_));
  EXPECT_EQ(run_to("01:00"), Times()) << "it lives";
  end_task(1);
  EXPECT_EQ(run_to("02:00"), Times{"02:00"});
}

TEST_F(ScheduleRegistryTest, BackfillMakesWhatWasNotMadeInSteps) {
  put(hourly());
  run_to("01:00");
  run_to("02:00");
  taken();
  now_ = at("2026-03-02T02:30:00Z");
  const WallTime from = at("2026-03-01T23:00:00Z");
  BackfillStep step = book_->backfill("s", from, now_ + 24h, 3, now_, tasks_).value();
  EXPECT_EQ(step.made, 2u);   // 23:00 and 00:00
  EXPECT_EQ(step.there, 1u);  // 01:00
  ASSERT_EQ(step.next, at("2026-03-02T02:00:00Z"));
  step = book_->backfill("s", *step.next, now_ + 24h, 3, now_, tasks_).value();
  EXPECT_EQ(step.made, 0u);
  EXPECT_EQ(step.there, 1u);
  EXPECT_EQ(step.next, std::nullopt) << "what is to come will come";
  EXPECT_EQ(tasks_.made[2].due, now_);
  EXPECT_EQ(progress().made, 2u);
}

TEST_F(ScheduleRegistryTest, ABackfillHasAsManyOccurrencesAsALimitAllows) {
  put(hourly());
  const WallTime end = now_ - 30min;  // an occurrence, and not of the range
  const auto most = std::chrono::hours{kMaxBackfill};
  EXPECT_TRUE(book_->check_backfill("s", end - most, end, now_));
  const Error refused = book_->check_backfill("s", end - most - 1h, end, now_).error();
  EXPECT_EQ(refused.code, ErrorCode::invalid_argument);
  EXPECT_EQ(refused.field, "to");
  EXPECT_NE(refused.message.find("up to " + format_rfc3339(end - 1h)), std::string::npos)
      << refused.message;
  EXPECT_TRUE(book_->check_backfill("s", now_ - 1h, WallTime::max(), now_)) << "only past ones";
}

TEST_F(ScheduleRegistryTest, APausedScheduleIsNotBackfilled) {
  put(hourly());
  ASSERT_TRUE(book_->pause("s"));
  const WallTime from = now_ - 5h;
  EXPECT_EQ(book_->check_backfill("s", from, now_, now_).error().code, ErrorCode::conflict);
  EXPECT_EQ(book_->backfill("s", from, now_, 9, now_, tasks_).error().code, ErrorCode::conflict);
  ASSERT_TRUE(book_->resume("s", now_));
  EXPECT_EQ(book_->backfill("s", from, now_, 9, now_, tasks_)->made, 5u);
}

TEST_F(ScheduleRegistryTest, PuttingTheSameChangesNothing) {
  RecurringSchedule schedule = hourly();
  schedule.rule = IntervalRule{.period = 1h};
  EXPECT_FALSE(book_->put(schedule, now_).value());
  book_->take_changes();
  run_to("01:00");
  EXPECT_TRUE(book_->put(schedule, now_).value());
  EXPECT_EQ(book_->take_changes().schedules.size(), 0u);
  EXPECT_EQ(run_to("01:30"), Times{"01:30"}) << "its anchor is when it was first put";
}

TEST_F(ScheduleRegistryTest, AnAnchorMayBeTheBeginningOf1970) {
  now_ = at("2026-03-02T00:10:00Z");
  RecurringSchedule schedule = hourly();
  schedule.rule = IntervalRule{.period = 30min, .anchor = WallTime{}};
  put(schedule);
  EXPECT_EQ(run_to("01:00"), (Times{"00:30", "01:00"}));
}

TEST_F(ScheduleRegistryTest, AnEditHoldsFromTheNextOccurrenceOn) {
  put(hourly());
  run_to("01:00");
  taken();
  RecurringSchedule schedule = hourly();
  schedule.rule = CronRule{"*/20 * * * *"};
  now_ = at("2026-03-02T01:50:00Z");
  EXPECT_TRUE(book_->put(schedule, now_).value());
  EXPECT_EQ(run_to("01:55"), Times()) << "01:20 and 01:40 were before";
  EXPECT_EQ(run_to("02:00"), Times{"02:00"});
  EXPECT_EQ(progress().made, 2u);
}

TEST_F(ScheduleRegistryTest, ATimeZoneIsKeptAsTheDatabaseSpellsIt) {
  RecurringSchedule schedule = hourly();
  schedule.time_zone = "europe/BERLIN";
  EXPECT_FALSE(book_->put(schedule, now_).value());
  const ScheduleView view = book_->view(schedule.name).value();
  EXPECT_EQ(view.record.schedule.time_zone, "Europe/Berlin");
  EXPECT_NE(view.words.find("Europe/Berlin"), std::string::npos) << view.words;
  EXPECT_NE(book_->preview(schedule, 1, now_)->words.find("Europe/Berlin"), std::string::npos);
  ScheduleRecord dumped = view.record;
  dumped.schedule.name = "dumped";
  dumped.schedule.time_zone = "utc";
  EXPECT_TRUE(book_->restore(dumped, now_).value());
  EXPECT_EQ(book_->view("dumped")->record.schedule.time_zone, "UTC");
}

TEST_F(ScheduleRegistryTest, RefusesWhatCannotBe) {
  RecurringSchedule schedule = hourly();
  schedule.rule = CronRule{"0 25 * * *"};
  const Result<bool> refused = book_->put(schedule, now_);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().field, "cron");
  EXPECT_NE(refused.error().message.find("column 3"), std::string::npos) << refused.error().message;
  schedule = hourly();
  schedule.time_zone = "Nowhere/Town";
  EXPECT_EQ(book_->put(schedule, now_).error().field, "time_zone");
  schedule.rule = IntervalRule{.period = 10min};
  EXPECT_EQ(book_->put(schedule, now_).error().field, "time_zone");
  EXPECT_EQ(book_->preview(schedule, 1, now_).error().field, "time_zone");
  schedule = hourly();
  schedule.queue.clear();
  EXPECT_EQ(book_->put(schedule, now_).error().field, "queue");
  EXPECT_EQ(book_->size(), 0u);
  EXPECT_EQ(book_->view("s").error().code, ErrorCode::not_found);
  EXPECT_EQ(book_->remove("s").error().code, ErrorCode::not_found);
}

TEST_F(ScheduleRegistryTest, TriesAgainWhatAnErrorPrevented) {
  put(hourly());
  tasks_.broken = true;
  EXPECT_EQ(run_to("01:00"), Times());
  EXPECT_EQ(book_->next_wake(), now_ + 1s);
  tasks_.broken = false;
  EXPECT_EQ(run_to("01:01"), Times{"01:00"});
}

TEST_F(ScheduleRegistryTest, AClockThatGoesBackRepeatsNothingUnlessByMoreThanADay) {
  put(hourly());
  run_to("05:00");
  taken();
  now_ = at("2026-03-02T02:00:00Z");
  book_->clock_stepped(now_);
  EXPECT_EQ(run_to("05:30"), Times());
  EXPECT_EQ(run_to("06:00"), Times{"06:00"});
  now_ = at("2026-02-20T00:00:00Z");
  book_->clock_stepped(now_);
  EXPECT_EQ(book_->next_wake(), at("2026-02-20T01:00:00Z"));
}

TEST_F(ScheduleRegistryTest,
       AnAnchorThatWasTheTimeOfThePutIsNotWaitedForAfterTheClockWasAYearAhead) {
  RecurringSchedule schedule = hourly();
  now_ = at("2027-03-02T00:07:00Z");
  schedule.rule = IntervalRule{.period = 10min};
  put(schedule);
  schedule.name = "monthly";
  schedule.rule = CalendarRule{.unit = CalendarRule::Unit::month};
  put(schedule);
  schedule.name = "dated";
  schedule.rule = CalendarRule{.anchor = at("2027-05-01T09:00:00Z")};
  put(schedule);
  now_ = at("2026-03-02T00:30:00Z");
  restart();
  EXPECT_EQ(book_->view("s")->next_at, at("2026-03-02T00:37:00Z")) << "in the same phase";
  EXPECT_EQ(book_->view("monthly")->next_at, at("2026-04-02T00:30:00Z"));
  EXPECT_EQ(book_->view("dated")->next_at, at("2027-05-01T09:00:00Z")) << "as the user said";
  EXPECT_EQ(book_->take_changes().schedules.size(), 3u);
  now_ = at("2026-01-05T12:00:00Z");
  restart();
  EXPECT_EQ(book_->view("monthly")->next_at, at("2026-02-05T12:00:00Z")) << "a second time, too";
}

TEST_F(ScheduleRegistryTest, NoWayToPutAScheduleTakesAPeriodOfLessThanASecond) {
  RecurringSchedule schedule = hourly();
  schedule.rule = IntervalRule{.period = 999ms};
  const Error refused = book_->put(schedule, now_).error();
  EXPECT_EQ(refused.message, "the interval must be 1 s to 4294967295 s, got 999 ms");
  for (const char* const expression : {"@every 999ms", "@every PT0.999S"}) {
    schedule.rule = CronRule{expression};
    const Error error = book_->put(schedule, now_).error();
    EXPECT_EQ(error.code, ErrorCode::invalid_argument);
    EXPECT_EQ(error.field, "cron") << expression;
    EXPECT_EQ(error.message, refused.message) << expression;
    EXPECT_EQ(book_->preview(schedule, 1, now_).error(), error);
    EXPECT_EQ(book_->restore({.schedule = schedule, .progress = {}}, now_).error(), error);
  }
  for (const char* const expression : {"@every 1s", "* * * * * *"}) {
    schedule.rule = CronRule{expression};
    EXPECT_TRUE(book_->put(schedule, now_)) << expression;
  }
}

TEST_F(ScheduleRegistryTest, ABrokenRuleStandsStillUntilItIsPutRight) {
  RecurringSchedule schedule = hourly();
  schedule.time_zone = "Gone/Away";
  book_->restore({{.schedule = schedule, .progress = {}}});
  EXPECT_EQ(book_->next_wake(), std::nullopt);
  EXPECT_NE(book_->view("s").value().broken, "");
  EXPECT_EQ(book_->next("s", 1, now_).error().code, ErrorCode::conflict);
  EXPECT_TRUE(book_->refresh(10));
  put(hourly());
  EXPECT_EQ(book_->view("s").value().broken, "");
  EXPECT_EQ(run_to("01:00"), Times{"01:00"});
}

TEST_F(ScheduleRegistryTest, RefreshGoesRoundInParts) {
  for (const char* name : {"a", "b", "c"}) {
    RecurringSchedule schedule = hourly();
    schedule.name = name;
    put(schedule);
  }
  EXPECT_FALSE(book_->refresh(2));
  EXPECT_TRUE(book_->refresh(2));
  EXPECT_FALSE(book_->refresh(2));
  EXPECT_EQ(book_->next_wake(), at("2026-03-02T01:00:00Z"));
}

TEST_F(ScheduleRegistryTest, TellsWhatHasChangedOnce) {
  put(hourly());
  EXPECT_EQ(book_->take_changes().schedules.size(), 1u);
  EXPECT_EQ(book_->take_changes().schedules.size(), 0u);
  run_to("01:00");
  const ScheduleRegistry::Changes changes = book_->take_changes();
  ASSERT_EQ(changes.schedules.size(), 1u);
  EXPECT_EQ(changes.schedules[0].progress.decided_to, at("2026-03-02T01:00:00Z"));
  run_to("02:00");
  ASSERT_TRUE(book_->remove("s"));
  const ScheduleRegistry::Changes removal = book_->take_changes();
  EXPECT_EQ(removal.schedules.size(), 0u);
  EXPECT_EQ(removal.removed, std::vector<std::string>{"s"});
}

TEST_F(ScheduleRegistryTest, OneThatIsRemovedTwiceInATurnIsToldOnce) {
  put(hourly());
  ASSERT_TRUE(book_->remove("s"));
  put(hourly());
  ASSERT_TRUE(book_->remove("s"));
  EXPECT_EQ(book_->take_changes().removed, std::vector<std::string>{"s"});
}

TEST_F(ScheduleRegistryTest, PagesByName) {
  for (const char* name : {"b", "a", "c"}) {
    RecurringSchedule schedule = hourly();
    schedule.name = name;
    put(schedule);
  }
  ASSERT_EQ(book_->page("", 2).size(), 2u);
  EXPECT_EQ(book_->page("", 2)[0].record.schedule.name, "a");
  EXPECT_EQ(book_->page("b", 2).size(), 1u);
}

}  // namespace
}  // namespace detent

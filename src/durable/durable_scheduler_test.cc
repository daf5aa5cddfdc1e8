#include "detent/durable_scheduler.h"

#include <atomic>
#include <cstdlib>
#include <latch>
#include <stdexcept>
#include <string>
#include <vector>

#include "durable/test_durable.h"

namespace detent {
namespace {

using Code = DurableError::Code;
using State = TaskInfo::State;
using Payloads = std::vector<std::string>;

class DurableSchedulerTest : public DurableFixture {
 protected:
  DurableSchedulerTest() { open(); }
  Code code_of_find(std::uint64_t id) { return scheduler().find(id).error().code; }
};

// ---- due tasks run ----

TEST_F(DurableSchedulerTest, IsUnavailableInAChildProcess) {
  GTEST_FLAG_SET(death_test_style, "fast");
  EXPECT_EXIT(
      {
        bool is_dead = true;
        const auto expect_unavailable = [&](const DurableError& error) {
          is_dead = is_dead && error.code == DurableError::Code::unavailable;
        };
        expect_unavailable(scheduler_->schedule({.name = "a"}, 1s).error());
        expect_unavailable(scheduler_->cancel(1).error());
        expect_unavailable(scheduler_->find(1).error());
        scheduler_->schedule_async({.name = "a"}, 1s, [&](DurableResult<ScheduledTask> result) {
          expect_unavailable(result.error());
        });
        scheduler_->start();
        scheduler_->stop();
        scheduler_.reset();
        std::_Exit(is_dead ? EXIT_SUCCESS : EXIT_FAILURE);
      },
      testing::ExitedWithCode(EXIT_SUCCESS), "");
  EXPECT_TRUE(scheduler_->schedule({.name = "a"}, 1s)) << "the parent's scheduler must still work";
}

TEST_F(DurableSchedulerTest, RunsATaskWhenItIsDueAndNotBefore) {
  note("mail");
  const std::uint64_t id = schedule({.name = "mail", .payload = "a"}, 30 * 24h);
  advance(30 * 24h - 1ms);
  EXPECT_EQ(ran_, Payloads{});
  EXPECT_EQ(scheduler().find(id).value().state, State::scheduled);
  advance(1ms);
  EXPECT_EQ(ran_, Payloads{"a"});
  EXPECT_EQ(code_of_find(id), Code::not_found);
}

TEST_F(DurableSchedulerTest, ATaskOfAHundredYearsOutlivesTheProcessAndRunsOnTheMillisecond) {
  schedule({.name = "mail", .payload = "a"}, 100 * 365 * 24h);
  clock_.advance(50 * 365 * 24h);
  reopen();
  note("mail");
  advance(50 * 365 * 24h - 1ms);
  EXPECT_EQ(ran_, Payloads{});
  advance(1ms);
  EXPECT_EQ(ran_, Payloads{"a"});
}

TEST_F(DurableSchedulerTest, RunsATaskOfADateWhenTheWallClockShowsIt) {
  note("mail");
  const WallInstant now = clock_.wall_now();
  ASSERT_TRUE(scheduler().schedule_at({.name = "mail", .payload = "a"}, now + 1h));
  clock_.step_wall(30min);
  advance(29min);
  EXPECT_EQ(ran_, Payloads{});
  advance(1min);
  EXPECT_EQ(ran_, Payloads{"a"});
}

TEST_F(DurableSchedulerTest, ShowsTheHandlerItsTask) {
  const WallTime now = std::chrono::ceil<std::chrono::milliseconds>(clock_.wall_now());
  const std::string bytes("\0\xff{", 3);
  std::uint64_t seen = 0;
  scheduler().on("mail", [&](const TaskView& task) {
    seen = task.id();
    EXPECT_EQ(task.name(), "mail");
    EXPECT_EQ(task.key(), "k");
    EXPECT_EQ(task.payload(), bytes);
    EXPECT_EQ(task.due_at(), now + 1h);
    EXPECT_EQ(task.attempt(), 1u);
    EXPECT_EQ(task.last_error(), "");
    return Outcome::done;
  });
  const std::uint64_t id = schedule({.name = "mail", .key = "k", .payload = bytes}, 1h);
  advance(1h);
  EXPECT_EQ(seen, id);
}

TEST_F(DurableSchedulerTest, RunsTheMostUrgentOfANameFirst) {
  schedule({.name = "mail", .payload = "later", .priority = 2});
  schedule({.name = "mail", .payload = "first", .priority = 1});
  note("mail");
  settle();
  EXPECT_EQ(ran_, (Payloads{"first", "later"}));
}

// If the handler ran on the engine's thread, its call would wait for itself.
TEST_F(DurableSchedulerTest, HandlersMayUseTheSchedulerOnAnyExecutor) {
  scheduler().on("first", [&](const TaskView& task) {
    EXPECT_EQ(scheduler().find(task.id()).value().state, State::leased);
    EXPECT_TRUE(scheduler().schedule({.name = "second", .payload = "b"}, 0s));
    return Outcome::done;
  });
  note("second");
  schedule({.name = "first"});
  settle();
  EXPECT_EQ(ran_, Payloads{"b"});
}

TEST_F(DurableSchedulerTest, AHandlerTakesThePlaceOfTheOneBefore) {
  scheduler().on("mail", [](const TaskView&) { return Outcome::dead; });
  note("mail");
  schedule({.name = "mail", .payload = "a"});
  settle();
  EXPECT_EQ(ran_, Payloads{"a"});
}

TEST_F(DurableSchedulerTest, AnObjectMayBeMovedWhileTasksWait) {
  note("mail");
  schedule({.name = "mail", .payload = "a"}, 1h);
  DurableScheduler moved(*std::move(scheduler_));
  scheduler_.reset();
  advance(1h);
  EXPECT_EQ(ran_, Payloads{"a"});
  EXPECT_TRUE(moved.schedule({.name = "mail", .payload = "b"}, 0s));
  settle();
  EXPECT_EQ(ran_, (Payloads{"a", "b"}));
}

// ---- attempts that fail ----

TEST_F(DurableSchedulerTest, AThrownObjectIsTheErrorOfTheFailedAttempt) {
  scheduler().on("mail", [](const TaskView& task) -> Outcome {
    if (task.payload() == "odd") throw 7;  // NOLINT(hicpp-exception-baseclass): on purpose
    throw std::runtime_error("no route to " + std::string(task.payload()));
  });
  const std::uint64_t id = schedule({.name = "mail", .payload = "ada"});
  const std::uint64_t odd = schedule({.name = "mail", .payload = "odd"});
  settle();
  const TaskInfo failed = scheduler().find(id).value();
  EXPECT_EQ(failed.state, State::scheduled);
  EXPECT_EQ(failed.attempts, 1u);
  EXPECT_EQ(failed.error, "no route to ada");
  EXPECT_EQ(scheduler().find(odd).value().error,
            "the handler threw an object that is not a std::exception");
}

TEST_F(DurableSchedulerTest, AnAttemptFollowsAfterTheBackoffUntilTheLast) {
  std::vector<std::uint32_t> attempts;
  scheduler().on("mail", [&](const TaskView& task) {
    attempts.push_back(task.attempt());
    return Outcome::retry;
  });
  const std::uint64_t id =
      schedule({.name = "mail", .max_attempts = 3, .backoff = 10s, .max_backoff = 10s});
  settle();
  advance(7s);  // ± 20 %
  EXPECT_EQ(attempts, (std::vector<std::uint32_t>{1}));
  advance(5s);
  EXPECT_EQ(attempts, (std::vector<std::uint32_t>{1, 2}));
  advance(12s);
  EXPECT_EQ(attempts, (std::vector<std::uint32_t>{1, 2, 3}));
  const TaskInfo dead = scheduler().find(id).value();
  EXPECT_EQ(dead.state, State::dead);
  EXPECT_EQ(dead.error, "the handler asked for another attempt");
  advance(24h);
  EXPECT_EQ(attempts.size(), 3u);
}

TEST_F(DurableSchedulerTest, AHandlerCanGiveATaskUpAndAMoveLetsItLiveAgain) {
  scheduler().on("mail", [](const TaskView&) { return Outcome::dead; });
  const std::uint64_t id = schedule({.name = "mail", .payload = "a"});
  settle();
  EXPECT_EQ(scheduler().find(id).value().state, State::dead);
  EXPECT_EQ(scheduler().find(id).value().error, "the handler gave the task up");
  note("mail");
  EXPECT_TRUE(scheduler().move(id, 0s));
  settle();
  EXPECT_EQ(ran_, Payloads{"a"});
}

// ---- names without a handler ----

TEST_F(DurableSchedulerTest, ATaskWithoutAHandlerWaitsUntilTheStart) {
  const std::uint64_t id = schedule({.name = "mail"});
  advance(1h);
  EXPECT_EQ(scheduler().find(id).value().state, State::ready);
  scheduler().start();
  settle();
  EXPECT_EQ(scheduler().find(id).value().state, State::dead);
}

TEST_F(DurableSchedulerTest, AfterTheStartEveryNameWithoutAHandlerIsKnown) {
  note("mail");
  const std::uint64_t before = schedule({.name = "old"}, 1h);
  scheduler().start();
  const std::uint64_t after = schedule({.name = "new"}, 1h);
  schedule({.name = "mail", .payload = "a"}, 1h);
  advance(1h);
  EXPECT_EQ(scheduler().find(before).value().state, State::dead);
  EXPECT_EQ(scheduler().find(after).value().state, State::dead);
  EXPECT_EQ(ran_, Payloads{"a"});
}

TEST_F(DurableSchedulerTest, AHandlerMayComeAfterTheStart) {
  scheduler().start();
  schedule({.name = "mail", .payload = "a"}, 1h);
  settle();
  note("mail");
  advance(1h);
  EXPECT_EQ(ran_, Payloads{"a"});
}

TEST_F(DurableSchedulerTest, OpeningKillsNoOverdueTaskBeforeItsHandlerIsThere) {
  schedule({.name = "mail", .payload = "a"}, 1h);
  scheduler_.reset();
  clock_.advance(2h);
  open();
  settle();
  note("mail");
  scheduler().start();
  settle();
  EXPECT_EQ(ran_, Payloads{"a"});
}

// ---- keys, cancel, move, find ----

TEST_F(DurableSchedulerTest, AKeyStandsForOneTaskWhileThatLives) {
  const TaskRequest request{.name = "mail", .key = "k", .payload = "a"};
  const ScheduledTask first = scheduler().schedule(request, 1h).value();
  EXPECT_FALSE(first.was_there);
  const ScheduledTask again = scheduler().schedule(request, 1h).value();
  EXPECT_TRUE(again.was_there);
  EXPECT_EQ(again.id, first.id);
  EXPECT_EQ(again.due_at, first.due_at);
  EXPECT_EQ(scheduler().schedule({.name = "mail", .key = "k", .payload = "b"}, 1h).error().code,
            Code::conflict);
  EXPECT_TRUE(scheduler().schedule({.name = "other", .key = "k", .payload = "b"}, 1h));
}

TEST_F(DurableSchedulerTest, AKeyIsFreeOnceItsTaskHasEnded) {
  note("mail");
  schedule({.name = "mail", .key = "k", .payload = "a"}, 1h);
  EXPECT_TRUE(scheduler().cancel("mail", "k"));
  EXPECT_FALSE(
      scheduler().schedule({.name = "mail", .key = "k", .payload = "b"}, 1h).value().was_there);
  advance(1h);
  EXPECT_EQ(ran_, Payloads{"b"});
  EXPECT_FALSE(
      scheduler().schedule({.name = "mail", .key = "k", .payload = "b"}, 1h).value().was_there);
  advance(1h);
  EXPECT_EQ(ran_, (Payloads{"b", "b"}));
}

TEST_F(DurableSchedulerTest, AKeyStandsForATaskThatHasEndedForAsLongAsTheOptionsSay) {
  key_retention_ = 10min;
  reopen();
  note("mail");
  const TaskRequest request{.name = "mail", .key = "k", .payload = "a"};
  schedule(request);
  settle();
  EXPECT_EQ(ran_, Payloads{"a"});
  reopen();
  note("mail");
  EXPECT_TRUE(scheduler().schedule(request, 0ms).value().was_there);
  advance(10min);
  EXPECT_EQ(ran_, Payloads{"a"});
  EXPECT_FALSE(scheduler().schedule(request, 0ms).value().was_there);
  settle();
  EXPECT_EQ(ran_, (Payloads{"a", "a"}));
}

TEST_F(DurableSchedulerTest, AKeyIsKeptWithItsTask) {
  const TaskRequest request{.name = "mail", .key = "k", .payload = "a"};
  const std::uint64_t id = schedule(request, 1h);
  reopen();
  EXPECT_EQ(scheduler().find("mail", "k").value().id, id);
  EXPECT_TRUE(scheduler().schedule(request, 1h).value().was_there);
}

TEST_F(DurableSchedulerTest, ACancelledTaskDoesNotRun) {
  note("mail");
  const std::uint64_t id = schedule({.name = "mail", .payload = "a"}, 1h);
  schedule({.name = "mail", .key = "k", .payload = "b"}, 1h);
  EXPECT_TRUE(scheduler().cancel(id));
  EXPECT_TRUE(scheduler().cancel("mail", "k"));
  EXPECT_EQ(scheduler().cancel(id).error().code, Code::not_found);
  EXPECT_EQ(scheduler().cancel("mail", "k").error().code, Code::not_found);
  EXPECT_EQ(scheduler().cancel("mail", "never").error().code, Code::not_found);
  advance(2h);
  EXPECT_EQ(ran_, Payloads{});
}

TEST_F(DurableSchedulerTest, AMovedTaskRunsAtItsNewTime) {
  note("mail");
  const std::uint64_t id = schedule({.name = "mail", .payload = "a"}, 1h);
  schedule({.name = "mail", .key = "k", .payload = "b"}, 1h);
  const WallInstant now = clock_.wall_now();
  EXPECT_EQ(scheduler().move(id, 5h).value().due_at, now + 5h);
  EXPECT_TRUE(scheduler().move_at("mail", "k", now + 4h));
  advance(2h);
  EXPECT_EQ(ran_, Payloads{});
  EXPECT_TRUE(scheduler().move("mail", "k", 0s));
  settle();
  EXPECT_EQ(ran_, Payloads{"b"});
  EXPECT_TRUE(scheduler().move_at(id, now + 3h));
  advance(1h);
  EXPECT_EQ(ran_, (Payloads{"b", "a"}));
}

TEST_F(DurableSchedulerTest, FindShowsAllFieldsOfATask) {
  const WallTime now = std::chrono::ceil<std::chrono::milliseconds>(clock_.wall_now());
  const std::uint64_t id = schedule({.name = "mail", .key = "k", .payload = "a"}, 1h);
  for (const TaskInfo& task :
       {scheduler().find(id).value(), scheduler().find("mail", "k").value()}) {
    EXPECT_EQ(task.id, id);
    EXPECT_EQ(task.name, "mail");
    EXPECT_EQ(task.key, "k");
    EXPECT_EQ(task.payload, "a");
    EXPECT_EQ(task.state, State::scheduled);
    EXPECT_EQ(task.due_at, now + 1h);
    EXPECT_EQ(task.created_at, now);
    EXPECT_EQ(task.attempts, 0u);
    EXPECT_EQ(task.error, "");
  }
}

TEST_F(DurableSchedulerTest, InvalidTasksAreRefused) {
  const auto code_of = [this](const TaskRequest& request, std::chrono::hours delay) {
    return scheduler().schedule(request, delay).error().code;
  };
  EXPECT_EQ(code_of({.name = "no spaces"}, 1h), Code::invalid_argument);
  EXPECT_EQ(code_of({.name = "mail", .payload = std::string(65'536, 'x')}, 1h), Code::too_large);
  EXPECT_EQ(code_of({.name = "mail", .max_attempts = 0}, 1h), Code::invalid_argument);
  EXPECT_EQ(code_of({.name = "mail"}, 24h * 365 * 200), Code::invalid_argument);
  EXPECT_EQ(code_of({.name = "mail", .backoff = 2h}, 1h), Code::invalid_argument);
  const auto beyond_time = std::chrono::sys_seconds::max();
  EXPECT_EQ(scheduler().schedule_at({.name = "mail"}, beyond_time).error().code,
            Code::invalid_argument);
  EXPECT_TRUE(
      scheduler().schedule({.name = "mail"}, std::chrono::hours::min()));  // due immediately
}

// ---- schedule_async ----

TEST_F(DurableSchedulerTest, ScheduleAsyncAnswersOnTheExecutor) {
  std::vector<std::uint64_t> ids;  // written by the hand-over thread, read while all threads sleep
  for (int i = 0; i < 100; ++i) {
    scheduler().schedule_async({.name = "mail"}, 1h, [&](DurableResult<ScheduledTask> scheduled) {
      ids.push_back(scheduled.value().id);
      EXPECT_TRUE(scheduler().find(ids.back()));  // a callback may call the scheduler
    });
  }
  Code refused = Code::internal;
  scheduler().schedule_async({.name = "no spaces"}, 1h, [&](DurableResult<ScheduledTask> answer) {
    refused = answer.error().code;
  });
  settle();
  EXPECT_EQ(ids.size(), 100u);
  EXPECT_EQ(refused, Code::invalid_argument);
}

TEST_F(DurableSchedulerTest, ScheduleAsyncIsAnsweredByAStopAndRefusedAfterIt) {
  std::atomic<int> accepted = 0;  // written by any thread, read after the stop
  for (int i = 0; i < 100; ++i) {
    scheduler().schedule_async({.name = "mail"}, 1h, [&](DurableResult<ScheduledTask> answer) {
      accepted += answer.has_value() ? 1 : 0;
    });
  }
  scheduler().stop();
  EXPECT_EQ(accepted, 100);
  Code refused = Code::internal;
  scheduler().schedule_async({.name = "mail"}, 1h, [&](DurableResult<ScheduledTask> answer) {
    refused = answer.error().code;
  });
  EXPECT_EQ(refused, Code::unavailable);
}

// ---- the folder ----

TEST_F(DurableSchedulerTest, AFolderIsOpenOnceAtATime) {
  const DurableResult<DurableScheduler> second = DurableScheduler::open(options());
  ASSERT_FALSE(second);
  EXPECT_EQ(second.error().code, Code::unavailable);
  EXPECT_NE(second.error().message.find("'" + path_ + "' is already open in this process"),
            std::string::npos)
      << second.error().message;
  scheduler().stop();
  EXPECT_TRUE(DurableScheduler::open(options()));
  scheduler_.reset();
  EXPECT_TRUE(DurableScheduler::open(options()));
}

TEST(DurableScheduler, AHandlerCanBeTestedWithoutOne) {
  const auto is_loud = [](const TaskView& task) {
    return task.payload() == "loud" ? Outcome::done : Outcome::dead;
  };
  EXPECT_EQ(is_loud(TaskView({.name = "mail", .payload = "loud"})), Outcome::done);
}

TEST(DurableScheduler, AnErrorNamesTheFolderThatCannotBeOpened) {
  const auto opened = DurableScheduler::open({.path = "/dev/null/data"});
  EXPECT_EQ(opened.error().code, Code::invalid_argument);
  EXPECT_NE(opened.error().message.find("/dev/null/data"), std::string::npos);
}

TEST(DurableScheduler, TheLinesOfItsHeaderWorkOnTheMachinesClock) {
  const TestFolder folder;
  std::string cancelled;
  std::latch ran(1);
  {
    auto ds = DurableScheduler::open({.path = folder / "data"}).value();
    ds.on("order.cancel", [&](const TaskView& t) {
      cancelled = t.payload();
      ran.count_down();
      return Outcome::done;
    });
    ds.schedule({.name = "order.cancel", .key = "o-1001", .payload = "…"}, 30 * 24h);
    ds.cancel("order.cancel", "o-1001");
    ds.schedule({.name = "order.cancel", .key = "o-1002", .payload = "unpaid"}, 1ms);
    ran.wait();
  }
  EXPECT_EQ(cancelled, "unpaid");
  auto ds = DurableScheduler::open({.path = folder / "data"}).value();
  EXPECT_FALSE(ds.find("order.cancel", "o-1001"));
  EXPECT_FALSE(ds.find("order.cancel", "o-1002"));
}

}  // namespace
}  // namespace detent

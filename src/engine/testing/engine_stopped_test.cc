// After its store has failed, an engine refuses every verb and does not use the store, which may be
// closed (engine_thread.h opens it again).
#include <gtest/gtest.h>

#include <array>
#include <optional>
#include <vector>

#include "engine/testing/engine_fixture.h"

namespace detent {
namespace {

class EngineStopped : public EngineFixture {
 protected:
  static RecurringSchedule minutely(const std::string& name) {
    return {.name = name, .rule = IntervalRule{.period = 1min}, .queue = "q"};
  }
  /// Creates a task of each kind, a key and a schedule, so that each verb would have work.
  void fill() {
    far_ = schedule("q", 2h);
    keyed_ = schedule({.queue = "q", .due = 1h, .key = "k"});
    schedule("q", 0ms);
    lease_ = lease("q").at(0).lease;
    schedule_many("q", 3);
    ASSERT_TRUE(engine_->put_schedule(minutely("s")));
    settle();
    far_task_ = engine_->get(far_).value().task;
  }
  void fail() {
    store_->fail_write(1, WriteFault::not_applied);
    ASSERT_TRUE(engine_->schedule(request("q", 1h)));
    ASSERT_FALSE(engine_->commit());
  }
  template <class T>
  void expect_refused(const char* verb, const Result<T>& result) {
    ASSERT_FALSE(result) << verb;
    EXPECT_EQ(result.error().code, ErrorCode::unavailable) << verb;
  }

  void expect_tasks_refused();
  /// Calls both variants of read_ahead(), which return nothing.
  void read_ahead();
  void expect_leases_refused();
  void expect_queues_refused();
  void expect_schedules_refused();
  void expect_far_tasks_refused();

  TaskId far_;
  TaskId keyed_;
  LeaseToken lease_;
  std::optional<Task> far_task_;
};

void EngineStopped::expect_tasks_refused() {
  expect_refused("schedule", engine_->schedule(request("q", 0ms)));
  expect_refused("schedule by key", engine_->schedule({.queue = "q", .due = 1h, .key = "k"}));
  expect_refused("restore", engine_->restore(*far_task_));
  expect_refused("get", engine_->get(far_));
  expect_refused("id_of_key", engine_->id_of_key("q", "k"));
  expect_refused("list", engine_->list({}, kListStart, 10));
  expect_refused("cancel", engine_->cancel(far_));
  expect_refused("move", engine_->move(far_, 1s));
  expect_refused("edit", engine_->edit(far_, {.priority = 1}));
  expect_refused("run_now", engine_->run_now(far_));
  expect_refused("redrive", engine_->redrive(far_));
  expect_refused("time_left", engine_->time_left(far_));
  expect_refused("tasks_after", engine_->tasks_after({}, 10));
  expect_refused("forecast", engine_->forecast(1h, 60));
}

void EngineStopped::read_ahead() {
  engine_->read_ahead(std::vector{far_, keyed_});
  engine_->read_ahead("q", std::vector<std::string>{"k"});
}

void EngineStopped::expect_leases_refused() {
  expect_refused("lease", engine_->lease({.queue = "q"}));
  expect_refused("lease of several", engine_->lease({.queue = "q", .other_queues = {"another"}}));
  expect_refused("lease_task", engine_->lease_task(far_, {.queue = "q"}));
  expect_refused("lease_deliveries", engine_->lease_deliveries({.max = 1}));
  expect_refused("complete", engine_->complete(lease_));
  expect_refused("fail", engine_->fail({.lease = lease_}));
  expect_refused("extend", engine_->extend(lease_, 1min));
  expect_refused("release", engine_->release(lease_));
  expect_refused("bury", engine_->bury(lease_, "broken"));
}

void EngineStopped::expect_queues_refused() {
  expect_refused("queue", engine_->queue("q"));
  expect_refused("queue_detail", engine_->queue_detail("q"));
  expect_refused("set_queue", engine_->set_queue("q", {}));
  expect_refused("remove_queue", engine_->remove_queue("q"));
  expect_refused("pause_for", engine_->pause_for("q", 1s));
  expect_refused("first_ready", engine_->first_ready("q"));
  expect_refused("first_dead", engine_->first_dead("q"));
  expect_refused("first_scheduled", engine_->first_scheduled("q"));
  expect_refused("redrive of a queue", engine_->redrive("q", 10));
  expect_refused("purge", engine_->purge("q", 10));
  expect_refused("run_now of a queue", engine_->run_now("q", 10));
}

void EngineStopped::expect_schedules_refused() {
  expect_refused("put_schedule", engine_->put_schedule(minutely("t")));
  expect_refused("restore_schedule", engine_->restore_schedule({}));
  expect_refused("find_schedule", engine_->find_schedule("s"));
  expect_refused("schedules_after", engine_->schedules_after("", 10));
  expect_refused("next_occurrences", engine_->next_occurrences("s", 1));
  expect_refused("preview_schedule", engine_->preview_schedule(minutely("t"), 1));
  expect_refused("pause_schedule", engine_->pause_schedule("s"));
  expect_refused("resume_schedule", engine_->resume_schedule("s"));
  expect_refused("trigger_schedule", engine_->trigger_schedule("s"));
  expect_refused("check_backfill", engine_->check_backfill("s", wall_now() - 1h, wall_now()));
  expect_refused("backfill", engine_->backfill("s", wall_now() - 1h, wall_now(), 9));
  expect_refused("remove_schedule", engine_->remove_schedule("s"));
}

void EngineStopped::expect_far_tasks_refused() {
  expect_refused("far_tasks", engine_->far_tasks(begin_of(Lane::due), 10));
  expect_refused("hand_over", engine_->hand_over(std::span(&*far_task_, 1)));
  expect_refused("put_back", engine_->put_back(std::span(&*far_task_, 1)));
  expect_refused("marked", engine_->marked(10));
  expect_refused("is_here_or_marked", engine_->is_here_or_marked(far_));
}

TEST_F(EngineStopped, RefusesEveryVerbWithoutUsingTheStore) {
  fill();
  std::vector<ErrorCode> told;
  engine_->lease_or_wait({.queue = "empty"}, 20s, [&](const Result<std::vector<LeasedTask>>& got) {
    told.push_back(got.error().code);
  });
  fail();
  EXPECT_EQ(told, std::vector{ErrorCode::unavailable}) << "who waited is told";
  const std::array before{store_->read_count(), store_->write_count()};
  expect_tasks_refused();
  read_ahead();
  expect_leases_refused();
  expect_queues_refused();
  expect_schedules_refused();
  expect_far_tasks_refused();
  clock_.advance(3h);  // all tasks that it knew are due
  EXPECT_FALSE(engine_->turn());
  EXPECT_FALSE(engine_->close());
  EXPECT_EQ((std::array{store_->read_count(), store_->write_count()}), before);
}

// The store is gone, as between two attempts of EngineThread to open it again. The sanitizers would
// report a use of the store.
TEST_F(EngineStopped, ReadsNothingAheadOfAStoreThatIsGone) {
  fill();
  fail();
  store_.reset();
  memory_store_.reset();
  read_ahead();
  expect_tasks_refused();
  EXPECT_FALSE(engine_->turn());
}

}  // namespace
}  // namespace detent

#include "external/far_tasks.h"

#include <gtest/gtest.h>

#include <chrono>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/wall_time.h"
#include "external/far_tasks_rig.h"

namespace detent {
namespace {

using namespace std::chrono_literals;  // NOLINT(google-build-using-namespace): literals only

using test::example_task;
using test::Fault;

class FarTasksTest : public testing::Test {
 protected:
  Task task(std::uint64_t id, std::chrono::milliseconds delay) {
    return example_task(id, ceil_to_ms(clock_.wall_now()) + delay);
  }
  Task add_here(std::uint64_t id, std::chrono::milliseconds delay) {
    Task made = task(id, delay);
    local_.tasks.emplace(made.id, made);
    return made;
  }
  Task add_there(std::uint64_t id, std::chrono::milliseconds delay) {
    Task made = task(id, delay);
    external_.entries.emplace(made.id, test::FakeExternal::Entry{made, {}});
    return made;
  }
  bool is_here(const Task& task) const { return local_.tasks.contains(task.id); }
  bool is_there(const Task& task) const { return external_.entries.contains(task.id); }
  void break_external() {
    external_.next_fault = [] { return Fault::before; };
  }
  void mend_external() {
    external_.next_fault = [] { return Fault::none; };
  }

  ManualClock clock_;
  test::FakeLocal local_;
  test::FakeExternal external_;
  FarTasksOptions options_{.near = 10min,
                           .far = 20min,
                           .interval = 1min,
                           .claim = 30s,
                           .batch = 3,
                           .backoff = {.initial = 1s, .max = 8s}};
  FarTasks far_{local_, external_, clock_, options_, 1};
};

TEST_F(FarTasksTest, TasksDueLaterThanFarAreHandedOverAsTheyAre) {
  const Task near = add_here(1, 20min);
  const Task far = add_here(2, 20min + 1ms);
  far_.step();
  EXPECT_TRUE(is_here(near));
  EXPECT_FALSE(is_here(far));
  ASSERT_TRUE(is_there(far));
  EXPECT_EQ(external_.entries.at(far.id).task, far);
  EXPECT_TRUE(local_.marks.empty());
  EXPECT_EQ(far_.stats().handed_over, 1U);
}

TEST_F(FarTasksTest, ATaskThatTheOtherSystemCannotKeepStaysAndDelaysNoOther) {
  const Task too_large = add_here(1, 21min);
  const Task far = add_here(2, 21min);
  external_.not_kept = too_large.id;
  EXPECT_EQ(far_.step(), clock_.now() + 1min);
  EXPECT_TRUE(is_here(too_large));
  EXPECT_TRUE(is_there(far));
  EXPECT_TRUE(local_.marks.empty());
  EXPECT_EQ(far_.step(), clock_.now() + 1min) << "there is nothing more to do";
  EXPECT_EQ(far_.stats().errors, 0U);
}

TEST_F(FarTasksTest, AfterAFullBatchOfTasksThatMustStayItContinuesImmediately) {
  options_.batch = 1;
  FarTasks far_tasks(local_, external_, clock_, options_, 1);
  external_.not_kept = add_here(1, 21min).id;
  const Task far = add_here(2, 21min);
  EXPECT_EQ(far_tasks.step(), clock_.now());
  EXPECT_TRUE(is_here(far));
  EXPECT_EQ(far_tasks.step(), clock_.now());
  EXPECT_TRUE(is_there(far));
  EXPECT_EQ(far_tasks.step(), clock_.now() + 1min) << "all tasks have been read";
}

TEST_F(FarTasksTest, AfterTenBatchesOfTasksThatMustStayItWaits) {
  options_.batch = 1;
  FarTasks far_tasks(local_, external_, clock_, options_, 1);
  external_.keeps_none = true;
  for (std::uint64_t id = 1; id <= 100; ++id) add_here(id, 21min);
  for (int round = 0; round < 2; ++round) {
    for (int batch = 1; batch < 10; ++batch) ASSERT_EQ(far_tasks.step(), clock_.now());
    EXPECT_EQ(far_tasks.step(), clock_.now() + 1min);
  }
}

TEST_F(FarTasksTest, TasksDueWithinNearAreHandedBackAsTheyWere) {
  const Task near = add_there(1, 10min);
  const Task far = add_there(2, 10min + 1ms);
  far_.step();
  ASSERT_TRUE(is_here(near));
  EXPECT_EQ(local_.tasks.at(near.id), near);
  EXPECT_FALSE(is_there(near));
  EXPECT_TRUE(is_there(far));
  EXPECT_TRUE(local_.marks.empty());
  EXPECT_EQ(far_.stats().handed_back, 1U);
}

TEST_F(FarTasksTest, WithNothingToDoItLooksAgainAfterTheInterval) {
  EXPECT_EQ(far_.step(), clock_.now() + 1min);
}

TEST_F(FarTasksTest, AfterAFullBatchItContinuesImmediately) {
  for (std::uint64_t id = 1; id <= 4; ++id) add_here(id, 1h);
  EXPECT_EQ(far_.step(), clock_.now());
  EXPECT_EQ(external_.entries.size(), 3U);
  EXPECT_EQ(far_.step(), clock_.now() + 1min);
  EXPECT_EQ(external_.entries.size(), 4U);
  clock_.advance(55min);
  EXPECT_EQ(far_.step(), clock_.now());
  EXPECT_EQ(local_.tasks.size(), 3U);
  EXPECT_EQ(far_.step(), clock_.now() + 1min);
  EXPECT_EQ(local_.tasks.size(), 4U);
}

TEST_F(FarTasksTest, WhileTheExternalIsDownTasksStayAndTheErrorIsKept) {
  const Task far = add_here(1, 1h);
  break_external();
  far_.step();
  EXPECT_TRUE(is_here(far));
  ASSERT_TRUE(far_.stats().last_error);
  EXPECT_EQ(far_.stats().last_error->message, "planned fault");
  EXPECT_EQ(far_.stats().errors, 1U);
}

TEST_F(FarTasksTest, TheBackoffGrowsWithEachErrorAndEndsAfterASuccess) {
  break_external();
  std::vector<std::chrono::nanoseconds> waits;
  waits.reserve(6);
  for (int i = 0; i < 6; ++i) waits.push_back(far_.step() - clock_.now());
  for (std::size_t i = 0; i < waits.size(); ++i) {
    const std::chrono::nanoseconds base = std::min<std::chrono::nanoseconds>(1s * (1 << i), 8s);
    EXPECT_GE(waits[i], base * 8 / 10);
    EXPECT_LT(waits[i], base * 12 / 10);
  }
  EXPECT_EQ(far_.stats().failures_in_row, 6U);
  mend_external();
  EXPECT_EQ(far_.step(), clock_.now() + 1min);
  EXPECT_EQ(far_.stats().failures_in_row, 0U);
  EXPECT_EQ(far_.stats().errors, 6U);
}

TEST_F(FarTasksTest, ATaskThatChangesWhileItIsHandedOverStaysAndItsCopyIsForgotten) {
  const Task moved = add_here(1, 1h);
  const Task ended = add_here(2, 1h);
  external_.meanwhile = [&] {
    if (!local_.marks.contains(moved.id)) return;  // the step does not hand over yet
    local_.tasks.at(moved.id).due_at -= 59min;
    local_.tasks.erase(ended.id);
    external_.meanwhile = [] {};
  };
  EXPECT_EQ(far_.step(), clock_.now());
  EXPECT_EQ(far_.stats().handed_over, 0U);
  EXPECT_TRUE(is_there(moved) && is_there(ended));
  far_.step();
  EXPECT_TRUE(is_here(moved));
  EXPECT_FALSE(is_here(ended));
  EXPECT_TRUE(external_.entries.empty());
  EXPECT_TRUE(local_.marks.empty());
}

TEST_F(FarTasksTest, ACopyLeftThereDoesNotBringBackAnEndedTask) {
  const Task done = add_there(1, 1min);
  local_.marks.insert(done.id);
  far_.step();
  EXPECT_FALSE(is_here(done));
  EXPECT_FALSE(is_there(done));
  EXPECT_EQ(far_.stats().handed_back, 0U);
}

TEST_F(FarTasksTest, DamagedRecordsAreCountedAndReported) {
  external_.damaged_next = {{ErrorCode::data_loss, "read record of task 7: it is cut off", ""}};
  far_.step();
  EXPECT_EQ(far_.stats().damaged, 1U);
  ASSERT_TRUE(far_.stats().last_damage);
  EXPECT_EQ(far_.stats().last_damage->code, ErrorCode::data_loss);
}

TEST_F(FarTasksTest, FetchBringsATaskBackImmediately) {
  const Task far = add_there(1, 5h);
  EXPECT_TRUE(far_.fetch(far.id).value());
  EXPECT_TRUE(is_here(far));
  EXPECT_FALSE(far_.fetch(far.id).value());
  EXPECT_FALSE(far_.fetch(TaskId{9}).value());
  local_.tasks.at(far.id).due_at -= 4h + 50min;
  far_.step();
  EXPECT_TRUE(is_here(far));
  EXPECT_FALSE(is_there(far));
}

TEST_F(FarTasksTest, ATaskThatWasClaimedButNotStoredHereComesBackAfterItsClaim) {
  const Task near = add_there(1, 5min);
  far_.step();
  ASSERT_TRUE(is_here(near));
  const Task next = add_there(2, 5min);
  local_.next_fault = [] { return Fault::before; };
  far_.step();
  local_.next_fault = [] { return Fault::none; };
  far_.step();
  EXPECT_FALSE(is_here(next)) << "it came before its claim ended";
  clock_.advance(30s);
  far_.step();
  EXPECT_TRUE(is_here(next));
}

/// Two tasks that are handed over, and a backup of the external scheduler.
class FarTasksLoss : public FarTasksTest {
 protected:
  /// Hands over both tasks, and then makes the backup.
  void hand_over_and_back_up() {
    step();
    ASSERT_TRUE(is_there(kept_) && is_there(cancelled_));
    backup_ = external_.entries;
    backup_stamp_ = external_.stamped;
  }
  void restore_backup() {
    external_.entries = backup_;
    external_.stamped = backup_stamp_;
  }
  void empty_external() {
    external_.entries.clear();
    external_.stamped = 0;
  }
  /// Cancels a task that is away, as the server does.
  void cancel(const Task& task) {
    ASSERT_TRUE(tasks_.fetch(task.id).value());
    local_.tasks.erase(task.id);
    step();
    ASSERT_FALSE(is_there(task));
  }
  void step() { tasks_.step(); }
  const std::optional<Error>& lost() const { return tasks_.stats().lost; }

  FarTasks tasks_{local_, external_, clock_, options_, 1};
  const Task kept_ = add_here(1, 3h);
  const Task cancelled_ = add_here(2, 2h);
  std::map<TaskId, test::FakeExternal::Entry> backup_;
  std::uint64_t backup_stamp_ = 0;
};

TEST_F(FarTasksLoss, AnEmptiedSystemIsReportedAndATaskThatMayBeLostIsAnError) {
  hand_over_and_back_up();
  EXPECT_FALSE(lost());
  empty_external();
  const Task next = add_here(3, 4h);
  const auto gone = tasks_.find(kept_.id);
  ASSERT_FALSE(gone) << "find() must notice the loss before a step does";
  EXPECT_EQ(gone.error().code, ErrorCode::unavailable);
  step();
  ASSERT_TRUE(lost());
  EXPECT_NE(lost()->message.find("its generation is 0 and must be at least 1; it keeps 0 tasks and "
                                 "kept 2 before; restore its data, or accept the loss: stamp 1"),
            std::string::npos)
      << lost()->message;
  EXPECT_TRUE(is_here(next)) << "no more tasks are handed over";
  EXPECT_EQ(tasks_.stats().errors, 0U);
  FarTasks after_restart(local_, external_, clock_, options_, 2);
  after_restart.step();
  EXPECT_TRUE(after_restart.stats().lost);
}

TEST_F(FarTasksLoss, ACancelledTaskDoesNotComeBackWithAnOlderState) {
  hand_over_and_back_up();
  cancel(cancelled_);
  restore_backup();
  EXPECT_FALSE(tasks_.find(cancelled_.id).value());
  EXPECT_FALSE(tasks_.fetch(cancelled_.id).value());
  EXPECT_EQ(tasks_.find(kept_.id).value(), kept_);
  clock_.advance(2h + 55min);
  step();
  ASSERT_TRUE(lost());
  EXPECT_FALSE(is_here(cancelled_));
  EXPECT_TRUE(is_here(kept_)) << "the task is there, so it must come back in time";
  step();
  EXPECT_TRUE(external_.entries.empty());
}

// A day after the due time of a forgotten copy, only the time of the last complete look is known.
TEST_F(FarTasksLoss, ATaskCompletedLongAgoDoesNotComeBackWithAnOlderState) {
  hand_over_and_back_up();
  clock_.advance(4h);
  step();
  ASSERT_TRUE(is_here(kept_) && is_here(cancelled_));
  local_.tasks.clear();
  local_.forgotten.clear();
  const Task later = add_here(3, 48h);
  step();
  ASSERT_TRUE(is_there(later));
  restore_backup();
  step();
  ASSERT_TRUE(lost());
  EXPECT_TRUE(local_.tasks.empty());
  EXPECT_FALSE(tasks_.find(later.id)) << "the task may be lost";
}

TEST_F(FarTasksLoss, EndsWhenTheDataIsRestoredOrTheLossIsAccepted) {
  hand_over_and_back_up();
  const auto right_entries = external_.entries;
  const std::uint64_t right_stamp = external_.stamped;
  empty_external();
  step();
  ASSERT_TRUE(lost());
  external_.entries = right_entries;
  external_.stamped = right_stamp;
  step();
  EXPECT_FALSE(lost());
  empty_external();
  step();
  ASSERT_TRUE(lost());
  external_.stamped = right_stamp;  // as the command of stamp_command() does
  const Task next = add_here(3, 4h);
  step();
  EXPECT_FALSE(lost());
  EXPECT_TRUE(is_there(next));
  EXPECT_FALSE(tasks_.find(kept_.id).value()) << "accepted";
}

TEST_F(FarTasksLoss, DuringAStepIsNotHiddenByItsStamp) {
  hand_over_and_back_up();
  const Task next = add_here(3, 4h);
  external_.meanwhile = [&] {
    if (local_.marks.contains(next.id)) empty_external();  // during put()
  };
  step();
  external_.meanwhile = [] {};
  EXPECT_TRUE(is_here(next));
  EXPECT_EQ(tasks_.stats().errors, 1U);
  step();
  EXPECT_TRUE(lost());
}

// For example, the operator has changed the address or the name while no task was away.
TEST_F(FarTasksLoss, IsNotReportedIfNoTaskWasThere) {
  hand_over_and_back_up();
  clock_.advance(4h);
  step();
  ASSERT_TRUE(external_.entries.empty());
  empty_external();
  step();
  EXPECT_FALSE(lost());
  const Task next = add_here(3, 4h);
  step();
  EXPECT_TRUE(is_there(next));
  EXPECT_GT(external_.stamped, 1U) << "it must continue from the number that is stored here";
}

TEST_F(FarTasksLoss, IsReportedIfAnOlderStateBringsBackTasksEvenIfNoTaskWasThere) {
  hand_over_and_back_up();
  clock_.advance(4h);
  step();
  ASSERT_TRUE(is_here(kept_) && is_here(cancelled_));
  ASSERT_TRUE(external_.entries.empty());
  local_.tasks.clear();      // completed
  local_.forgotten.clear();  // a day later
  restore_backup();
  EXPECT_FALSE(tasks_.find(kept_.id).value());
  ASSERT_TRUE(lost());
  EXPECT_NE(lost()->message.find("it keeps 2 tasks and kept 0"), std::string::npos)
      << lost()->message;
  step();
  EXPECT_TRUE(local_.tasks.empty()) << "the task came back a second time";
  EXPECT_TRUE(external_.entries.empty());
  step();
  EXPECT_FALSE(lost()) << "no task of the older state is left";
}

TEST_F(FarTasksLoss, OfTheFirstBatchIsNotHiddenByTheFirstStamp) {
  external_.meanwhile = [&] {
    if (external_.entries.size() == 2) empty_external();  // between put() and the stamp
  };
  step();
  external_.meanwhile = [] {};
  EXPECT_TRUE(is_here(kept_) && is_here(cancelled_));
  EXPECT_EQ(tasks_.stats().errors, 1U);
  step();
  step();
  EXPECT_TRUE(is_there(kept_) && is_there(cancelled_));
}

TEST_F(FarTasksLoss, ATaskThatCameBackAndWentAwayAgainCounts) {
  hand_over_and_back_up();
  ASSERT_TRUE(tasks_.fetch(kept_.id).value());
  step();
  step();
  ASSERT_TRUE(is_there(kept_)) << "handed over again";
  EXPECT_EQ(tasks_.find(kept_.id).value(), kept_);
  clock_.advance(3h);
  step();
  EXPECT_TRUE(is_here(kept_));
}

TEST(FarTasksOptions, ContradictionsAreRefusedByName) {
  EXPECT_TRUE(validate(FarTasksOptions{}));
  EXPECT_EQ(validate(FarTasksOptions{.near = 2h, .far = 2h}).error().field, "far");
  EXPECT_EQ(validate(FarTasksOptions{.far = kMaxDelay + 1s}).error().field, "far");
  EXPECT_EQ(validate(FarTasksOptions{.near = 1min, .interval = 1min}).error().field, "near");
  EXPECT_EQ(validate(FarTasksOptions{.interval = 0ms}).error().field, "interval");
  EXPECT_EQ(validate(FarTasksOptions{.claim = 0ms}).error().field, "claim");
  EXPECT_EQ(validate(FarTasksOptions{.batch = 0}).error().field, "batch");
}

}  // namespace
}  // namespace detent

#include "external/far_tasks.h"

#include <gtest/gtest.h>

#include <chrono>
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

TEST_F(FarTasksTest, ATaskThatTheOtherSystemCannotKeepStaysAndHoldsNothingUp) {
  const Task too_large = add_here(1, 21min);
  const Task far = add_here(2, 21min);
  external_.not_kept = too_large.id;
  EXPECT_EQ(far_.step(), clock_.now() + 1min);
  EXPECT_TRUE(is_here(too_large));
  EXPECT_TRUE(is_there(far));
  EXPECT_TRUE(local_.marks.empty());
  EXPECT_EQ(far_.step(), clock_.now() + 1min) << "there is nothing to do at once";
  EXPECT_EQ(far_.stats().errors, 0U);
}

TEST_F(FarTasksTest, AfterAFullBatchOfSuchTasksItGoesOnAtOnce) {
  options_.batch = 1;
  FarTasks far_tasks(local_, external_, clock_, options_, 1);
  external_.not_kept = add_here(1, 21min).id;
  const Task far = add_here(2, 21min);
  EXPECT_EQ(far_tasks.step(), clock_.now());
  EXPECT_TRUE(is_here(far));
  EXPECT_EQ(far_tasks.step(), clock_.now());
  EXPECT_TRUE(is_there(far));
  EXPECT_EQ(far_tasks.step(), clock_.now() + 1min) << "all have been looked at";
}

TEST_F(FarTasksTest, OfManySuchTasksItLooksAtTenBatchesAtOnce) {
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

TEST_F(FarTasksTest, AfterAFullBatchItGoesOnAtOnce) {
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

TEST_F(FarTasksTest, AfterErrorsItWaitsLongerEachTimeAndThenAsEver) {
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
    if (!local_.marks.contains(moved.id)) return;  // not in the middle of handing over yet
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

TEST_F(FarTasksTest, WhatEndedHereIsNotBroughtBackByACopyLeftThere) {
  const Task done = add_there(1, 1min);
  local_.marks.insert(done.id);
  far_.step();
  EXPECT_FALSE(is_here(done));
  EXPECT_FALSE(is_there(done));
  EXPECT_EQ(far_.stats().handed_back, 0U);
}

TEST_F(FarTasksTest, DamagedRecordsAreCountedAndTold) {
  external_.damaged_next = {{ErrorCode::data_loss, "read record of task 7: it is cut off", ""}};
  far_.step();
  EXPECT_EQ(far_.stats().damaged, 1U);
  ASSERT_TRUE(far_.stats().last_damage);
  EXPECT_EQ(far_.stats().last_damage->code, ErrorCode::data_loss);
}

TEST_F(FarTasksTest, FetchBringsATaskAtOnce) {
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

TEST_F(FarTasksTest, CancelEndsOnlyACopyThatCounts) {
  const Task far = add_there(1, 5h);
  const Task fetched = add_there(2, 5h);
  ASSERT_TRUE(far_.fetch(fetched.id).value());
  EXPECT_EQ(far_.cancel(far.id).value(), CancelOutcome::cancelled);
  EXPECT_EQ(far_.cancel(far.id).value(), CancelOutcome::not_there);
  EXPECT_EQ(far_.cancel(fetched.id).value(), CancelOutcome::not_there);
  EXPECT_TRUE(is_here(fetched));
}

TEST_F(FarTasksTest, ATaskThatIsClaimedButNotHereYetIsBeingHandedBack) {
  const Task near = add_there(1, 5min);
  local_.next_fault = [] { return Fault::before; };
  far_.step();
  local_.next_fault = [] { return Fault::none; };
  EXPECT_EQ(far_.cancel(near.id).value(), CancelOutcome::being_handed_back);
  far_.step();
  EXPECT_FALSE(is_here(near)) << "given before its claim ran out";
  clock_.advance(30s);
  far_.step();
  EXPECT_TRUE(is_here(near));
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

// Changes of a task: its priority and payload, with or without its due time. The task may be in
// memory, on disk or in a ready lane.
#include "base/rng.h"
#include "base/test_seed.h"
#include "engine/testing/engine_fixture.h"

namespace detent {
namespace {

using std::chrono::milliseconds;

class EngineEdit : public EngineFixture {
 protected:
  TaskSnapshot edit(TaskId id, const TaskEdit& edit) {
    TaskSnapshot view = engine_->edit(id, edit).value();
    settle();
    engine_->check_invariants();
    return view;
  }
  TaskSnapshot get(TaskId id) { return engine_->get(id).value(); }
};

TEST_F(EngineEdit, ChangesOnlyWhatIsGiven) {
  const TaskId id = schedule("a", 1h);
  Task expected = get(id).task;
  expected.rules.priority = 7;
  EXPECT_EQ(edit(id, {.priority = 7}).task, expected);
  EXPECT_EQ(get(id).task, expected);
  expected.payload = {.kind = Payload::Kind::bytes, .data = "x"};
  EXPECT_EQ(edit(id, {.payload = expected.payload}).task, expected);
  expected.due_at = wall_now() + 2h;
  EXPECT_EQ(edit(id, {.due = 2h}).task, expected);
  crash_and_open();
  EXPECT_EQ(get(id).task, expected);
  EXPECT_EQ(engine_->stats().queues.size(), 1U);
}

TEST_F(EngineEdit, MovesAReadyTaskInTheOrderOfItsQueue) {
  const TaskId first = schedule("a", 0ms);
  const TaskId second = schedule("a", 0ms);
  const std::uint64_t fired = engine_->stats().counters.fired;
  EXPECT_EQ(edit(second, {.priority = 1}).state, TaskState::ready);
  EXPECT_EQ(engine_->stats().counters.fired, fired);
  EXPECT_EQ(lease_ids("a", 2), (std::vector{second, first}));
}

TEST_F(EngineEdit, HandsOutTheNewPayload) {
  const TaskId id = schedule("a", 1min);
  edit(id, {.payload = Payload{.data = "[2]"}});
  advance(1min);
  EXPECT_EQ(lease("a").at(0).task.payload.data, "[2]");
}

TEST_F(EngineEdit, LeavesADeadTaskDeadUnlessItIsMoved) {
  const TaskId id = schedule("a", 0ms);
  ASSERT_TRUE(engine_->bury(lease("a").at(0).lease, ""));
  settle();
  EXPECT_EQ(edit(id, {.priority = 3, .payload = Payload{.data = "[1,2,3,4]"}}).state,
            TaskState::dead);
  EXPECT_EQ(view("a").bytes, 9U);
  EXPECT_EQ(edit(id, {.due = 0ms}).state, TaskState::ready);
  EXPECT_EQ(lease("a").at(0).task.rules.priority, 3U);
}

TEST_F(EngineEdit, IsRefusedForATaskThatIsLeasedOrHasEnded) {
  set("a", {.retention = 1h});
  const TaskId id = schedule("a", 0ms);
  const LeaseToken token = lease("a").at(0).lease;
  EXPECT_EQ(engine_->edit(id, {.priority = 1}).error().code, ErrorCode::conflict);
  complete(token);
  EXPECT_EQ(engine_->edit(id, {.priority = 1}).error().code, ErrorCode::conflict);
  EXPECT_EQ(engine_->edit(TaskId{99}, {.priority = 1}).error().code, ErrorCode::not_found);
}

TEST_F(EngineEdit, RespectsTheQuotaAndTheLimits) {
  const TaskId id = schedule(request("a", 1h));  // 7 bytes
  set("a", {.max_tasks = 1, .max_bytes = 8});
  const auto refusal = [&](std::size_t bytes) {
    return engine_->edit(id, {.payload = Payload{Payload::Kind::bytes, std::string(bytes, 'x')}});
  };
  EXPECT_EQ(refusal(9).error().code, ErrorCode::resource_exhausted);
  EXPECT_EQ(refusal(kMaxPayloadBytes + 1).error().code, ErrorCode::too_large);
  EXPECT_TRUE(refusal(8));
  EXPECT_TRUE(refusal(1));
  settle();
  EXPECT_EQ(view("a").bytes, 1U);
  EXPECT_EQ(engine_->edit(id, {.due = -1ms}).error().code, ErrorCode::invalid_argument);
}

TEST_F(EngineEdit, WorksForTasksInMemoryOnDiskAndInAReadyLane) {
  const std::uint64_t seed = test_seed();
  SCOPED_TRACE(replay_hint(seed));
  Rng rng(seed);
  options_ = {.window = 10s, .max_loaded = 16};
  open_on_a_new_disk();
  std::vector<Task> tasks;
  for (int i = 0; i < 120; ++i) {
    const TaskId id = schedule("a", milliseconds{rng.below(3) == 0 ? rng.below(60'000) : 0});
    tasks.push_back(get(id).task);
  }
  std::uint64_t bytes = 0;
  for (Task& task : tasks) {
    task.rules.priority = rng.below(2'000);
    task.payload.data = std::string(1 + rng.below(5), '7');
    bytes += task.payload.data.size();
    ASSERT_TRUE(engine_->edit(task.id, {.priority = task.rules.priority, .payload = task.payload}));
    if (rng.below(3) == 0) settle();
  }
  settle();
  engine_->check_invariants();
  EXPECT_EQ(view("a").bytes, bytes);
  for (const Task& task : tasks) ASSERT_EQ(get(task.id).task, task);
  advance(1min);
  std::uint32_t last = 0;
  for (std::size_t i = 0; i < tasks.size(); ++i) {
    const LeasedTask leased = lease("a").at(0);
    ASSERT_GE(leased.task.rules.priority, last);
    last = leased.task.rules.priority;
    complete(leased.lease);
  }
}

TEST_F(EngineEdit, LeavesTheWheelAsItIs) {
  const TaskId id = schedule("a", 1min);
  const WallTime due_at = get(id).task.due_at;
  edit(id, {.priority = 9});
  const WheelView wheel = engine_->wheel();
  ASSERT_EQ(wheel.slots.size(), 1U);
  EXPECT_EQ(wheel.timers, 1U);
  EXPECT_EQ(wheel.slots[0].count, 1U);
  EXPECT_LE(wheel.slots[0].from, due_at);
  EXPECT_GT(wheel.slots[0].until, due_at);
}

}  // namespace
}  // namespace detent

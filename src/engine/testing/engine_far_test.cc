// Far tasks that an external scheduler keeps: which tasks are handed over and put back, the marks,
// and the counts.
#include <gtest/gtest.h>

#include <algorithm>

#include "engine/testing/engine_fixture.h"

namespace detent {
namespace {

class EngineFar : public EngineFixture {
 protected:
  Task stored(TaskId id) { return engine_->get(id).value().task; }
  std::size_t hand_over(const Task& task) {
    const std::size_t count = engine_->hand_over(std::span(&task, 1)).value();
    settle();
    return count;
  }
  std::size_t put_back(const Task& task) {
    const std::size_t count = engine_->put_back(std::span(&task, 1)).value();
    settle();
    return count;
  }
  /// The fields of a task that a mark needs.
  Task copy_of(TaskId id) const {
    Task task;
    task.id = id;
    task.due_at = wall_now() + 2h;
    return task;
  }
  void mark(TaskId id) {
    engine_->mark(std::vector{copy_of(id)});
    settle();
  }
  void unmark(TaskId id) {
    ASSERT_TRUE(engine_->unmark(std::span(&id, 1)));
    settle();
  }
  std::vector<TaskId> far_ids(Place after, std::size_t limit) {
    std::vector<TaskId> ids;
    const TaskPage page = engine_->far_tasks(after, limit).value();
    for (const StoredTask& task : page.tasks) ids.push_back(task.place.id);
    return ids;
  }
  QueueStats counts() { return engine_->stats().queues.at(0); }
};

TEST_F(EngineFar, FarTasksAreThoseOnDiskAfterAPlaceInDueOrder) {
  schedule("q", 1min);  // in memory
  const TaskId later = schedule("q", 3h);
  const TaskId sooner = schedule("p", 2h);
  const Place start = begin_of(Lane::due);
  EXPECT_EQ(far_ids(start, 9), (std::vector{sooner, later}));
  EXPECT_EQ(far_ids(start, 1), std::vector{sooner});
  EXPECT_EQ(far_ids(last_at(Lane::due, WallTime{wall_now() + 2h}), 9), std::vector{later});
}

TEST_F(EngineFar, NoVerbFindsATaskThatWasHandedOver) {
  const TaskId id = schedule("q", 2h);
  const Task task = stored(id);
  mark(id);
  EXPECT_EQ(hand_over(task), 1u);
  engine_->check_invariants();
  EXPECT_EQ(state_of(id), std::nullopt);
  EXPECT_FALSE(engine_->is_here_or_marked(id).value()) << "the mark has gone with it";
  EXPECT_EQ(counts().scheduled, 0u);
  EXPECT_EQ(engine_->stats().counters.cancelled, 0u);
  crash_and_open();
  EXPECT_EQ(engine_->get(id).error().code, ErrorCode::not_found);
  EXPECT_EQ(hand_over(task), 0u) << "it was already";
  advance(3h);
  EXPECT_TRUE(lease("q").empty());
  engine_->check_invariants();
}

TEST_F(EngineFar, ATaskThatIsPutBackIsUnchangedAndMarked) {
  const TaskId id = schedule({.queue = "q", .payload = {.data = "[1,2]"}, .due = 2h});
  const Task task = stored(id);
  hand_over(task);
  EXPECT_EQ(put_back(task), 1u);
  engine_->check_invariants();
  EXPECT_EQ(stored(id), task);
  EXPECT_EQ(counts().scheduled, 1u);
  EXPECT_EQ(engine_->stats().counters.scheduled, 1u) << "accepted once";
  EXPECT_EQ(engine_->marked(9).value(), std::vector{id});
  EXPECT_EQ(put_back(task), 0u);
  advance(2h);
  EXPECT_EQ(lease_ids("q", 9), std::vector{id});
}

TEST_F(EngineFar, AMarkedTaskIsNotPutBack) {
  const TaskId id = schedule("q", 2h);
  const Task task = stored(id);
  mark(id);
  ASSERT_TRUE(engine_->cancel(id));
  settle();
  EXPECT_TRUE(engine_->is_here_or_marked(id).value());
  EXPECT_EQ(put_back(task), 0u);
  EXPECT_EQ(state_of(id), std::nullopt);
  unmark(id);
  EXPECT_TRUE(engine_->marked(9).value().empty());
}

TEST_F(EngineFar, PuttingBackATaskThatIsHereOnlyMarksIt) {
  const TaskId id = schedule("q", 2h);
  Task other = stored(id);
  other.payload.data = "[\"other\"]";
  EXPECT_EQ(put_back(other), 0u);
  EXPECT_NE(stored(id), other);
  EXPECT_EQ(engine_->marked(9).value(), std::vector{id});
}

TEST_F(EngineFar, ATaskThatHasChangedOrIsNearOrHasAKeyIsNotHandedOver) {
  const TaskId moved = schedule("q", 2h);
  const Task before = stored(moved);
  ASSERT_TRUE(engine_->move(moved, Due{3h}));
  EXPECT_EQ(engine_->hand_over(std::span(&before, 1)).value(), 0u) << "in the same turn";
  settle();
  EXPECT_EQ(hand_over(before), 0u);
  Task other = stored(moved);
  other.attempts = 1;
  EXPECT_EQ(hand_over(other), 0u) << "at the same place";
  const TaskId near = schedule("q", 1min);
  EXPECT_EQ(hand_over(stored(near)), 0u);
  ScheduleRequest keyed = request("q", 2h);
  keyed.key = "k";
  const TaskId with_key = schedule(keyed);
  EXPECT_EQ(hand_over(stored(with_key)), 0u);
  for (const TaskId id : {moved, near, with_key}) EXPECT_TRUE(state_of(id)) << to_string(id);
  engine_->check_invariants();
}

TEST_F(EngineFar, MarksAreListedPageByPageAndSurviveACrash) {
  std::vector<TaskId> ids;
  std::vector<Task> copies(2'100);  // due long ago
  for (std::uint64_t n = 1; n <= copies.size(); ++n) {
    copies[n - 1].id = ids.emplace_back(TaskId{n << TaskId::kShardBits});
  }
  engine_->mark(copies);
  settle();
  ASSERT_TRUE(engine_->unmark(std::span(ids).first(50)));
  settle();
  crash_and_open();
  std::vector<TaskId> marked = engine_->marked(9'999).value();
  std::ranges::sort(marked);
  EXPECT_EQ(marked, std::vector(ids.begin() + 50, ids.end()));
  EXPECT_EQ(engine_->marked(7).value().size(), 7u);
  mark(ids[0]);
  advance(2s);  // trims the removed marks
  advance(2s);
  EXPECT_EQ(memory_store_->read_keys(kNoQueue, "", 9'999).value().records.size(), 2'051u);
  EXPECT_TRUE(engine_->is_here_or_marked(ids[0]).value());
}

TEST_F(EngineFar, ARemovedMarkStaysRemovedWhenTheWallClockIsSteppedBack) {
  const TaskId id{TaskId{}.next()};
  Task copy = copy_of(id);
  copy.due_at = WallTime{};  // due so long ago that the engine does not remember the forgotten copy
  engine_->mark(std::vector{copy});
  settle();
  unmark(id);
  clock_.step_wall(-1h);
  settle();
  EXPECT_FALSE(engine_->is_here_or_marked(id).value());
  EXPECT_TRUE(engine_->marked(9).value().empty());
}

// A damaged key does not show whether its mark was set or removed.
TEST_F(EngineFar, ADamagedMarkCountsWhileItsTaskIsHereAndOtherMarksAreListed) {
  const TaskId here = schedule("q", 2h);
  const TaskId sound = schedule("q", 3h);
  const TaskId gone = schedule("q", 4h);
  const Task copy = stored(gone);
  engine_->mark(std::vector{copy_of(here), copy_of(sound), copy_of(gone)});
  ASSERT_TRUE(engine_->cancel(gone));
  settle();
  for (const TaskId id : {here, gone}) disk_->flip_key_bit(kNoQueue, to_string(id), 20);
  crash_and_open();
  std::vector<TaskId> marked = engine_->marked(9).value();
  std::ranges::sort(marked);
  EXPECT_EQ(marked, (std::vector{here, sound}));
  EXPECT_EQ(engine_->marked(1).value().size(), 1u);
  unmark(here);
  EXPECT_EQ(engine_->marked(9).value(), std::vector{sound});
  EXPECT_TRUE(engine_->is_here_or_marked(here).value());
  EXPECT_FALSE(engine_->is_here_or_marked(gone).value());
  EXPECT_EQ(put_back(copy), 1u) << "it may be the only copy";
  EXPECT_EQ(stored(gone), copy);
  engine_->check_invariants();
  unmark(gone);
  EXPECT_EQ(engine_->marked(9).value(), std::vector{sound});
}

// The external scheduler may be restored from an older backup, which has the task again.
TEST_F(EngineFar, AForgottenCopyIsNotPutBack) {
  const TaskId id = schedule("q", 2h);
  const Task task = stored(id);
  hand_over(task);
  EXPECT_FALSE(engine_->is_here_or_marked(id).value());
  ASSERT_EQ(put_back(task), 1u);
  unmark(id);
  ASSERT_TRUE(engine_->cancel(id));
  settle();
  crash_and_open();
  EXPECT_TRUE(engine_->marked(9).value().empty());
  EXPECT_TRUE(engine_->is_here_or_marked(id).value());
  EXPECT_EQ(put_back(task), 0u);
  EXPECT_EQ(state_of(id), std::nullopt);
  EXPECT_EQ(engine_->marked(9).value(), std::vector{id}) << "so that the copy is forgotten";
  unmark(id);
  advance(2h + kForgottenFor);
  advance(2s);  // trims
  EXPECT_TRUE(memory_store_->read_keys(kNoQueue, "", 9).value().records.empty());
}

TEST_F(EngineFar, ATaskThatIsHandedOverAgainMayComeBackAgain) {
  const TaskId id = schedule("q", 2h);
  const Task task = stored(id);
  hand_over(task);
  ASSERT_EQ(put_back(task), 1u);
  unmark(id);
  mark(id);
  ASSERT_EQ(hand_over(task), 1u);
  crash_and_open();
  clock_.step_wall(-48h);
  settle();
  EXPECT_FALSE(engine_->is_here_or_marked(id).value());
  EXPECT_EQ(put_back(task), 1u);
}

TEST_F(EngineFar, TheStampIsNotListedAsAMarkAndSurvivesACrash) {
  EXPECT_EQ(engine_->external_stamp().value(), ExternalStamp{});
  const ExternalStamp stamp{.generation = 7, .tasks = 3, .complete_at = wall_now()};
  engine_->set_external_stamp(stamp);
  settle();
  crash_and_open();
  EXPECT_EQ(engine_->external_stamp().value(), stamp);
  EXPECT_TRUE(engine_->marked(9).value().empty());
  for (const char* key : {"external stamp", "external complete at"}) {
    disk_->flip_key_bit(kNoQueue, key, 20);
  }
  crash_and_open();
  EXPECT_EQ(engine_->external_stamp().value(), ExternalStamp{}) << "it is written anew in time";
}

TEST_F(EngineFar, AnErrorOfOneTaskDoesNotPreventTheOthersFromBeingPutBack) {
  const TaskId id = schedule("q", 2h);
  const Task good = stored(id);
  hand_over(good);
  Task bad = good;
  bad.id = TaskId{id.next()};
  bad.queue = "";
  const std::vector<Task> both{bad, good};
  EXPECT_EQ(engine_->put_back(both).error().code, ErrorCode::invalid_argument);
  settle();
  EXPECT_EQ(state_of(id), TaskState::scheduled);
  EXPECT_EQ(engine_->marked(9).value(), std::vector{id}) << "the bad one may be tried again";
}

}  // namespace
}  // namespace detent

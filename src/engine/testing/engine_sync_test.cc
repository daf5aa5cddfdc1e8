// When commits are synced: each commit before its acknowledgement, or many commits together after
// an interval.
#include <algorithm>

#include "base/rng.h"
#include "base/test_seed.h"
#include "engine/testing/counting_store_rig.h"
#include "engine/testing/engine_fixture.h"

namespace detent {
namespace {

using std::chrono::milliseconds;

class EngineSync : public EngineFixture {
 public:
  ~EngineSync() override { engine_.reset(); }  // it uses the store below

 protected:
  void open_with(milliseconds sync_interval) { open_with({.sync_interval = sync_interval}); }
  void open_with(const EngineOptions& options) {
    open_on_a_new_disk();
    engine_.reset();
    counting_ = std::make_unique<CountingStore>(*store_, clock_);
    engine_ = Engine::open(*counting_, clock_, options).value();
    counting_->empty_syncs = 0;  // of the start
    settle();
  }
  /// Opens the disk after a power cut, which has lost all writes that were not synced.
  void cut_power() {
    crash();
    open();
    engine_.reset();
    counting_ = std::make_unique<CountingStore>(*store_, clock_);
    counting_->holds_buffered = true;
    engine_ = Engine::open(*counting_, clock_, {.sync_interval = 1s}).value();
    settle();
  }
  void turn_at_wakeup() {
    ASSERT_TRUE(engine_->next_wakeup());
    clock_.advance(*engine_->next_wakeup() - clock_.now());
    ASSERT_TRUE(engine_->turn());
  }
  CountingStore& writes() { return *counting_; }

  std::unique_ptr<CountingStore> counting_;
};

TEST_F(EngineSync, WithoutAnIntervalEveryCommitIsSyncedAndNothingElse) {
  open_with(0ms);
  for (int i = 0; i < 10; ++i) schedule("q", 1h);
  advance(10s);
  EXPECT_EQ(writes().synced_commits, 10);
  EXPECT_EQ(writes().buffered_commits, 0);
  EXPECT_EQ(writes().empty_syncs, 0);
}

TEST_F(EngineSync, WithAnIntervalCommitsAreBufferedAndAcknowledgedAtOnce) {
  open_with(1s);
  ASSERT_TRUE(engine_->schedule(request("q", 1h)));
  bool is_acknowledged = false;
  engine_->after_commit(
      [&](const Result<void>& committed) { is_acknowledged = committed.has_value(); });
  ASSERT_TRUE(engine_->turn());
  EXPECT_TRUE(is_acknowledged);
  EXPECT_EQ(writes().buffered_commits, 1);
  EXPECT_EQ(writes().synced_commits + writes().empty_syncs, 0);
}

TEST_F(EngineSync, TheEngineWakesItselfToSyncAnIntervalAfterTheFirstCommit) {
  open_with(1s);
  advance(300ms);
  const MonotonicTime committed_at = clock_.now();
  schedule("q", 1h);
  advance(400ms);
  schedule("q", 1h);
  while (writes().empty_syncs == 0) {
    ASSERT_LE(clock_.now(), committed_at + 1s);
    turn_at_wakeup();
  }
  EXPECT_EQ(clock_.now(), committed_at + 1s);
  EXPECT_EQ(writes().buffered_commits, 2);
}

TEST_F(EngineSync, ChangesOfFarTasksAreSyncedImmediately) {
  open_with(10s);
  const TaskId id = schedule("q", 1h);
  const Task task = engine_->get(id).value().task;
  const std::span tasks(&task, 1);
  engine_->mark(tasks);
  ASSERT_TRUE(engine_->turn());
  EXPECT_EQ(writes().synced_commits, 1) << "marked";
  EXPECT_EQ(engine_->hand_over(tasks).value(), 1u);
  ASSERT_TRUE(engine_->turn());
  EXPECT_EQ(writes().synced_commits, 2) << "handed over";
  EXPECT_EQ(engine_->put_back(tasks).value(), 1u);
  ASSERT_TRUE(engine_->turn());
  EXPECT_EQ(writes().synced_commits, 3) << "put back";
  EXPECT_EQ(engine_->put_back(tasks).value(), 0u);
  ASSERT_TRUE(engine_->turn());
  EXPECT_EQ(writes().empty_syncs, 1) << "what is here already may only be buffered";
  EXPECT_EQ(writes().buffered_commits, 1) << "the task itself";
}

TEST_F(EngineSync, NothingIsSyncedWhenNothingWasCommittedSince) {
  open_with(1s);
  schedule("q", 1h);
  advance(1s);
  EXPECT_EQ(writes().empty_syncs, 1);
  advance(10s);
  for (int i = 0; i < 20; ++i) turn_at_wakeup();
  EXPECT_EQ(writes().empty_syncs, 1);
  EXPECT_EQ(writes().empty_buffered, 0);
}

TEST_F(EngineSync, ACommitInTheTurnOfTheSyncIsSyncedWithItOrAnIntervalLater) {
  open_with(1s);
  schedule("q", 1h);
  clock_.advance(1s);
  schedule("q", 1h);
  EXPECT_EQ(writes().empty_syncs, 1);
  advance(1s);
  EXPECT_LE(writes().empty_syncs, 2);
  schedule("q", 1h);
  advance(1s);
  EXPECT_GE(writes().empty_syncs, 2);
}

TEST_F(EngineSync, UnderLoadThereIsOneSyncAnIntervalAndNoCommitWaitsLonger) {
  const std::uint64_t seed = test_seed();
  SCOPED_TRACE(replay_hint(seed));
  Rng rng(seed);
  open_with(100ms);
  for (int i = 0; i < 5'000; ++i) {
    if (rng.below(3) == 0) {
      ASSERT_TRUE(engine_->schedule(request("q", 24h)));
    }
    ASSERT_TRUE(engine_->turn());
    MonotonicTime awake_at = clock_.now() + milliseconds{rng.below(20)};
    const std::optional<MonotonicTime> wakeup = engine_->next_wakeup();
    if (writes().unsynced_since) {
      ASSERT_LT(clock_.now() - *writes().unsynced_since, 100ms);
      ASSERT_TRUE(wakeup);
      ASSERT_LE(*wakeup, *writes().unsynced_since + 100ms);
    }
    if (wakeup) awake_at = std::clamp(*wakeup, clock_.now(), awake_at);
    clock_.advance(awake_at - clock_.now());
  }
  EXPECT_EQ(writes().synced_commits, 0);
  EXPECT_GT(writes().empty_syncs, 100);
  const std::vector<MonotonicTime>& at = writes().synced_at;
  for (std::size_t i = 1; i < at.size(); ++i) ASSERT_GE(at[i] - at[i - 1], 100ms);
}

TEST_F(EngineSync, ASyncThatFailsStopsTheEngine) {
  open_with(1s);
  schedule("q", 1h);
  store_->fail_write(1, WriteFault::not_applied);
  clock_.advance(1s);
  EXPECT_FALSE(engine_->turn());
  EXPECT_TRUE(engine_->stopped_by());
  EXPECT_EQ(engine_->schedule(request("q", 1h)).error().code, ErrorCode::unavailable);
}

// A client that knows a lost id may still use it, and must not find another task.
TEST_F(EngineSync, NoIdIsUsedAgainAfterAPowerCut) {
  TaskId last;
  const auto schedule_one = [&] {
    const TaskId id = schedule("q", 1h);
    EXPECT_GT(id, last);
    last = id;
  };
  for (int cut = 0; cut < 4; ++cut) {
    cut_power();
    for (int second = 0; second < cut; ++second) {  // with no sync after the start, one, more
      schedule_one();
      advance(1s);
    }
    schedule_one();
  }
  cut_power();
  EXPECT_EQ(state_of(last), std::nullopt);
  schedule_one();
}

TEST_F(EngineSync, AStopThatKeepsLeasesSyncsThem) {
  open_with({.sync_interval = 10s, .keep_leases = true});
  schedule("q", 0ms);
  ASSERT_EQ(lease("q").size(), 1u);
  EXPECT_EQ(writes().synced_commits, 0);
  ASSERT_TRUE(engine_->close());
  EXPECT_EQ(writes().synced_commits, 1);
}

TEST_F(EngineSync, AStartWhoseIdsCannotBeSetAsideFails) {
  store_->fail_write(2, WriteFault::not_applied);  // behind that of the epoch
  engine_.reset();
  EXPECT_EQ(Engine::open(*store_, clock_, {.sync_interval = 1s}).error().code,
            ErrorCode::unavailable);
}

TEST_F(EngineSync, BufferedCommitsSurviveTheProcess) {
  open_with(1h);
  const TaskId id = schedule("q", 1h);
  crash_and_open();
  EXPECT_EQ(state_of(id), TaskState::scheduled);
}

}  // namespace
}  // namespace detent

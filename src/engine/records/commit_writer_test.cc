// Which writes are synced immediately, when the other writes are synced, and that a failed write
// stops all later writes.
#include "engine/records/commit_writer.h"

#include <gtest/gtest.h>

#include <chrono>
#include <optional>
#include <utility>

#include "engine/testing/counting_store_rig.h"
#include "store/testing/fault_store.h"
#include "store/testing/memory_store.h"

namespace detent {
namespace {

using namespace std::chrono_literals;  // NOLINT(google-build-using-namespace): literals only

class CommitWriterTest : public ::testing::Test {
 protected:
  CommitWriter writer(std::chrono::milliseconds sync_interval) {
    return CommitWriter(store_, clock_, sync_interval);
  }
  /// Makes two tasks.
  WriteBatch batch() {
    WriteBatch batch;
    for (int i = 0; i < 2; ++i) {
      last_id_ = last_id_.next();
      Task task{.id = last_id_, .queue = "q", .payload = {}};
      const Place place{.lane = Lane::due, .at = task.due_at, .id = task.id};
      batch.puts.push_back({.from = std::nullopt, .to = {.place = place, .task = std::move(task)}});
    }
    batch.last_id = last_id_;
    return batch;
  }

  ManualClock clock_;
  MemoryDisk disk_;
  FaultStore fault_store_{MemoryStore::open(disk_).value()};
  CountingStore store_{fault_store_, clock_};
  TaskId last_id_;
};

TEST_F(CommitWriterTest, WithoutAnIntervalEachCommitIsSyncedAndAnEmptyCommitIsNotWritten) {
  CommitWriter commits = writer(0ms);
  ASSERT_TRUE(commits.commit(batch()));
  ASSERT_TRUE(commits.commit({}));
  EXPECT_EQ(store_.synced_commits, 1);
  EXPECT_EQ(store_.empty_syncs, 0);
  EXPECT_EQ(commits.next_sync(), std::nullopt);
  EXPECT_EQ(commits.written().commits, 1u);
  EXPECT_EQ(commits.written().tasks, 2u);
  EXPECT_EQ(commits.written().time.count, 1u);
}

TEST_F(CommitWriterTest, TheSyncOfBufferedCommitsIsDueAnIntervalAfterTheFirst) {
  CommitWriter commits = writer(100ms);
  ASSERT_TRUE(commits.commit(batch()));
  const MonotonicTime due = clock_.now() + 100ms;
  clock_.advance(60ms);
  ASSERT_TRUE(commits.commit(batch()));
  EXPECT_EQ(commits.next_sync(), due);
  clock_.advance(39ms);
  ASSERT_TRUE(commits.sync_if_due());
  EXPECT_EQ(store_.empty_syncs, 0);
  clock_.advance(1ms);
  ASSERT_TRUE(commits.sync_if_due());
  ASSERT_TRUE(commits.sync_if_due());
  EXPECT_EQ(store_.empty_syncs, 1);
  EXPECT_EQ(store_.buffered_commits, 2);
  EXPECT_EQ(commits.next_sync(), std::nullopt);
}

TEST_F(CommitWriterTest, MustSyncAppliesToTheNextCommitOnly) {
  CommitWriter commits = writer(100ms);
  commits.must_sync();
  ASSERT_TRUE(commits.commit({}));
  EXPECT_EQ(store_.empty_syncs, 1) << "it may have been written before";
  ASSERT_TRUE(commits.commit(batch()));
  EXPECT_EQ(store_.synced_commits, 0);
  commits.must_sync();
  ASSERT_TRUE(commits.commit(batch()));
  EXPECT_EQ(store_.synced_commits, 1);
}

TEST_F(CommitWriterTest, MovesAreWrittenWithoutASyncAndNotCounted) {
  CommitWriter commits = writer(0ms);
  ASSERT_TRUE(commits.write_moved(batch()));
  ASSERT_TRUE(commits.write_moved({}));
  EXPECT_EQ(store_.buffered_commits, 1);
  EXPECT_EQ(store_.empty_buffered, 0);
  EXPECT_EQ(commits.written().commits, 0u);
  EXPECT_EQ(commits.next_sync(), std::nullopt);
}

TEST_F(CommitWriterTest, AfterAFailureNothingIsWrittenAndCallsGetTheError) {
  CommitWriter commits = writer(0ms);
  fault_store_.fail_write(1, WriteFault::applied);
  EXPECT_EQ(commits.commit(batch()).error().code, ErrorCode::unavailable);
  ASSERT_TRUE(commits.stopped_by());
  const std::uint64_t writes = fault_store_.write_count();
  EXPECT_EQ(commits.commit(batch()).error(), *commits.stopped_by());
  EXPECT_EQ(commits.write_moved(batch()).error(), *commits.stopped_by());
  EXPECT_EQ(fault_store_.write_count(), writes);
  EXPECT_EQ(commits.written().commits, 0u);
}

TEST_F(CommitWriterTest, AFailureOutsideAWriteStopsItToo) {
  CommitWriter commits = writer(0ms);
  EXPECT_EQ(commits.stop({ErrorCode::data_loss, "a page is gone", ""}).code,
            ErrorCode::unavailable);
  EXPECT_EQ(commits.commit(batch()).error().code, ErrorCode::unavailable);
  EXPECT_EQ(fault_store_.write_count(), 0u);
}

TEST_F(CommitWriterTest, LaterErrorsDoNotReplaceTheFirstError) {
  CommitWriter commits = writer(0ms);
  const Error first = commits.stop({ErrorCode::unavailable, "no space left on device", ""});
  EXPECT_EQ(commits.stop({ErrorCode::unavailable, "an earlier write failed", ""}), first);
  EXPECT_EQ(commits.stopped_by(), first);
}

TEST_F(CommitWriterTest, AFailedSyncStopsIt) {
  CommitWriter commits = writer(100ms);
  ASSERT_TRUE(commits.commit(batch()));
  clock_.advance(100ms);
  fault_store_.fail_write(1, WriteFault::not_applied);
  EXPECT_FALSE(commits.sync_if_due());
  EXPECT_TRUE(commits.stopped_by());
}

}  // namespace
}  // namespace detent

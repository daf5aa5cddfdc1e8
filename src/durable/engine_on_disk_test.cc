// An engine's thread with the store on disk. The store has a thread that writes, and the engine
// reads records while that thread writes.
#include <gtest/gtest.h>

#include <chrono>
#include <future>
#include <map>
#include <memory>
#include <utility>
#include <vector>

#include "base/testing/test_folder.h"
#include "detent/clock.h"
#include "engine/thread/engine_thread.h"
#include "store/rocksdb/rocksdb_store.h"

namespace detent {
namespace {

using namespace std::chrono_literals;  // NOLINT(google-build-using-namespace): literals only

class EngineOnDisk : public ::testing::Test {
 protected:
  void start(Clock& clock) {
    std::unique_ptr<Store> store = RocksDbStore::open({.path = folder_ / "data"}).value();
    std::unique_ptr<Engine> engine = Engine::open(*store, clock, {}).value();
    thread_ = std::make_unique<EngineThread>(
        OpenEngine{.store = std::move(store), .engine = std::move(engine)}, clock);
  }
  static void schedule(Engine& engine, const char* queue, std::chrono::milliseconds delay) {
    EXPECT_TRUE(engine.schedule({.queue = queue, .payload = {.data = "{}"}, .due = delay}));
  }

  TestFolder folder_;
  std::unique_ptr<EngineThread> thread_;
};

TEST_F(EngineOnDisk, TasksThatBecomeDueDuringAWriteComeOnceEach) {
  constexpr int kTasks = 200;
  constexpr int kWorkers = 3;
  SystemClock clock;
  start(clock);
  std::map<TaskId, int> got;  // used on the engine's thread, as all variables here
  int completed = 0;
  std::promise<void> all;
  UniqueFunction<void(Engine&)> wait;
  // The wait may end while the disk is written, so the next step is a separate command.
  const auto take = [&](const LeasedTask& task) {
    ++got[task.task.id];
    thread_->post_end([&, token = task.lease](Engine& engine) {
      EXPECT_EQ(engine.complete(token), LeaseOutcome::done);
      if (++completed == kTasks) return all.set_value();
      wait(engine);
    });
  };
  wait = [&](Engine& engine) {
    engine.lease_or_wait({.queue = "q"}, 1h, [&](Result<std::vector<LeasedTask>> tasks) {
      for (const LeasedTask& task : tasks.value()) take(task);
    });
  };
  for (int i = 0; i < kWorkers; ++i) ASSERT_TRUE(thread_->post([&](Engine& e) { wait(e); }));
  for (int i = 0; i < kTasks; ++i) {
    std::promise<void> accepted;
    ASSERT_TRUE(thread_->post([&, i](Engine& engine) {
      schedule(engine, "q", std::chrono::milliseconds{i % 6});
      engine.after_commit([&](const Result<void>&) { accepted.set_value(); });
    }));
    accepted.get_future().wait();
  }
  all.get_future().wait();
  thread_->stop();
  EXPECT_EQ(got.size(), static_cast<std::size_t>(kTasks));
  for (const auto& [id, count] : got) EXPECT_EQ(count, 1) << id.value;
}

// A manual clock ends no sleep here. Only the end of the write wakes the thread.
TEST_F(EngineOnDisk, AWriteKeepsTheEngineAwakeOnAManualClock) {
  ManualClock clock;
  start(clock);
  bool is_committed = false;  // set on the engine's thread, read while that thread rests
  ASSERT_TRUE(thread_->post([](Engine& engine) {
    engine.lease_or_wait({.queue = "q"}, 1h, [](const Result<std::vector<LeasedTask>>&) {});
    schedule(engine, "q", 50ms);  // due soon, so the engine reads the clock while it writes
  }));
  for (int i = 0; i < 50; ++i) {
    clock.await_waiters(1);
    is_committed = false;
    ASSERT_TRUE(thread_->post([&](Engine& engine) {
      schedule(engine, "other", 1h);
      engine.after_commit([&](const Result<void>&) { is_committed = true; });
    }));
    clock.await_waiters(1);
    EXPECT_TRUE(is_committed) << i;
    if (HasFailure()) break;
  }
  thread_->stop();
}

}  // namespace
}  // namespace detent

// The dispatcher when the store fails. durable_scheduler_test.cc tests what users see.
#include "durable/dispatcher.h"

#include <future>
#include <stdexcept>

#include "durable/test_durable.h"
#include "engine/testing/engine_fixture.h"

namespace detent::durable {
namespace {

class DispatcherTest : public EngineFixture {
 protected:
  void start() { start(inline_executor_); }
  void start(Executor& executor) {
    thread_ =
        std::make_unique<EngineThread>(OpenEngine{.store = nullptr, .engine = std::move(engine_)},
                                       clock_, EngineEvents{.reopen = [this] { return reopen(); }});
    dispatcher_ = std::make_unique<Dispatcher>(*thread_, clock_, executor);
  }
  /// Called on the engine's thread, after the old engine has used its store for the last time.
  Result<OpenEngine> reopen() {
    if (!can_reopen_) return cannot_read_;
    store_.reset();
    memory_store_.reset();
    open();
    return OpenEngine{.store = nullptr, .engine = std::move(engine_)};
  }
  void settle_threads() { clock_.await_waiters(2); }
  void advance_threads(std::chrono::nanoseconds by) {
    clock_.advance(by);
    settle_threads();
  }
  /// Runs `f` on the engine's thread.
  void on_engine(UniqueFunction<void(Engine&)> f) {
    std::promise<void> done;
    ASSERT_TRUE(thread_->post([&](Engine& engine) {
      f(engine);
      done.set_value();
    }));
    done.get_future().wait();
  }
  void fail_reads(std::optional<Error> error) {
    on_engine([&](Engine&) { store_->fail_reads(error); });
  }
  void fail_next_write() {
    on_engine([&](Engine&) { store_->fail_write(1, WriteFault::not_applied); });
  }
  void stop() {
    dispatcher_->stop();
    dispatcher_.reset();
    thread_.reset();
  }

  const Error cannot_read_{ErrorCode::unavailable, "the disk is busy", ""};
  int runs_ = 0;  // written by the hand-over thread, read while all threads sleep
  InlineExecutor inline_executor_;
  bool can_reopen_ = true;
  std::unique_ptr<EngineThread> thread_;
  std::unique_ptr<Dispatcher> dispatcher_;
};

TEST_F(DispatcherTest, AsksAgainForTasksThatCouldNotBeRead) {
  schedule("q", 0ms);
  start();
  fail_reads(cannot_read_);
  dispatcher_->on(
      "q", [&](const TaskView&) { return ++runs_, Outcome::done; }, 1);
  settle_threads();
  advance_threads(1s);
  EXPECT_EQ(runs_, 0);
  fail_reads(std::nullopt);
  advance_threads(1s);
  EXPECT_EQ(runs_, 1);
}

TEST_F(DispatcherTest, AFailedAttemptThatCouldNotBeStoredIsStoredLater) {
  const TaskId id = schedule("q", 0ms);
  start();
  const auto handler = [&](const TaskView&) -> Outcome {
    ++runs_;
    fail_reads(cannot_read_);  // fail() must read the record
    throw std::runtime_error("no route");
  };
  dispatcher_->on("q", handler, 1);
  settle_threads();
  advance_threads(1s);
  fail_reads(std::nullopt);
  on_engine([&](Engine& engine) { EXPECT_EQ(engine.get(id).value().state, TaskState::leased); });
  advance_threads(1s);
  on_engine([&](Engine& engine) {
    EXPECT_EQ(engine.get(id).value().task.attempts, 1u);
    EXPECT_EQ(last_error(engine.get(id).value().task), "no route");
  });
  EXPECT_EQ(runs_, 1);
  stop();
}

TEST_F(DispatcherTest, AStopGivesUpResultsThatCannotBeStored) {
  const TaskId id = schedule("q", 0ms);
  start();
  const auto handler = [&](const TaskView&) {
    fail_reads(cannot_read_);
    return Outcome::retry;
  };
  dispatcher_->on("q", handler, 1);
  settle_threads();
  stop();
  crash_and_open();
  EXPECT_EQ(state_of(id), TaskState::ready);  // it runs again
}

TEST_F(DispatcherTest, ATaskWhoseCompletionWasNotStoredRunsAgainOnceTheStoreIsOpenAgain) {
  const TaskId id = schedule("q", 0ms);
  start();
  const auto handler = [&](const TaskView&) {
    if (++runs_ == 1) fail_next_write();
    return Outcome::done;
  };
  dispatcher_->on("q", handler, 1);
  settle_threads();
  EXPECT_EQ(runs_, 1);
  advance_threads(1s);
  advance_threads(1s);
  EXPECT_EQ(runs_, 2);
  on_engine([&](Engine& engine) { EXPECT_FALSE(engine.get(id)); });
  stop();
}

// The new engine hands the task out again, but its handler is still running.
TEST_F(DispatcherTest, ATaskIsNotBegunTwiceWhenTheStoreFailsWhileItsHandlerRuns) {
  const TaskId id = schedule("q", 0ms);
  ManualExecutor manual;
  start(manual);
  dispatcher_->on(
      "q", [&](const TaskView&) { return ++runs_, Outcome::done; }, 2);
  settle_threads();
  std::vector<Job> jobs = manual.take();
  ASSERT_EQ(jobs.size(), 1u);
  fail_next_write();
  on_engine([&](Engine& engine) { EXPECT_TRUE(engine.schedule(request("other", 1h))); });
  for (int i = 0; i < 3; ++i) advance_threads(1s);
  EXPECT_EQ(manual.take().size(), 0u);
  on_engine([&](Engine& engine) { EXPECT_EQ(engine.get(id).value().state, TaskState::leased); });
  jobs[0]();
  settle_threads();
  EXPECT_EQ(runs_, 1);
  on_engine([&](Engine& engine) { EXPECT_FALSE(engine.get(id)); });
  stop();
}

TEST_F(DispatcherTest, AStopEndsWhileTheStoreCannotBeOpened) {
  schedule("q", 0ms);
  can_reopen_ = false;
  start();
  const auto handler = [&](const TaskView&) {
    fail_next_write();
    return Outcome::done;
  };
  dispatcher_->on("q", handler, 1);
  settle_threads();
  advance_threads(1s);
  stop();
}

}  // namespace
}  // namespace detent::durable

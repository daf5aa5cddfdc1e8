#include "engine/thread/engine_thread.h"

#include <gtest/gtest.h>

#include <atomic>
#include <future>
#include <thread>

#include "engine/testing/engine_fixture.h"

namespace detent {
namespace {

class EngineThreadTest : public EngineFixture {
 protected:
  void start() {
    thread_ = std::make_unique<EngineThread>(
        OpenEngine{.store = nullptr, .engine = std::move(engine_)}, clock_,
        EngineEvents{.on_stopped = [this](const Error& error) { stopped_.set_value(error); }});
  }
  /// Runs `verb` on the engine's thread and returns its answer after the commit.
  template <class T>
  Result<T> call(UniqueFunction<Result<T>(Engine&)> verb) {
    std::promise<Result<T>> promise;
    std::future<Result<T>> answer = promise.get_future();
    EXPECT_TRUE(thread_->post([verb = std::move(verb),
                               promise = std::move(promise)](Engine& engine) mutable {
      Result<T> result = verb(engine);
      engine.after_commit([result = std::move(result),
                           promise = std::move(promise)](const Result<void>& committed) mutable {
        promise.set_value(committed ? std::move(result) : Result<T>(committed.error()));
      });
    }));
    return answer.get();
  }
  Result<TaskSnapshot> schedule_by_thread(Due due) {
    return call<TaskSnapshot>([due](Engine& e) { return e.schedule(request("q", due)); });
  }

  std::promise<Error> stopped_;
  std::unique_ptr<EngineThread> thread_;
};

TEST_F(EngineThreadTest, AnswersAfterTheCommit) {
  start();
  EXPECT_EQ(schedule_by_thread(0ms).value().state, TaskState::ready);
  EXPECT_EQ(schedule_by_thread(1h).value().state, TaskState::scheduled);
}

TEST_F(EngineThreadTest, WakesForADueTaskAndServesAWaitingWorker) {
  start();
  ASSERT_TRUE(schedule_by_thread(250ms));
  std::promise<std::size_t> promise;
  std::future<std::size_t> served = promise.get_future();
  ASSERT_TRUE(thread_->post([&promise](Engine& engine) {
    engine.lease_or_wait({.queue = "q"}, 20s, [&promise](Result<std::vector<LeasedTask>> tasks) {
      promise.set_value(tasks.value().size());
    });
  }));
  // Wait until the thread sleeps. Its next wake-up is then the due time of the task.
  clock_.await_waiters(1);
  clock_.advance(250ms);
  EXPECT_EQ(served.get(), 1u);
}

// During a slow commit, tasks become due and requests arrive.
TEST_F(EngineThreadTest, TasksDueDuringACommitAreHandedOutBeforeLaterRequests) {
  start();
  const TaskId due_first = schedule_by_thread(10ms).value().task.id;
  std::promise<std::vector<LeasedTask>> promise;
  std::future<std::vector<LeasedTask>> leased = promise.get_future();
  ASSERT_TRUE(thread_->post([&](Engine& busy) {
    busy.after_commit([&](const Result<void>&) {
      clock_.advance(50ms);
      EXPECT_TRUE(thread_->post([&](Engine& engine) {
        EXPECT_TRUE(engine.schedule(request("q", 0ms)));
        promise.set_value(engine.lease({.queue = "q"}).value());
      }));
    });
  }));
  const std::vector<LeasedTask> tasks = leased.get();
  ASSERT_EQ(tasks.size(), 1u);
  EXPECT_EQ(tasks[0].task.id, due_first);
}

TEST_F(EngineThreadTest, AWaitingWorkerIsServedBetweenTwoCommandsOfASlice) {
  start();
  clock_.advance(500us);
  ASSERT_TRUE(schedule_by_thread(2ms));  // rounded up: in 2.5 ms
  bool is_served = false;                // on the engine's thread
  ASSERT_TRUE(thread_->post([&is_served](Engine& engine) {
    engine.lease_or_wait({.queue = "q"}, 20s, [&is_served](Result<std::vector<LeasedTask>> tasks) {
      is_served = !tasks.value().empty();
    });
  }));
  clock_.await_waiters(1);
  clock_.advance(2'400us);
  std::promise<bool> before_the_next;
  ASSERT_TRUE(thread_->post([&](Engine&) {
    // These two come together.
    EXPECT_TRUE(thread_->post([&](Engine&) { clock_.advance(200us); }));
    EXPECT_TRUE(thread_->post([&](Engine&) { before_the_next.set_value(is_served); }));
  }));
  EXPECT_TRUE(before_the_next.get_future().get());
}

// Two commands arrive together, and the first makes this number of changes.
TEST_F(EngineThreadTest, WhileAWorkerWaitsNoCommandIsAddedToACommitThatIsLargeAlready) {
  start();
  for (const bool is_shared : {false, true}) {
    SCOPED_TRACE(is_shared);
    if (is_shared) {
      ASSERT_TRUE(thread_->post([](Engine& engine) {
        engine.lease_or_wait({.queue = "calm"}, 20s, [](const Result<std::vector<LeasedTask>>&) {});
      }));
    }
    bool is_committed = false;  // on the engine's thread
    std::promise<bool> before_the_next;
    ASSERT_TRUE(thread_->post([&](Engine&) {
      EXPECT_TRUE(thread_->post([&](Engine& engine) {
        for (std::size_t i = 0; i < EngineThread::kSharedChanges; ++i) {
          EXPECT_TRUE(engine.schedule(request("q", 1h)));
        }
        engine.after_commit([&](const Result<void>&) { is_committed = true; });
      }));
      EXPECT_TRUE(thread_->post([&](Engine&) { before_the_next.set_value(is_committed); }));
    }));
    EXPECT_EQ(before_the_next.get_future().get(), is_shared);
    clock_.await_waiters(1);  // all of it is over
  }
}

TEST_F(EngineThreadTest, WhereTurnsAreSlowACommitMayBeLargerBeforeNoCommandIsAddedToIt) {
  start();
  ASSERT_TRUE(thread_->post([](Engine& engine) {
    engine.lease_or_wait({.queue = "calm"}, 20s, [](const Result<std::vector<LeasedTask>>&) {});
  }));
  bool is_committed = false;  // on the engine's thread
  std::promise<bool> before_the_next;
  ASSERT_TRUE(thread_->post([&](Engine& slow) {
    slow.after_commit([&](const Result<void>&) {
      clock_.advance(4 * EngineThread::kSlowTurn);
      // These two come together.
      EXPECT_TRUE(thread_->post([&](Engine& engine) {
        for (std::size_t i = 0; i < 4 * EngineThread::kSharedChanges - 1; ++i) {
          EXPECT_TRUE(engine.schedule(request("q", 1h)));
        }
        engine.after_commit([&](const Result<void>&) { is_committed = true; });
      }));
      EXPECT_TRUE(thread_->post([&](Engine&) { before_the_next.set_value(is_committed); }));
    });
  }));
  EXPECT_FALSE(before_the_next.get_future().get());
  clock_.await_waiters(1);  // all of it is over
}

// Changes that the previous turn left do not prevent the next command from running.
TEST_F(EngineThreadTest, WhileManyEndedTasksAreForgottenAndAWorkerWaitsACommandComesInTheNextTurn) {
  constexpr std::size_t kForgottenInATurn = 1'000;
  static_assert(kForgottenInATurn > EngineThread::kSharedChanges);
  set("q", {.retention = 1min});
  for (std::size_t i = 0; i < 5 * kForgottenInATurn / 2; ++i) {
    ASSERT_TRUE(engine_->cancel(engine_->schedule(request("q", 1h)).value().task.id));
    if (i % 100 == 0) settle();
  }
  settle();
  start();
  std::promise<std::uint64_t> writes;  // of the store, between two commands
  ASSERT_TRUE(thread_->post([&](Engine& engine) {
    engine.lease_or_wait({.queue = "calm"}, 1h, [](const Result<std::vector<LeasedTask>>&) {});
    clock_.advance(2min);
    EXPECT_TRUE(thread_->post([&, before = store_->write_count()](Engine& later) {
      EXPECT_EQ(later.staged(), kForgottenInATurn) << "forgotten in the turn before";
      writes.set_value(store_->write_count() - before);
    }));
  }));
  EXPECT_EQ(writes.get_future().get(), 1u) << "one turn looked for keys whose time is over";
}

/// Counts how often a thread goes to sleep.
class CountedSleeps final : public Clock {
 public:
  explicit CountedSleeps(ManualClock& clock) : clock_(clock) {}
  MonotonicTime now() const noexcept override { return clock_.now(); }
  WallInstant wall_now() const noexcept override { return clock_.wall_now(); }
  bool wait(Doorbell& bell, std::optional<MonotonicTime> until) noexcept override {
    ++count_;
    return clock_.wait(bell, until);
  }
  int count() const noexcept { return count_; }

 private:
  ManualClock& clock_;
  std::atomic<int> count_ = 0;  // by the engine's thread; the test reads while that sleeps
};

// An idle engine wakes up once a second to look at the clocks. Tasks that are not due cause no
// further wake-ups.
TEST_F(EngineThreadTest, AnIdleEngineWakesOnceASecond) {
  constexpr int kSeconds = 60;
  constexpr int kPages = 3;  // a look at the disk now and then, where the window goes on
  CountedSleeps sleeps(clock_);
  schedule("q", 24h);
  schedule("q", 2h);
  schedule("q", 0ms);
  ASSERT_EQ(engine_->lease({.queue = "q", .visibility_timeout = 1h}).value().size(), 1u);
  crash();
  memory_store_ = MemoryStore::open(*disk_).value();
  engine_ = Engine::open(*memory_store_, sleeps, {}).value();
  ASSERT_EQ(engine_->lease({.queue = "q", .visibility_timeout = 1h}).value().size(), 1u);
  EngineThread thread({.store = nullptr, .engine = std::move(engine_)}, sleeps, {});
  clock_.await_waiters(1);
  const int before = sleeps.count();
  for (int steps = 0; steps < kSeconds * 100; ++steps) {
    clock_.advance(10ms);
    clock_.await_waiters(1);
  }
  EXPECT_GE(sleeps.count() - before, kSeconds);
  EXPECT_LE(sleeps.count() - before, kSeconds + kPages);
}

TEST_F(EngineThreadTest, ADateIsNotEarlyWhenTheClockWasSteppedBackWhileTheEngineSlept) {
  start();
  clock_.await_waiters(1);
  const WallTime before = wall_now();
  clock_.step_wall(-1h);
  EXPECT_EQ(schedule_by_thread(before - 30min).value().state, TaskState::scheduled);
}

TEST_F(EngineThreadTest, ADateIsNotMissedWhenTheClockIsSteppedForwardWhileTheEngineSleeps) {
  start();
  ASSERT_TRUE(schedule_by_thread(WallTime{wall_now() + 4min}));
  std::promise<std::size_t> promise;
  std::future<std::size_t> served = promise.get_future();
  ASSERT_TRUE(thread_->post([&promise](Engine& engine) {
    engine.lease_or_wait({.queue = "q"}, 60s, [&promise](Result<std::vector<LeasedTask>> tasks) {
      promise.set_value(tasks.value().size());
    });
  }));
  clock_.await_waiters(1);
  clock_.step_wall(1h);
  clock_.advance(EngineThread::kLongestSleep);
  EXPECT_EQ(served.get(), 1u);
}

TEST_F(EngineThreadTest, AStopAnswersWaitsAndRefusesCommands) {
  start();
  std::promise<std::size_t> promise;
  std::future<std::size_t> served = promise.get_future();
  ASSERT_TRUE(thread_->post([&promise](Engine& engine) {
    engine.lease_or_wait({.queue = "q"}, 20s, [&promise](Result<std::vector<LeasedTask>> tasks) {
      promise.set_value(tasks.value().size());
    });
  }));
  thread_->stop();
  EXPECT_EQ(served.get(), 0u);
  EXPECT_FALSE(thread_->post([](Engine&) {}));
  thread_->stop();
}

TEST_F(EngineThreadTest, CommandsPostedBeforeAStopAreRunAndDurable) {
  start();
  std::promise<Result<void>> promise;
  std::future<Result<void>> committed = promise.get_future();
  ASSERT_TRUE(thread_->post([&promise](Engine& engine) {
    EXPECT_TRUE(engine.schedule(request("q", 1h)));
    engine.after_commit([&promise](const Result<void>& result) { promise.set_value(result); });
  }));
  thread_->stop();
  EXPECT_TRUE(committed.get());
  thread_.reset();
  crash_and_open();
  EXPECT_EQ(engine_->stats().queues[0].scheduled, 1u);
}

TEST_F(EngineThreadTest, AFailedStoreIsReportedOnce) {
  store_->fail_write(1, WriteFault::not_applied);
  start();
  EXPECT_EQ(schedule_by_thread(1h).error().code, ErrorCode::unavailable);
  EXPECT_EQ(stopped_.get_future().get().code, ErrorCode::unavailable);
  EXPECT_EQ(schedule_by_thread(1h).error().code, ErrorCode::unavailable);
}

TEST_F(EngineThreadTest, AStoreThatFailsAtTheStopIsReportedToo) {
  options_.keep_leases = true;
  crash_and_open();
  schedule("q", 0ms);
  ASSERT_EQ(lease("q").size(), 1u);
  store_->fail_write(1, WriteFault::not_applied);
  start();
  thread_->stop();
  ASSERT_EQ(stopped_.get_future().wait_for(0s), std::future_status::ready);
}

class EngineReopen : public EngineThreadTest {
 protected:
  /// Opens the disk again. The next write fails with `fault`, if it is given.
  Result<OpenEngine> open_again(std::optional<WriteFault> fault) {
    ASSIGN_OR_RETURN(std::unique_ptr<Store> memory, MemoryStore::open(*disk_));
    auto store = std::make_unique<FaultStore>(std::move(memory));
    ASSIGN_OR_RETURN(std::unique_ptr<Engine> engine, Engine::open(*store, clock_, options_));
    if (fault) store->fail_write(1, *fault);
    faults_ = store.get();
    return OpenEngine{.store = std::move(store), .engine = std::move(engine)};
  }
  void start_with(std::optional<WriteFault> fault) {
    crash();
    thread_ = std::make_unique<EngineThread>(
        open_again(fault).value(), clock_,
        EngineEvents{.on_stopped = [this](const Error& error) { stopped_.set_value(error); },
                     .on_reopen_failed = [this](const Error&) { failed_.set_value(); },
                     .on_reopened = [this] { reopened_.set_value(); },
                     .reopen = [this] { return reopen(); }});
  }
  Result<OpenEngine> reopen() {
    if (std::exchange(refuse_once_, false)) return Error{ErrorCode::unavailable, "no space", ""};
    return open_again({});
  }

  FaultStore* faults_ = nullptr;  // of the store that is open
  bool refuse_once_ = false;
  std::promise<void> failed_;
  std::promise<void> reopened_;
};

TEST_F(EngineReopen, AFailedWriteIsNotAcknowledgedAndTheNextOneFindsTheStoreOpenAgain) {
  for (const WriteFault fault : {WriteFault::not_applied, WriteFault::applied}) {
    stopped_ = {};
    reopened_ = {};
    start_with(fault);
    EXPECT_EQ(schedule_by_thread(1h).error().code, ErrorCode::unavailable);
    reopened_.get_future().wait();
    EXPECT_TRUE(schedule_by_thread(2h));
    thread_.reset();
  }
  open();
  EXPECT_EQ(engine_->stats().queues[0].scheduled, 3u) << "two acknowledged, one that was there";
}

TEST_F(EngineReopen, ALeaseOfTheFailedEngineIsCompletedInTheNext) {
  ASSERT_TRUE(engine_->schedule(request("q", 0ms)));
  settle();
  options_.keep_leases = true;
  start_with({});
  const auto lease = [](Engine& engine) { return engine.lease({.queue = "q"}); };
  const auto first = call<std::vector<LeasedTask>>(lease).value();  // writes nothing
  ASSERT_EQ(first.size(), 1u);
  ASSERT_TRUE(thread_->post([this](Engine&) { faults_->fail_write(1, WriteFault::not_applied); }));
  EXPECT_FALSE(schedule_by_thread(1h));
  reopened_.get_future().wait();
  EXPECT_EQ(call<std::vector<LeasedTask>>(lease).value().size(), 0u) << "it is held";
  const auto complete = [token = first[0].lease](Engine& e) { return e.complete(token); };
  EXPECT_EQ(call<LeaseOutcome>(complete), LeaseOutcome::done);
  EXPECT_EQ(call<LeaseOutcome>(complete), LeaseOutcome::conflict);
}

TEST_F(EngineReopen, AttemptsGoOnUntilTheStoreOpens) {
  refuse_once_ = true;
  start_with(WriteFault::not_applied);
  EXPECT_FALSE(schedule_by_thread(1h));
  failed_.get_future().wait();
  EXPECT_EQ(schedule_by_thread(1h).error().code, ErrorCode::unavailable) << "in the meantime";
  clock_.await_waiters(1);
  clock_.advance(EngineThread::kLongestSleep);
  reopened_.get_future().wait();
  EXPECT_TRUE(schedule_by_thread(1h));
}

// If the store fails between two commits, the staged changes stay and are never written.
TEST_F(EngineReopen, AStoppedEngineWithMuchStagedRunsTheCommandsOfSeveralQueues) {
  const TaskId damaged = schedule("damaged", 0ms);
  const Place place{.lane = Lane::due, .at = wall_now(), .id = damaged};
  crash();
  int attempts = 0;
  thread_ = std::make_unique<EngineThread>(
      open_again({}).value(), clock_, EngineEvents{.reopen = [&]() -> Result<OpenEngine> {
        clock_.advance(EngineThread::kLongestSleep);  // it tries in each turn
        if (++attempts == 1) return Error{ErrorCode::unavailable, "no space", ""};
        return open_again({});
      }});
  std::promise<bool> is_stopped;
  const auto of = [](const char* queue) {
    return [queue](const Engine& /*engine*/) { return std::string(queue); };
  };
  ASSERT_TRUE(thread_->post([&](Engine&) {
    // These three come together, and the first takes the whole slice.
    EXPECT_TRUE(thread_->post([&](Engine& engine) {
      for (std::size_t i = 0; i < EngineThread::kSharedChanges; ++i) {
        EXPECT_TRUE(engine.schedule(request("q", 1h)));
      }
      disk_->flip_bit(place, 100);
      faults_->fail_write(1, WriteFault::not_applied);
      (void)engine.lease({.queue = "damaged"});  // to be set aside
      EXPECT_TRUE(engine.stopped_by());
      clock_.advance(EngineThread::kLongestSlice);
    }));
    EXPECT_TRUE(thread_->post([](Engine&) {}, of("a")));
    EXPECT_TRUE(thread_->post(
        [&](Engine& engine) { is_stopped.set_value(engine.stopped_by().has_value()); }, of("b")));
  }));
  EXPECT_TRUE(is_stopped.get_future().get()) << "and not only when there is another engine";
  thread_->stop();
}

TEST_F(EngineThreadTest, ManyThreadsPostAtOnceAndEachIsAnsweredOnce) {
  start();
  constexpr int kThreads = 4;
  constexpr int kEach = 500;
  std::vector<std::thread> threads;
  std::atomic<int> answered = 0;  // written by the engine's thread, read after the joins
  for (int t = 0; t < kThreads; ++t) {
    threads.emplace_back([this, &answered] {
      for (int i = 0; i < kEach; ++i) {
        if (schedule_by_thread(1h)) answered.fetch_add(1, std::memory_order_relaxed);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(answered.load(), kThreads * kEach);
}

}  // namespace
}  // namespace detent

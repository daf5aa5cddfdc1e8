// The load window: which tasks are in memory, which tasks wait on disk, and how a stepped clock
// moves the window.
#include <tuple>

#include "base/rng.h"
#include "base/test_seed.h"
#include "engine/testing/counting_store_rig.h"
#include "engine/testing/engine_fixture.h"

namespace detent {
namespace {

using std::chrono::milliseconds;

class EngineWindow : public EngineFixture {
 protected:
  void reopen_with(EngineOptions options) {
    options_ = options;
    crash_and_open();
  }
  std::uint64_t loaded() { return engine_->stats().loaded; }
};

TEST_F(EngineWindow, FarTasksCostNoMemory) {
  for (int i = 0; i < 100; ++i) schedule("q", 24h + std::chrono::hours{i});
  EXPECT_EQ(loaded(), 0u);
  engine_->check_invariants();
}

TEST_F(EngineWindow, AFarTaskIsLoadedInTimeAndFiresInItsMillisecond) {
  const TaskId id = schedule("q", 24h * 30);
  advance(24h * 30 - 1ms);
  EXPECT_EQ(loaded(), 1u);
  EXPECT_TRUE(lease("q").empty());
  advance(1ms);
  EXPECT_EQ(lease_ids("q", 1), std::vector{id});
}

TEST_F(EngineWindow, TheEngineWakesItselfForAFarTask) {
  schedule("q", 24h * 365);
  for (int wakeups = 0; lease("q").empty(); ++wakeups) {
    ASSERT_LT(wakeups, 200'000);
    const std::optional<MonotonicTime> next = engine_->next_wakeup();
    ASSERT_TRUE(next);
    clock_.advance(*next - clock_.now());
    settle();
  }
  EXPECT_EQ(clock_.now().time_since_epoch(), 24h * 365);
}

TEST_F(EngineWindow, OverdueTasksAreLoadedFirstAtBoot) {
  const TaskId near = schedule("q", 1min);
  const TaskId far = schedule("q", 1h);
  crash();
  clock_.advance(30min);  // the machine was off for this time
  open();
  EXPECT_EQ(lease_ids("q", 10), std::vector{near});
  advance(30min);
  EXPECT_EQ(lease_ids("q", 10), std::vector{far});
}

TEST_F(EngineWindow, MemoryStaysInItsBoundAndEveryTaskComes) {
  reopen_with({.max_loaded = 50});
  for (int i = 0; i < 1'000; ++i) schedule("q", std::chrono::milliseconds{i % 7});
  advance(10ms);
  std::size_t completed = 0;
  while (completed < 1'000) {
    ASSERT_LE(loaded(), 50u);
    const std::vector<LeasedTask> tasks = lease("q", 20);
    ASSERT_FALSE(tasks.empty()) << "after " << completed;
    for (const LeasedTask& task : tasks) ASSERT_EQ(complete(task.lease), LeaseOutcome::done);
    completed += tasks.size();
  }
  engine_->check_invariants();
  EXPECT_EQ(engine_->stats().queues[0].ready, 0u);
}

TEST_F(EngineWindow, ABootWithMoreOverdueTasksThanMemoryLosesNone) {
  for (int i = 0; i < 2'500; ++i) schedule("q", 1s);
  reopen_with({.max_loaded = 1'200});
  advance(1h);
  EXPECT_EQ(loaded(), 450u) << "three eighths are for ready tasks, the others spill";
  std::size_t completed = 0;
  for (std::vector<LeasedTask> tasks; !(tasks = lease("q", 100)).empty();) {
    for (const LeasedTask& task : tasks) ASSERT_EQ(complete(task.lease), LeaseOutcome::done);
    completed += tasks.size();
  }
  EXPECT_EQ(completed, 2'500u);
}

TEST_F(EngineWindow, AFloodOfDueTasksStaysInItsMemoryTurnAfterTurn) {
  reopen_with({.max_loaded = 800});
  for (int turn = 0; turn < 30; ++turn) {
    for (int i = 0; i < 4'000; ++i) ASSERT_TRUE(engine_->schedule(request("q", 0ms)));
    ASSERT_TRUE(engine_->turn());
    ASSERT_LE(loaded(), 2 * 800u);
  }
  settle();
  EXPECT_EQ(engine_->stats().queues[0].ready, 120'000u);
}

TEST_F(EngineWindow, ATaskBehindAMemoryFullOfDueOnesKeepsItsDueTime) {
  reopen_with({.max_loaded = 1});
  const TaskId first = schedule("q", 0ms);
  const TaskId second = schedule("q", 1s);
  advance(1s);
  EXPECT_EQ(loaded(), 1u);
  EXPECT_EQ(engine_->get(second).value().task.due_at, wall_now());
  EXPECT_EQ(state_of(second), TaskState::ready) << "due, waiting for room";
  ASSERT_TRUE(engine_->cancel(first));
  settle();
  EXPECT_EQ(lease_ids("q", 1), std::vector{second});
}

TEST_F(EngineWindow, ATaskDueAtOnceIsNotHeldUpByAMemoryFullOfLaterOnes) {
  reopen_with({.max_loaded = 40});
  for (int i = 0; i < 100; ++i) schedule("later", 5min + std::chrono::milliseconds{i});
  const TaskId now = schedule("q", 0ms);
  EXPECT_EQ(lease_ids("q", 1), std::vector{now});
  engine_->check_invariants();
  advance(5min);
  for (int i = 0; i < 100; ++i) {
    const std::vector<LeasedTask> due = lease("later");
    ASSERT_EQ(due.size(), 1u) << "after " << i;
    EXPECT_EQ(due[0].lateness, 0ms);
    ASSERT_EQ(complete(due[0].lease), LeaseOutcome::done);
    advance(1ms);
  }
  EXPECT_LE(loaded(), 40u);
}

TEST_F(EngineWindow, ATaskDueAtOnceIsNotHeldUpAlsoWhenTheMemoryFillsAgainAtOnce) {
  reopen_with({.max_loaded = 40});
  for (int i = 0; i < 41; ++i) schedule("later", 5min);
  for (int i = 0; i < 10; ++i) schedule("later", 1min);
  const TaskId now = schedule("q", 0ms);
  EXPECT_EQ(lease_ids("q", 1), std::vector{now});
  engine_->check_invariants();
}

TEST_F(EngineWindow, AFarTaskIsLoadedAlsoIntoAMemoryOfOne) {
  reopen_with({.max_loaded = 1});
  const TaskId id = schedule("q", 24h);
  advance(24h - 1ms);
  EXPECT_EQ(loaded(), 1u);
  advance(1ms);
  EXPECT_EQ(lease_ids("q", 1), std::vector{id});
}

// No queue has a large part of the memory, so no queue is cut and the window shrinks.
TEST_F(EngineWindow, TasksOfManyQueuesComeInTheirMillisecondThoughMemoryHoldsOnlyAFew) {
  const std::uint64_t seed = test_seed();
  SCOPED_TRACE(replay_hint(seed));
  Rng rng(seed);
  reopen_with({.max_loaded = 16});
  std::vector<std::tuple<WallTime, TaskId, std::string>> expected;
  for (int i = 0; i < 200; ++i) {
    const std::string queue = "q" + std::to_string(i % 40);
    const std::chrono::milliseconds delay{1 + rng.below(120'000)};
    const TaskId id = engine_->schedule(request(queue, delay)).value().task.id;
    ASSERT_LE(loaded(), 16u) << i;
    if (rng.below(3) != 0) {
      settle();
      engine_->check_invariants();
    }
    expected.emplace_back(wall_now() + delay, id, queue);
  }
  settle();
  std::ranges::sort(expected);
  for (const auto& [due, id, queue] : expected) {
    advance(due - wall_now());
    const std::vector<LeasedTask> tasks = lease(queue);
    ASSERT_EQ(tasks.size(), 1u);
    ASSERT_EQ(tasks[0].task.id, id);
    ASSERT_EQ(complete(tasks[0].lease), LeaseOutcome::done);
    engine_->check_invariants();
  }
}

TEST_F(EngineWindow, MemoryStaysInItsBoundAlsoWhenNothingOfItCanGo) {
  reopen_with({.max_loaded = 16});
  std::vector<TaskId> ids;
  for (int i = 0; i < 40; ++i) {
    ids.push_back(engine_->schedule(request("q" + std::to_string(i), 0ms)).value().task.id);
    ASSERT_LE(loaded(), 16u) << "after " << i;
  }
  settle();
  engine_->check_invariants();
  for (std::size_t i = 0; i < ids.size(); ++i) {
    const std::vector<LeasedTask> tasks = lease("q" + std::to_string(i));
    ASSERT_EQ(tasks.size(), 1u) << i;
    ASSERT_EQ(tasks[0].task.id, ids[i]);
    ASSERT_EQ(complete(tasks[0].lease), LeaseOutcome::done);
  }
}

TEST_F(EngineWindow, AQueueIsCutWhereItsLastQuarterBegins) {
  reopen_with({.max_loaded = 40});
  for (int i = 40; i > 0; --i) {
    ASSERT_TRUE(engine_->schedule(request("later", 1min + std::chrono::milliseconds{i})));
  }
  EXPECT_EQ(loaded(), 40u);
  ASSERT_TRUE(engine_->schedule(request("q", 1s)));
  EXPECT_EQ(loaded(), 31u) << "three quarters of the queue's, and the new one";
}

// The place of the cut is found with a sample of the tasks in memory, here every third slot.
TEST_F(EngineWindow, AQueueIsCutAlsoWhenASampleMeetsNoneOfIt) {
  reopen_with({.max_loaded = 9'000});
  for (int i = 0; i < 9'000; ++i) {
    const std::string queue = i % 3 == 1 ? "large" : "q" + std::to_string(i % 30);
    ASSERT_TRUE(engine_->schedule(request(queue, 1min)));
  }
  EXPECT_EQ(loaded(), 9'000u);
  ASSERT_TRUE(engine_->schedule(request("q", 1s)));
  EXPECT_LT(loaded(), 9'000u);
}

// Loading a page behind a cut moves the cut to the last task of the page. This task stays in memory
// when room is made.
TEST_F(EngineWindow, ATaskJustWhereItsQueueIsCutStaysInMemory) {
  reopen_with({.max_loaded = 1'600});
  std::vector<TaskId> first;
  for (int i = 0; i < 1'600; ++i) {
    const auto due = 1min + std::chrono::milliseconds{i};
    first.push_back(engine_->schedule(request("first", due)).value().task.id);
  }
  schedule("second", 1s);
  EXPECT_LT(loaded(), 1'600u);
  for (std::size_t i = 0; i < 900; ++i) ASSERT_TRUE(engine_->cancel(first[i]));
  ASSERT_TRUE(engine_->turn());  // reads one page
  for (int i = 0; i < 1'500; ++i) {
    ASSERT_TRUE(engine_->schedule(request("second", 3min - std::chrono::milliseconds{2 * i})));
    ASSERT_LE(loaded(), 1'600u);
  }
  settle();
  engine_->check_invariants();
}

TEST_F(EngineWindow, AFullMemoryKeepsTheInvariantsUnderRandomLoad) {
  const std::uint64_t seed = test_seed();
  SCOPED_TRACE(replay_hint(seed));
  Rng rng(seed);
  reopen_with({.max_loaded = 20});
  std::size_t accepted = 0;
  std::size_t completed = 0;
  for (int i = 0; i < 2'000; ++i) {
    for (std::uint32_t n = rng.below(3); n > 0; --n, ++accepted) {
      schedule("q", std::chrono::milliseconds{rng.below(2) == 0 ? rng.below(600'000) : 0});
    }
    for (const LeasedTask& task : lease("q", rng.below(3) + 1)) {
      ASSERT_LE(task.task.due_at, wall_now());
      ASSERT_EQ(complete(task.lease), LeaseOutcome::done);
      ++completed;
    }
    advance(std::chrono::milliseconds{rng.below(1'000)});
    ASSERT_LE(loaded(), 20u);
    if (i % 50 == 0) engine_->check_invariants();
  }
  for (int idle = 0; idle < 2'000 && completed < accepted; ++idle) {
    advance(1s);
    for (const LeasedTask& task : lease("q", 100)) {
      ASSERT_EQ(complete(task.lease), LeaseOutcome::done);
      ++completed;
    }
  }
  EXPECT_EQ(completed, accepted);
}

// ---- how often the due order is read ----

class EngineWindowReads : public EngineWindow {
 public:
  ~EngineWindowReads() override { engine_.reset(); }  // it uses the store below

 protected:
  /// Returns the number of pages of the due order that are read in five minutes, which is half the
  /// window. In each second, `tasks_a_second` tasks of `queues` queues are due and are completed
  /// immediately. Memory has room for 800 tasks.
  int pages_in_half_a_window(int tasks_a_second, int queues) {
    open_on_a_new_disk();
    engine_.reset();
    counting_ = std::make_unique<CountingStore>(*store_, clock_);
    engine_ = Engine::open(*counting_, clock_, {.max_loaded = 800}).value();
    const auto queue_name = [queues](int i) { return "q" + std::to_string(i % queues); };
    for (int i = 0; i < 15 * 60 * tasks_a_second; ++i) {
      const milliseconds due{std::int64_t{i} * 1'000 / tasks_a_second};
      EXPECT_TRUE(engine_->schedule(request(queue_name(i), 1s + due)));
      if (i % 100 == 0) settle();
    }
    settle();
    counting_->due_pages = 0;
    int completed = 0;
    for (int second = 0; second < 300; ++second) {
      advance(1s);
      for (int i = 0; i < queues; ++i) {
        for (const LeasedTask& task : lease(queue_name(i), 100)) {
          EXPECT_EQ(complete(task.lease), LeaseOutcome::done);
          ++completed;
        }
      }
    }
    EXPECT_GE(completed, 299 * tasks_a_second);
    return counting_->due_pages;
  }

 private:
  std::unique_ptr<CountingStore> counting_;
};

// This is tested with one queue, which is cut, and with many queues that share the memory.
TEST_F(EngineWindowReads, MoreTasksASecondMakeMoreReadsButNotOneATaskAndAnIdleWindowMakesNone) {
  for (const int queues : {1, 40}) {
    SCOPED_TRACE(std::to_string(queues) + " queues");
    EXPECT_LE(pages_in_half_a_window(0, queues), 1) << "the look at each half of a window";
    const int slow = pages_in_half_a_window(2, queues);
    const int quick = pages_in_half_a_window(20, queues);
    EXPECT_GT(slow, 300 * 2 / 128) << "no page has more";
    EXPECT_GT(quick, 5 * slow);
    EXPECT_LT(quick, 300 * 20 / 50) << "tasks a page";
  }
}

TEST_F(EngineWindow, ADelayDoesNotMoveWhenTheWallClockIsStepped) {
  const TaskId id = schedule("q", 5min);
  clock_.step_wall(-1h);
  advance(5min - 1ms);
  EXPECT_EQ(state_of(id), TaskState::scheduled);
  advance(1ms);
  EXPECT_EQ(state_of(id), TaskState::ready);
}

TEST_F(EngineWindow, ADateFollowsAWallClockSteppedBack) {
  const TaskId id = schedule("q", wall_now() + 5min);
  clock_.step_wall(-1h);
  advance(5min);
  EXPECT_EQ(state_of(id), TaskState::scheduled);
  advance(1h - 1ms);
  EXPECT_EQ(state_of(id), TaskState::scheduled);
  advance(1ms);
  EXPECT_EQ(state_of(id), TaskState::ready);
}

TEST_F(EngineWindow, ADateThatFollowedTheWallClockIsNotCountedAsLate) {
  schedule("q", wall_now() + 5min);
  clock_.step_wall(-1h);
  advance(1h + 5min);
  const EngineStats stats = engine_->stats();
  EXPECT_EQ(stats.counters.fired, 1u);
  EXPECT_LE(stats.lateness.quantile(1), 1ms);
}

TEST_F(EngineWindow, ADateFollowsAWallClockSteppedForward) {
  const TaskId near = schedule("q", wall_now() + 5min);
  const TaskId far = schedule("q", wall_now() + 2h);
  clock_.step_wall(3h);
  settle();
  EXPECT_EQ(state_of(near), TaskState::ready);
  EXPECT_EQ(state_of(far), TaskState::ready);
}

TEST_F(EngineWindow, ADamagedRecordHidesNoOtherAndIsSetAside) {
  const TaskId damaged = schedule("q", 24h);
  const TaskId sound = schedule("q", 24h);
  disk_->flip_bit({.lane = Lane::due, .at = wall_now() + 24h, .id = damaged}, 100);
  advance(24h);
  EXPECT_EQ(lease_ids("q", 10), std::vector{sound});
  EXPECT_EQ(engine_->stats().counters.quarantined, 1u);
  EXPECT_EQ(store_->quarantined().value(), 1u);
}

TEST_F(EngineWindow, RandomDelaysFireInTheirMillisecondWhateverTheWindow) {
  const std::uint64_t seed = test_seed();
  SCOPED_TRACE(replay_hint(seed));
  Rng rng(seed);
  reopen_with({.window = std::chrono::milliseconds{50 + rng.below(5'000)}});
  std::vector<std::pair<WallTime, TaskId>> expected;
  for (int i = 0; i < 2'000; ++i) {
    const std::chrono::milliseconds delay{1 + rng.below(60'000)};
    expected.emplace_back(wall_now() + delay, schedule("q", delay));
  }
  std::ranges::sort(expected);
  for (const auto& [due, id] : expected) {
    advance(due - wall_now());
    ASSERT_EQ(lease_ids("q", 1), std::vector{id});
  }
}

}  // namespace
}  // namespace detent

// A flood of tasks or requests for one queue does not make the other queues wait. The waits are
// counted in tasks and commands, on a manual clock. Commands, or reads of the clock, move it.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <future>
#include <iterator>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "engine/testing/engine_fixture.h"
#include "engine/thread/engine_thread.h"

namespace detent {
namespace {

using std::chrono::milliseconds;

// ---- waiting workers ----

class EngineFairness : public EngineFixture {
 protected:
  /// Starts the wait of a worker. Its answer adds the number of its tasks to a list.
  void work(const std::string& queue, std::size_t max) {
    const LeaseRequest request{.queue = queue, .max = max};
    engine_->lease_or_wait(request, 1min, [this, queue](Result<std::vector<LeasedTask>> tasks) {
      if (!tasks.value().empty()) answers_.emplace_back(queue, tasks->size());
    });
  }
  void accept(const std::string& queue, int count, Due due = 0ms) {
    for (int i = 0; i < count; ++i) ASSERT_TRUE(engine_->schedule(request(queue, due)));
  }
  std::size_t handed_out() const {
    std::size_t sum = 0;
    for (const auto& [queue, count] : answers_) sum += count;
    return sum;
  }

  std::vector<std::pair<std::string, std::size_t>> answers_;
};

TEST_F(EngineFairness, AWorkerOfAnotherQueueIsServedInTheSameTurnAfterOneLargeAnswer) {
  for (int i = 0; i < 20; ++i) work("storm", 1'000);
  work("calm", 10);
  accept("storm", 20'000);
  accept("calm", 1);
  ASSERT_TRUE(engine_->turn());
  ASSERT_GE(answers_.size(), 2u);
  EXPECT_EQ(answers_[0], std::pair(std::string("storm"), std::size_t{128}));
  EXPECT_EQ(answers_[1], std::pair(std::string("calm"), std::size_t{1}));
  EXPECT_LE(handed_out(), 2 * 128u + 1) << "then others have their turn";
  settle();
  EXPECT_EQ(answers_.size(), 21u) << "each worker of the storm got its answer";
}

TEST_F(EngineFairness, TenQueuesTakeTurns) {
  for (int i = 0; i < 3; ++i) {
    for (int queue = 0; queue < 10; ++queue) work("q" + std::to_string(queue), 1'000);
  }
  for (int queue = 0; queue < 10; ++queue) accept("q" + std::to_string(queue), 3 * 128);
  settle();
  ASSERT_EQ(answers_.size(), 30u);
  for (std::size_t i = 0; i < 30; ++i) {
    EXPECT_EQ(answers_[i], std::pair("q" + std::to_string(i % 10), std::size_t{128})) << i;
  }
}

TEST_F(EngineFairness, ManySmallAnswersCountLikeOneLargeAnswer) {
  for (int i = 0; i < 20; ++i) work("storm", 1'000);
  for (int i = 0; i < 100; ++i) work("calm", 1);
  accept("storm", 20'000);
  accept("calm", 100);
  ASSERT_TRUE(engine_->turn());
  EXPECT_EQ(std::ranges::count(answers_, std::pair(std::string("calm"), std::size_t{1})), 100);
  EXPECT_LE(handed_out(), 2 * 128u + 100);
}

TEST_F(EngineFairness, AnswersAreLimitedOnlyWhileWorkersOfOtherQueuesWait) {
  accept("storm", 5'000);
  settle();
  EXPECT_EQ(lease("storm", 1'000).size(), 1'000u);
  work("other", 1);
  EXPECT_EQ(lease("storm", 1'000).size(), 128u);
  EXPECT_EQ(lease("storm", 100).size(), 100u);
  advance(59s + 900ms);
  EXPECT_EQ(lease("storm", 1'000).size(), 128u);
  advance(100ms);  // the wait expires
  EXPECT_EQ(lease("storm", 1'000).size(), 128u) << "the other may be back in a moment";
  advance(1s);
  EXPECT_EQ(lease("storm", 1'000).size(), 1'000u);
}

TEST_F(EngineFairness, ALeaseFirstServesTheWaitingWorkersOfItsQueueOnly) {
  work("q", 1);
  work("q", 1);
  work("storm", 1'000);
  accept("q", 3);
  accept("storm", 1'000);
  const auto leased = engine_->lease({.queue = "q", .max = 10}).value();
  ASSERT_EQ(leased.size(), 1u);
  EXPECT_EQ(engine_->stats().counters.leased, 3u) << "two who waited, one who asked";
  settle();
  EXPECT_EQ(leased[0].task.id.value, TaskId{}.next().next().next().value) << "the third task";
}

// ---- while the memory is tended ----

/// Work takes time: each look at the clock takes 10 µs.
class TickingClock final : public Clock {
 public:
  explicit TickingClock(ManualClock& clock) : clock_(clock) {}
  MonotonicTime now() const noexcept override {
    if (ticks_) clock_.advance(10us);
    return clock_.now();
  }
  WallInstant wall_now() const noexcept override { return clock_.wall_now(); }
  bool wait(Doorbell& bell, std::optional<MonotonicTime> until) noexcept override {
    return clock_.wait(bell, until);
  }
  void tick() { ticks_ = true; }

 private:
  ManualClock& clock_;
  bool ticks_ = false;
};

TEST_F(EngineFairness, TasksThatBecomeDueDuringMemoryWorkAreHandedOutInTheSameTurn) {
  crash();
  TickingClock clock(clock_);
  memory_store_ = MemoryStore::open(*disk_).value();
  store_ = std::make_unique<FaultStore>(*memory_store_);
  engine_ = Engine::open(*store_, clock, {.max_loaded = 4'000}).value();
  // A backlog and workers that lease from it. Most of the backlog must move to its ready lane.
  ASSERT_TRUE(engine_->set_queue("storm", {.paused = true}));
  accept("storm", 5'000);
  for (int i = 0; i < 4; ++i) work("storm", 1'000);
  for (int i = 1; i <= 50; ++i) {
    accept("calm", 1, milliseconds{i});
    work("calm", 1);
  }
  ASSERT_TRUE(engine_->set_queue("storm", {}));
  clock.tick();
  const MonotonicTime start = clock_.now();
  ASSERT_TRUE(engine_->turn());
  const auto took = std::chrono::floor<milliseconds>(clock_.now() - start);
  ASSERT_GE(took, 10ms) << "to hand out, and to move";
  const auto calm = std::ranges::count(answers_, std::pair(std::string("calm"), std::size_t{1}));
  EXPECT_GE(calm, took / 3ms) << "all but those of the first steps and the last, in " << took / 1ms
                              << " ms";
}

// ---- commands ----

class EngineThreadFairness : public EngineFixture {
 protected:
  /// The engine's thread stands still until release().
  void start() {
    thread_ = std::make_unique<EngineThread>(
        OpenEngine{.store = nullptr, .engine = std::move(engine_)}, clock_);
    hold();
  }
  void hold() {
    std::promise<void> reached;
    std::future<void> is_held = reached.get_future();
    ASSERT_TRUE(thread_->post(
        [reached = std::move(reached), go = go_.get_future().share()](Engine&) mutable {
          reached.set_value();
          go.wait();
        }));
    is_held.wait();
  }
  void release() { std::exchange(go_, {}).set_value(); }
  static EngineThread::QueueOf of(std::string queue) {
    return [queue = std::move(queue)](const Engine& /*engine*/) { return queue; };
  }
  /// A command that takes a millisecond.
  void post(const std::string& queue, const std::string& what) {
    ASSERT_TRUE(thread_->post(
        [this, what](Engine& /*engine*/) {
          clock_.advance(1ms);
          ran_.push_back(what);
        },
        queue.empty() ? EngineThread::QueueOf() : of(queue)));
  }
  /// Everything that was posted has run when it returns.
  void finish() {
    thread_->stop();
    thread_.reset();
  }

  std::promise<void> go_;
  std::vector<std::string> ran_;  // by the engine's thread; read after finish()
  std::unique_ptr<EngineThread> thread_;
};

TEST_F(EngineThreadFairness, ACommandForAnotherQueueWaitsForASliceAndOneCommandOfTheFlood) {
  start();
  for (int i = 0; i < 200; ++i) post("storm", "storm");
  post("calm", "calm");
  post("", "none");
  release();
  finish();
  ASSERT_EQ(ran_.size(), 202u);
  const auto at = [this](const std::string& what) {
    return std::ranges::find(ran_, what) - ran_.begin();
  };
  const auto slice = EngineThread::kSlice / 1ms;
  EXPECT_EQ(at("calm"), slice + 1);
  EXPECT_EQ(at("none"), slice + 2);
}

TEST_F(EngineThreadFairness, CommandsWithTheirOwnLineDoNotWaitForCommandsWithoutAQueue) {
  start();
  for (int i = 0; i < 200; ++i) post("", "none");
  ASSERT_TRUE(thread_->post([this](Engine& /*engine*/) { ran_.emplace_back("own"); },
                            EngineThread::own_line()));
  release();
  finish();
  EXPECT_EQ(std::ranges::find(ran_, "own") - ran_.begin(), EngineThread::kSlice / 1ms + 1);
}

TEST_F(EngineThreadFairness, FindingTheQueuesOfNewCommandsTakesNoTimeFromWaitingCommands) {
  start();
  std::promise<std::size_t> ran_before;
  ASSERT_TRUE(thread_->post([&](Engine& engine) {
    ASSERT_TRUE(engine.schedule(request("calm", 20ms)));
    engine.lease_or_wait({.queue = "calm"}, 1min, [&](Result<std::vector<LeasedTask>> tasks) {
      ASSERT_EQ(tasks.value().size(), 1u);
      ran_before.set_value(ran_.size());
    });
  }));
  ASSERT_TRUE(thread_->post([this](Engine& /*engine*/) {
    clock_.advance(1ms);
    ran_.emplace_back("first");
    ASSERT_TRUE(thread_->post([](Engine& /*later*/) {},
                              [this](const Engine& /*later*/) {
                                clock_.advance(30ms);
                                return std::string("storm");
                              }));
  }));
  for (int i = 0; i < 100; ++i) post("storm", "storm");
  release();
  EXPECT_EQ(ran_before.get_future().get(), 2u) << "one in each slice";
  finish();
}

TEST_F(EngineThreadFairness, AWaitingWorkerIsServedBetweenTheCommandsOfAFlood) {
  start();
  std::promise<std::size_t> ran_before;
  ASSERT_TRUE(thread_->post([&](Engine& engine) {
    ASSERT_TRUE(engine.schedule(request("calm", 3ms)));
    engine.lease_or_wait({.queue = "calm"}, 1min, [&](Result<std::vector<LeasedTask>> tasks) {
      ASSERT_EQ(tasks.value().size(), 1u);
      ran_before.set_value(ran_.size());
    });
  }));
  for (int i = 0; i < 200; ++i) post("storm", "storm");
  release();
  EXPECT_LE(ran_before.get_future().get(), 4u) << "three milliseconds of them, and one";
  finish();
}

TEST_F(EngineThreadFairness, CommandsOfAQueueAndCommandsWithoutAQueueKeepTheirOrder) {
  start();
  std::vector<std::string> a;
  std::vector<std::string> none;
  for (int i = 0; i < 30; ++i) {
    post("a", a.emplace_back("a" + std::to_string(i)));
    post("b", "b");
    if (i % 3 == 0) post("", none.emplace_back("none" + std::to_string(i)));
  }
  release();
  finish();
  const auto only = [this](char first) {
    std::vector<std::string> some;
    std::ranges::copy_if(ran_, std::back_inserter(some),
                         [first](const std::string& what) { return what.front() == first; });
    return some;
  };
  EXPECT_EQ(only('a'), a);
  EXPECT_EQ(only('n'), none);
  EXPECT_EQ(only('b').size(), 30u);
}

TEST_F(EngineThreadFairness, CommandsThatWaitForTheirTurnCountAsWaiting) {
  start();
  constexpr std::size_t kFirstSlice = EngineThread::kSlice / 1ms;
  std::array<std::promise<void>, 2> reached;
  std::array<std::promise<void>, 2> go;
  const auto post_stop = [&](std::size_t i) {
    ASSERT_TRUE(thread_->post(
        [&reached, &go, i](Engine& /*engine*/) {
          reached[i].set_value();
          go[i].get_future().wait();
        },
        of("storm")));
  };
  const auto post_more = [this] {
    std::size_t posted = 0;
    while (thread_->post([](Engine&) {}, of("storm"))) ++posted;
    return posted;
  };
  post_stop(0);
  for (std::size_t i = 0; i < kFirstSlice; ++i) post("storm", "storm");
  post_stop(1);
  EXPECT_EQ(post_more(), EngineThread::kMaxCommands - 1 - kFirstSlice - 2);
  release();
  reached[0].get_future().wait();
  EXPECT_EQ(post_more(), 1u) << "for the one that held the slice before";
  go[0].set_value();
  reached[1].get_future().wait();
  EXPECT_EQ(post_more(), kFirstSlice + 1) << "as many as the slice has run";
  go[1].set_value();
  finish();
}

}  // namespace
}  // namespace detent

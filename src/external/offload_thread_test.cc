#include "external/offload_thread.h"

#include <gtest/gtest.h>

#include <future>
#include <string>
#include <utility>

#include "engine/testing/engine_fixture.h"
#include "external/far_tasks_rig.h"

namespace detent {
namespace {

using test::Fault;

/// Both threads sleep whenever a test reads their data.
class OffloadThreadTest : public EngineFixture {
 public:
  ~OffloadThreadTest() override { stop(); }

 protected:
  void start() {
    engine_thread_ = std::make_unique<EngineThread>(
        OpenEngine{.store = nullptr, .engine = std::move(engine_)}, clock_);
    auto external = std::make_unique<test::FakeExternal>();
    external_ = external.get();
    if (is_down_) break_external();
    offload_ = std::make_unique<OffloadThread>(
        *engine_thread_, std::move(external), clock_,
        FarTasksOptions{.near = 1h, .far = 2h, .interval = 1min, .batch = 2},
        OffloadEvents{.on_failed = [this](const Error&) { ++failed_; },
                      .on_recovered = [this] { ++recovered_; },
                      .on_damaged = [this](const Error&) { ++damaged_; },
                      .on_lost = [this](const Error&) { ++lost_; },
                      .on_loss_ended = [this] { ++loss_ended_; }});
    rest();
  }
  void stop() {
    if (offload_) offload_->stop();
    if (engine_thread_) engine_thread_->stop();
  }
  void rest() { clock_.await_waiters(2); }
  void pass(std::chrono::milliseconds time) {
    clock_.advance(time);
    rest();
  }
  void break_external() {
    external_->next_fault = [] { return Fault::before; };
  }
  void mend_external() {
    external_->next_fault = [] { return Fault::none; };
  }
  /// Runs `look` on the engine's thread and returns its result.
  template <class Look>
  auto on_engine(Look look) {
    std::promise<std::invoke_result_t<Look, Engine&>> promise;
    auto answer = promise.get_future();
    EXPECT_TRUE(engine_thread_->post([&](Engine& engine) { promise.set_value(look(engine)); }));
    return answer.get();
  }
  std::size_t ready_count() {
    return on_engine(
        [](Engine& engine) { return engine.lease({.queue = "q", .max = 99}).value().size(); });
  }
  bool is_here(TaskId id) {
    return on_engine([id](Engine& engine) { return engine.get(id).has_value(); });
  }

  int failed_ = 0;
  int recovered_ = 0;
  int damaged_ = 0;
  int lost_ = 0;
  int loss_ended_ = 0;
  bool is_down_ = false;
  std::unique_ptr<EngineThread> engine_thread_;
  test::FakeExternal* external_ = nullptr;
  std::unique_ptr<OffloadThread> offload_;
};

TEST_F(OffloadThreadTest, FarTasksGoAndComeBackWhenTheyAreNear) {
  for (int i = 0; i < 5; ++i) schedule("q", 30h);
  const TaskId near = schedule("q", 90min);
  start();
  EXPECT_EQ(external_->entries.size(), 5u) << "it must continue with the next batch";
  EXPECT_EQ(offload_->stats().away, 5u);
  EXPECT_EQ(offload_->stats().moves.handed_over, 5u);
  EXPECT_TRUE(is_here(near));
  rest();
  pass(29h);
  EXPECT_EQ(offload_->stats().away, 0u);
  EXPECT_EQ(offload_->stats().moves.handed_back, 5u);
  pass(1h);
  EXPECT_EQ(ready_count(), 6u);
}

TEST_F(OffloadThreadTest, ACommandFindsAndFetchesATaskThatIsAway) {
  const TaskId id = schedule("q", 30h);
  start();
  EXPECT_FALSE(is_here(id));
  std::promise<std::pair<bool, bool>> promise;
  auto answer = promise.get_future();
  ASSERT_TRUE(offload_->post([&](FarTasks& far) {
    const bool is_found = far.find(id).value().has_value();
    promise.set_value({is_found, far.fetch(id).value()});
  }));
  EXPECT_EQ(answer.get(), std::pair(true, true));
  EXPECT_TRUE(is_here(id));
}

TEST_F(OffloadThreadTest, WhileTheOtherSystemIsDownTasksStayAndTheFailureIsReportedOnce) {
  const TaskId far = schedule("q", 30h);
  schedule("q", 10min);
  is_down_ = true;
  start();
  for (int i = 0; i < 10; ++i) pass(1min);
  EXPECT_EQ(ready_count(), 1u) << "near tasks must still become ready";
  EXPECT_TRUE(is_here(far));
  EXPECT_EQ(failed_, 1);
  EXPECT_EQ(recovered_, 0);
  EXPECT_GT(offload_->stats().moves.errors, 1u);
  EXPECT_EQ(offload_->stats().moves.last_error->message, "planned fault");
  rest();
  mend_external();
  pass(1min);
  EXPECT_EQ(recovered_, 1);
  EXPECT_EQ(offload_->stats().away, 1u);
  EXPECT_EQ(offload_->stats().moves.failures_in_row, 0u);
}

TEST_F(OffloadThreadTest, AFailureWithAnotherCodeIsReportedOnceToo) {
  const TaskId far = schedule("q", 30h);
  is_down_ = true;
  start();
  EXPECT_EQ(failed_, 1);
  external_->error = {ErrorCode::invalid_argument, "planned fault", ""};
  for (int i = 0; i < 5; ++i) pass(1min);
  EXPECT_EQ(failed_, 2);
  EXPECT_EQ(recovered_, 0);
  EXPECT_TRUE(is_here(far));
  mend_external();
  pass(1min);
  EXPECT_EQ(recovered_, 1);
  EXPECT_FALSE(is_here(far));
}

TEST_F(OffloadThreadTest, TheCountOfAwayTasksIsFromTheLastSuccessfulStep) {
  schedule("q", 30h);
  start();
  break_external();
  pass(1min);
  EXPECT_EQ(offload_->stats().away, 1u);
}

TEST_F(OffloadThreadTest, ADamagedRecordIsReported) {
  start();
  external_->damaged_next.push_back({ErrorCode::data_loss, "spoilt", ""});
  pass(1min);
  EXPECT_EQ(damaged_, 1);
  EXPECT_EQ(offload_->stats().moves.damaged, 1u);
}

TEST_F(OffloadThreadTest, ALossIsReportedOnceEvenIfACommandNoticedItFirst) {
  const TaskId id = schedule("q", 30h);
  start();
  external_->entries.clear();
  external_->stamped = 0;
  std::promise<bool> found;
  ASSERT_TRUE(offload_->post([&](FarTasks& far) { found.set_value(far.find(id).has_value()); }));
  EXPECT_FALSE(found.get_future().get());
  rest();
  EXPECT_EQ(lost_, 0);
  for (int i = 0; i < 3; ++i) pass(1min);
  EXPECT_EQ(lost_, 1);
  EXPECT_EQ(failed_, 0);
  EXPECT_TRUE(offload_->stats().moves.lost);
  external_->stamped = 1;
  pass(1min);
  EXPECT_EQ(loss_ended_, 1);
  EXPECT_FALSE(offload_->stats().moves.lost);
}

TEST_F(OffloadThreadTest, TooManyCommandsAreRefusedAndAStopDropsWaitingCommands) {
  start();
  std::promise<void> entered;
  std::promise<void> leave;
  ASSERT_TRUE(offload_->post([&](FarTasks&) {
    entered.set_value();
    leave.get_future().wait();
  }));
  entered.get_future().wait();
  std::atomic<int> run = 0;  // changed by the thread
  for (std::size_t i = 0; i < OffloadThread::kMaxCommands; ++i) {
    ASSERT_TRUE(offload_->post([&run](FarTasks&) { ++run; }));
  }
  EXPECT_FALSE(offload_->post([](FarTasks&) {}));
  std::thread stopping([this] { offload_->stop(); });
  while (offload_->post([](FarTasks&) {})) {
  }
  leave.set_value();
  stopping.join();
  EXPECT_FALSE(offload_->post([](FarTasks&) {}));
  offload_->stop();
}

TEST_F(OffloadThreadTest, StepsComeBetweenManyCommands) {
  const TaskId id = schedule("q", 30h);
  start();
  for (int i = 0; i < 100; ++i) ASSERT_TRUE(offload_->post([](FarTasks&) {}));
  pass(29h);
  EXPECT_TRUE(is_here(id));
}

}  // namespace
}  // namespace detent

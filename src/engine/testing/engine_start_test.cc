// The order of the overdue tasks at a start, if there are more than open() reads.
#include <algorithm>

#include "base/rng.h"
#include "engine/testing/engine_fixture.h"

namespace detent {
namespace {

class EngineStart : public EngineFixture {
 protected:
  static constexpr int kOverdue = 45'000;

  EngineStart() {
    options_ = {.max_loaded = 130'000};
    crash_and_open();
    Rng rng(7);
    for (int i = 0; i < kOverdue; ++i) {
      ScheduleRequest asked = request("q", 1s);
      asked.rules.priority = rng.below(1'000);
      order_.emplace_back(asked.rules.priority, engine_->schedule(asked).value().task.id);
    }
    std::ranges::sort(order_);
    EXPECT_TRUE(engine_->turn());
    clock_.advance(1min);
    crash_and_open();
  }
  /// Starts the wait of a worker for at most `count` tasks.
  void wait_for(std::size_t count) {
    engine_->lease_or_wait({.queue = "q", .max = count}, 1h,
                           [this](Result<std::vector<LeasedTask>> tasks) {
                             for (LeasedTask& task : tasks.value()) got_.push_back(task.task.id);
                           });
  }

  std::vector<std::pair<std::uint32_t, TaskId>> order_;
  std::vector<TaskId> got_;
};

TEST_F(EngineStart, NoTaskIsHandedOutBeforeAllOverdueTasksAreInOrder) {
  wait_for(2);
  EXPECT_TRUE(engine_->lease({.queue = "q", .max = 100}).value().empty());
  EXPECT_EQ(engine_->next_ready({.queue = "q"}).value(), std::nullopt);
  ASSERT_TRUE(engine_->turn());
  EXPECT_TRUE(got_.empty());
  std::size_t next = 2;
  for (int turns = 0; next < order_.size() && turns < 100'000; ++turns) {
    const auto leased = engine_->lease({.queue = "q", .max = 500}).value();
    for (const LeasedTask& task : leased) {
      ASSERT_EQ(task.task.id, order_[next++].second);
      ASSERT_EQ(engine_->complete(task.lease), LeaseOutcome::done);
    }
    ASSERT_TRUE(engine_->turn());
  }
  EXPECT_EQ(next, order_.size());
  EXPECT_EQ(got_, (std::vector{order_[0].second, order_[1].second}));
  settle();
  engine_->check_invariants();
}

TEST_F(EngineStart, TheDelivererWaitsForTheOverdueTasksToo) {
  ASSERT_TRUE(engine_->set_queue("q", {.webhook = QueueWebhook{.url = "https://a"}}));
  EXPECT_TRUE(engine_->lease_deliveries({.max = 10}).value().empty());
  settle();
  const std::vector<Delivery> deliveries = engine_->lease_deliveries({.max = 10}).value();
  ASSERT_FALSE(deliveries.empty());
  EXPECT_EQ(deliveries[0].leased.task.id, order_[0].second);
}

TEST_F(EngineStart, TheHoldOfHandOutsEndsAfterALimitedTime) {
  wait_for(1);
  ASSERT_TRUE(engine_->turn());
  EXPECT_TRUE(got_.empty());
  clock_.advance(kMostHold);
  ASSERT_TRUE(engine_->turn());
  EXPECT_EQ(got_.size(), 1u);
  EXPECT_EQ(engine_->lease({.queue = "q", .max = 10}).value().size(), 10u);
}

// If a queue has more overdue tasks than memory has room for, the rest is loaded later.
TEST_F(EngineStart, OverdueTasksWithoutRoomInMemoryDelayNoWorker) {
  options_ = {.max_loaded = 400};
  open_on_a_new_disk();
  for (int i = 0; i < 5'000; ++i) ASSERT_TRUE(engine_->schedule(request("flood", 1s)));
  ASSERT_TRUE(engine_->schedule(request("calm", 2s)));
  ASSERT_TRUE(engine_->turn());
  clock_.advance(1min);
  crash_and_open();
  ASSERT_TRUE(engine_->turn());
  EXPECT_EQ(engine_->lease({.queue = "calm", .max = 1}).value().size(), 1u);
  EXPECT_LT(engine_->queue("flood").value().stats.ready, 5'000u) << "or this shows nothing";
}

TEST_F(EngineStart, TasksAcceptedDuringTheHoldAreInOrder) {
  ScheduleRequest asked = request("q", 0ms);
  asked.rules.priority = 0;
  std::vector<TaskId> urgent;
  for (int i = 0; i < 10; ++i) urgent.push_back(engine_->schedule(asked).value().task.id);
  settle();
  std::vector<TaskId> expected;
  for (const auto& [priority, id] : order_) {
    if (priority == 0) expected.push_back(id);
  }
  expected.insert(expected.end(), urgent.begin(), urgent.end());
  EXPECT_EQ(lease_ids("q", expected.size()), expected);
}

}  // namespace
}  // namespace detent

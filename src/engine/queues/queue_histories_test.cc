#include "engine/queues/queue_histories.h"

#include <gtest/gtest.h>

#include <list>

#include "engine/testing/engine_fixture.h"

namespace detent {
namespace {

using namespace std::chrono_literals;
using std::chrono::milliseconds;

constexpr HistoryRange kHour{.span = 1h, .step = 10s};

class QueueHistoriesTest : public testing::Test {
 protected:
  void pass(milliseconds time) {
    now_ += time;
    histories_.set_now(now_);
  }
  void SetUp() override { pass(0ms); }

  Queue& queue(const std::string& name) { return queues_.emplace_back(name); }

  std::list<Queue> queues_;
  WallTime now_{std::chrono::hours{500'000}};
  QueueHistories histories_;
};

TEST_F(QueueHistoriesTest, CountsTheEventsOfEachStep) {
  Queue& mail = queue("mail");
  for (int step = 0; step < 4; ++step) {
    for (int i = 0; i < step; ++i) {
      histories_.count(mail, &TaskCounters::leased);
      histories_.note_lateness(mail, milliseconds{10 * (i + 1)});
    }
    histories_.count(mail, &TaskCounters::dead);
    histories_.count(mail, &TaskCounters::cancelled);  // which no history shows
    pass(10s);
  }
  const QueueHistory history = histories_.of(mail, kHour);
  EXPECT_EQ(history.queue, "mail");
  EXPECT_EQ(history.since, now_ - 40s);
  ASSERT_EQ(history.points.size(), 4u);
  for (std::size_t step = 0; step < 4; ++step) {
    const QueuePoint& point = history.points[step];
    EXPECT_EQ(point.at, history.since + 10s * (step + 1));
    EXPECT_EQ(point.leased, step);
    EXPECT_EQ(point.died, 1u);
  }
  EXPECT_FALSE(history.points[0].lateness);
  EXPECT_EQ(history.points[3].lateness, (HandOutLateness{.mean = 20ms, .max = 30ms}));
  const QueueHistory joined = histories_.of(mail, {.span = 1h, .step = 20s});
  ASSERT_EQ(joined.points.size(), 2u);
  EXPECT_EQ(joined.points[1].leased, 5u);
  EXPECT_EQ(joined.points[1].lateness->max, 30ms);
}

TEST_F(QueueHistoriesTest, StepsBeginAtMultiplesOfTheirLength) {
  pass(3s);
  Queue& mail = queue("mail");
  histories_.count(mail, &TaskCounters::fired);
  pass(6s);
  EXPECT_TRUE(histories_.of(mail, kHour).points.empty()) << "the step is not over";
  pass(1s);
  const QueueHistory history = histories_.of(mail, kHour);
  ASSERT_EQ(history.points.size(), 1u);
  EXPECT_EQ(history.points[0].at, now_);
  EXPECT_EQ(history.points[0].fired, 1u);
}

TEST_F(QueueHistoriesTest, KeepsAnHourInFineStepsAndADayInCoarseSteps) {
  Queue& mail = queue("mail");
  for (int minute = 0; minute < 30 * 60; ++minute) {
    histories_.count(mail, &TaskCounters::completed);
    pass(1min);
  }
  const QueueHistory hour = histories_.of(mail, kHour);
  ASSERT_EQ(hour.points.size(), 360u);
  std::uint64_t sum = 0;
  for (const QueuePoint& point : hour.points) sum += point.completed;
  EXPECT_EQ(sum, 60u);
  const QueueHistory day = histories_.of(mail, {.span = 24h, .step = 5min});
  ASSERT_EQ(day.points.size(), 288u);
  for (const QueuePoint& point : day.points) EXPECT_EQ(point.completed, 5u);
}

TEST_F(QueueHistoriesTest, TheFirstQueuesWithEventsHaveHistories) {
  Queue& idle = queue("idle");
  EXPECT_TRUE(histories_.of(idle, kHour).points.empty());
  for (std::size_t i = 1; i <= QueueHistories::kMostQueues; ++i) {
    histories_.count(queue("q" + std::to_string(i)), &TaskCounters::fired);
  }
  Queue& last = queues_.back();  // found no room
  pass(10s);
  EXPECT_EQ(histories_.of(queues_.front(), kHour).points.size(), 1u);
  const QueueHistory begun = histories_.of(last, kHour);
  EXPECT_TRUE(begun.points.empty());
  EXPECT_EQ(begun.since, now_);
  histories_.count(last, &TaskCounters::fired);
  pass(10s);
  EXPECT_EQ(histories_.of(last, kHour).points.back().fired, 1u);
}

TEST_F(QueueHistoriesTest, ANewHistoryReplacesTheOneThatNobodyAskedForForLongest) {
  for (std::size_t i = 0; i < QueueHistories::kMostQueues; ++i) {
    histories_.count(queue("q" + std::to_string(i)), &TaskCounters::fired);
    pass(5min);
  }
  Queue& first = queues_.front();
  histories_.of(first, kHour);
  Queue& more = queue("more");
  histories_.of(more, kHour);
  Queue& second = *std::next(queues_.begin());  // its last event is the oldest
  Queue& third = *std::next(queues_.begin(), 2);
  EXPECT_LT(histories_.of(third, kHour).since, now_);
  EXPECT_LT(histories_.of(first, kHour).since, now_);
  EXPECT_EQ(histories_.of(second, kHour).since, now_) << "it begins again";
}

TEST_F(QueueHistoriesTest, StepsInTheFutureEndWhenTheClockIsPutBack) {
  Queue& mail = queue("mail");
  histories_.count(mail, &TaskCounters::fired);
  pass(-1h);
  histories_.count(mail, &TaskCounters::failed);
  pass(10s);
  for (const QueuePoint& point : histories_.of(mail, kHour).points) EXPECT_EQ(point.fired, 0u);
  pass(2h);
  EXPECT_EQ(histories_.of(mail, kHour).points.size(), 360u);
}

class EngineQueueHistory : public EngineFixture {};

TEST_F(EngineQueueHistory, HasTheEventsOfTheQueueAndTheirLateness) {
  schedule("mail", 0ms);
  schedule("mail", 0ms);
  schedule("other", 0ms);
  advance(2s);
  complete(lease("mail")[0].lease);
  fail(lease("mail")[0].lease, 1h);
  advance(20s);
  const QueueHistory history = engine_->queue_history("mail", kHour).value();
  QueuePoint sum;
  milliseconds latest{0};
  for (const QueuePoint& point : history.points) {
    sum.accepted += point.accepted;
    sum.fired += point.fired;
    sum.leased += point.leased;
    sum.completed += point.completed;
    sum.failed += point.failed;
    if (point.lateness) latest = std::max(latest, point.lateness->max);
  }
  EXPECT_EQ(sum.accepted, 2u);
  EXPECT_EQ(sum.fired, 2u);
  EXPECT_EQ(sum.leased, 2u);
  EXPECT_EQ(sum.completed, 1u);
  EXPECT_EQ(sum.failed, 1u);
  EXPECT_GE(latest, 2s);
  EXPECT_EQ(engine_->queue_history("none", kHour).error().code, ErrorCode::not_found);
}

}  // namespace
}  // namespace detent

// The counters of single queues: which queues have them, and that they never decrease.
#include "engine/records/task_news.h"

#include <list>
#include <set>
#include <string>

#include "engine/testing/engine_fixture.h"
#include "task/retry.h"

namespace detent {
namespace {

class TaskNewsTest : public EngineFixture {
 protected:
  TaskCounters of(const std::string& queue) { return engine_->stats(1).by_queue.at(queue); }
};

TEST_F(TaskNewsTest, CountsEachEventForTheQueueAndForAllQueues) {
  for (int i = 0; i < 4; ++i) schedule("a", 0ms);
  schedule("a", 1h);
  schedule("b", 0ms);
  complete(lease("a")[0].lease);
  fail(lease("a")[0].lease, 1h);
  lease("a");
  advance(kDefaultVisibilityTimeout + 1s);
  ASSERT_TRUE(engine_->cancel(schedule("a", 1h)));
  settle();
  EXPECT_EQ(purge_all("a"), 4u);
  const TaskCounters a = of("a");
  EXPECT_EQ(a.scheduled, 6u);
  EXPECT_EQ(a.fired, 4u);
  EXPECT_EQ(a.leased, 3u);
  EXPECT_EQ(a.completed, 1u);
  EXPECT_EQ(a.failed, 1u);
  EXPECT_EQ(a.leases_expired, 1u);
  EXPECT_EQ(a.cancelled, 5u);
  const TaskCounters b = of("b");
  EXPECT_EQ(b.scheduled, 1u);
  EXPECT_EQ(b.cancelled, 0u);
  const TaskCounters all = engine_->stats(0).counters;
  EXPECT_EQ(all.scheduled, a.scheduled + b.scheduled);
  EXPECT_EQ(all.fired, a.fired + b.fired);
  EXPECT_EQ(all.cancelled, a.cancelled + b.cancelled);
}

TEST_F(TaskNewsTest, TheFirstQueuesHaveTheirOwnCountersAndAllFurtherQueuesShareOne) {
  for (std::size_t i = 0; i < TaskNews::kMostCounted + 5; ++i) {
    schedule("q" + std::to_string(i), 1h);
  }
  schedule("q0", 1h);
  const std::map<std::string, TaskCounters> counted = engine_->stats(1).by_queue;
  EXPECT_EQ(counted.size(), TaskNews::kMostCounted + 1);
  EXPECT_EQ(counted.at("q0").scheduled, 2u);
  EXPECT_EQ(counted.at("other").scheduled, 5u);
}

// The pages of several shards are added up: together they have no more labels than one page.
TEST_F(TaskNewsTest, EnginesThatShareTheirMetricsHaveCountersForTheSameQueues) {
  CountedQueues counted;
  std::list<Queue> queues;
  const EngineTime time(clock_);
  TaskNews first(time, nullptr, &counted);
  TaskNews second(time, nullptr, &counted);
  for (std::size_t i = 0; i < TaskNews::kMostCounted; ++i) {
    TaskNews& news = i % 2 == 0 ? first : second;
    news.count(queues.emplace_back("q" + std::to_string(i)), &TaskCounters::fired);
  }
  for (const char* name : {"late", "q0", "q1"}) {
    first.count(queues.emplace_back(name), &TaskCounters::fired);
    second.count(queues.emplace_back(name), &TaskCounters::fired);
  }
  std::set<std::string> labels;
  for (const TaskNews* const news : {&first, &second}) {
    for (const auto& [queue, counts] : news->by_queue()) labels.insert(queue);
  }
  EXPECT_EQ(labels.size(), TaskNews::kMostCounted + 1);
  EXPECT_EQ(first.by_queue().at("q1").fired, 1u);
  EXPECT_EQ(second.by_queue().at("other").fired, 1u);
}

// A scraper would take a lower value for a restart, and count the whole value again.
TEST_F(TaskNewsTest, TheCountersOfARemovedQueueStay) {
  schedule("a", 1h);
  purge_all("a");
  ASSERT_TRUE(engine_->remove_queue("a"));
  settle();
  EXPECT_EQ(of("a").scheduled, 1u);
  schedule("a", 1h);
  EXPECT_EQ(of("a").scheduled, 2u);
}

TEST_F(TaskNewsTest, AQueueNamedOtherIsAmongTheOthers) {
  schedule("other", 1h);
  for (std::size_t i = 0; i < TaskNews::kMostCounted; ++i) {
    schedule("q" + std::to_string(i), 1h);
  }
  schedule("more", 1h);
  EXPECT_EQ(engine_->stats(1).by_queue.size(), TaskNews::kMostCounted + 1);
  EXPECT_EQ(of("other").scheduled, 2u);
}

}  // namespace
}  // namespace detent

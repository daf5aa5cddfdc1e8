// A wait is in the lists of its queues, once in each, until it is answered.
#include "engine/hand_out/waiting_workers.h"

#include <gtest/gtest.h>

#include <utility>
#include <vector>

namespace detent {
namespace {

class WaitingWorkersTest : public ::testing::Test {
 protected:
  WaitId wait(std::vector<Queue*> queues, Tick until) {
    const WaitId id = waits_.next_name();
    waits_.add({.id = id, .queues = std::move(queues), .request = {.queue = "a"}}, until);
    waits_.check_invariants();
    return id;
  }

  Queue a_{"a"};
  Queue b_{"b"};
  WaitingWorkers waits_{100};
};

TEST_F(WaitingWorkersTest, AWaitStandsInTheListsOfItsQueuesInTheOrderOfComing) {
  const WaitId first = wait({&a_, &b_}, 200);
  const WaitId second = wait({&a_}, 200);
  EXPECT_EQ(a_.waits.begin()->first, first);
  EXPECT_EQ(a_.waits.rbegin()->first, second);
  EXPECT_EQ(b_.waits.size(), 1u);
  const WorkerWait taken = waits_.take(*waits_.find(first));
  EXPECT_EQ(taken.queues, (std::vector<Queue*>{&a_, &b_}));
  EXPECT_EQ(taken.request.queue, "a");
  EXPECT_EQ(a_.waits.size(), 1u);
  EXPECT_TRUE(b_.waits.empty());
  EXPECT_EQ(waits_.find(first), nullptr);
  EXPECT_EQ(waits_.size(), 1u);
  waits_.check_invariants();
}

TEST_F(WaitingWorkersTest, AQueueThatIsNamedTwiceIsOneOfItsQueues) {
  const WaitId id = wait({&a_, &b_, &a_}, 200);
  EXPECT_EQ(waits_.take(*waits_.find(id)).queues, (std::vector<Queue*>{&a_, &b_}));
}

TEST_F(WaitingWorkersTest, AnExpiredWaitIsReturnedOnce) {
  const WaitId late = wait({&a_}, 300);
  const WaitId early = wait({&a_}, 200);
  ASSERT_TRUE(waits_.next_wakeup());
  EXPECT_LE(*waits_.next_wakeup(), 200u);
  EXPECT_TRUE(waits_.expired(199, 10).empty());
  EXPECT_EQ(waits_.expired(200, 10), std::vector<WaitId>{early});
  waits_.take(*waits_.find(early));
  EXPECT_EQ(waits_.expired(300, 10), std::vector<WaitId>{late});
}

TEST_F(WaitingWorkersTest, ATakenWaitDoesNotExpire) {
  waits_.take(*waits_.find(wait({&a_}, 200)));
  EXPECT_TRUE(waits_.expired(1'000, 10).empty());
  EXPECT_TRUE(waits_.all().empty());
  EXPECT_FALSE(waits_.next_wakeup());
}

TEST_F(WaitingWorkersTest, IdsContinueAfterTheGivenId) {
  waits_.begin_names(std::uint64_t{7} << 32);
  const WaitId first = wait({&a_}, 200);
  EXPECT_GT(first, std::uint64_t{7} << 32);
  EXPECT_GT(waits_.next_name(), first);
  EXPECT_EQ(waits_.all(), std::vector<WaitId>{first});
}

}  // namespace
}  // namespace detent

// Tests the checker of kill_test.cc with correct histories and with histories that violate the
// contract.
#include "tests/durability/delivery_history.h"

#include <gtest/gtest.h>

#include <map>

namespace detent {
namespace {

using namespace std::chrono_literals;  // NOLINT(google-build-using-namespace): literals only

constexpr WallTime kStart{1h};
constexpr std::uint64_t kId = 256;

class DeliveryHistoryTest : public ::testing::Test {
 protected:
  DeliveryHistoryTest() { history_.accepted(number_, kId, kStart); }

  /// Returns the task as a worker gets it.
  client::LeasedTask leased(std::uint32_t attempt, const std::string& lease) const {
    client::LeasedTask task{.id = kId, .lease = lease, .attempt = attempt};
    task.payload.data = std::to_string(number_);
    return task;
  }
  void deliver(std::uint32_t attempt, const std::string& lease) {
    history_.delivered(leased(attempt, lease), kStart);
  }
  void complete() {
    history_.asked_complete(number_);
    history_.completed(number_, client::LeaseStatus::done);
  }
  void fail(const std::string& lease, client::LeaseStatus outcome = client::LeaseStatus::done) {
    history_.asked_fail(number_, kStart);
    history_.failed(number_, lease, outcome);
  }
  /// Looks the task up as after a restart. nullopt: the server does not have it.
  void look(std::optional<client::Task> is) {
    const auto look_up = [&is](std::uint64_t) -> ClientResult<client::Task> {
      if (is) return *is;
      return ClientError{.code = ClientError::Code::not_found};
    };
    history_.look(look_up, DeliveryHistory::Scope::all);
  }
  client::Task there(std::uint32_t attempts = 0,
                     client::TaskState state = client::TaskState::ready) const {
    client::Task view{.state = state};
    view.payload.data = std::to_string(number_);
    view.due_at = kStart;
    view.attempts = attempts;
    return view;
  }
  void expect_fine() const { EXPECT_EQ(history_.findings(), std::vector<std::string>{}); }
  void expect_found(const std::string& words) const {
    ASSERT_EQ(history_.findings().size(), 1u);
    EXPECT_NE(history_.findings().front().find(words), std::string::npos)
        << history_.findings().front();
  }

  DeliveryHistory history_;
  const DeliveryHistory::Number number_ = history_.asked(kStart, 2);
};

TEST_F(DeliveryHistoryTest, ALifeOfFailureKillAndCompletionIsFine) {
  deliver(1, "a");
  fail("a");
  deliver(2, "b");
  EXPECT_EQ(history_.killed(), std::vector<std::string>{"b"});
  look(there(1));
  deliver(2, "c");
  complete();
  look(std::nullopt);
  expect_fine();
  EXPECT_EQ(history_.duplicates(), 1u);
  EXPECT_EQ(history_.leases_at_kills(), 1u);
  EXPECT_EQ(history_.present(), 0u);
}

TEST_F(DeliveryHistoryTest, ALostTaskIsFound) {
  look(std::nullopt);
  expect_found("was lost");
}

TEST_F(DeliveryHistoryTest, ALostTaskIsFoundByACancelToo) {
  history_.asked_cancel(number_);
  history_.cancelled(number_, ClientError{.code = ClientError::Code::not_found});
  expect_found("was lost");
}

TEST_F(DeliveryHistoryTest, ACompletedTaskThatCameBackIsFound) {
  deliver(1, "a");
  complete();
  look(there());
  expect_found("came back");
}

TEST_F(DeliveryHistoryTest, ACancelledTaskThatIsHandedOutIsFound) {
  history_.asked_cancel(number_);
  history_.cancelled(number_, ClientResult<void>());
  deliver(1, "a");
  expect_found("came back");
}

TEST_F(DeliveryHistoryTest, ATaskHandedOutTwiceAtATimeIsFound) {
  deliver(1, "a");
  history_.delivered(leased(1, "b"), kStart);
  EXPECT_EQ(history_.findings().size(),
            2u);  // one for the two leases, one for the repeated attempt
}

TEST_F(DeliveryHistoryTest, AnAttemptAgainWithoutAKillIsFound) {
  deliver(1, "a");
  fail("a");
  deliver(1, "b");
  EXPECT_FALSE(history_.findings().empty());
}

TEST_F(DeliveryHistoryTest, ATaskUnderTwoIdsIsFound) {
  client::LeasedTask twin = leased(1, "a");
  twin.id = 512;
  history_.delivered(twin, kStart);
  expect_found("two ids");
}

TEST_F(DeliveryHistoryTest, AnEarlyHandOutIsFound) {
  history_.delivered(leased(1, "a"), kStart - 1ms);
  expect_found("early");
}

TEST_F(DeliveryHistoryTest, ATaskThatNobodyMadeIsFound) {
  client::LeasedTask stranger = leased(1, "a");
  stranger.payload.data = "77";
  history_.delivered(stranger, kStart);
  expect_found("nobody made");
}

TEST_F(DeliveryHistoryTest, ALostAttemptIsFound) {
  deliver(1, "a");
  fail("a");
  history_.killed();
  look(there(0));
  expect_found("number of attempts");
}

TEST_F(DeliveryHistoryTest, ADeadTaskThatLivesAgainIsFound) {
  deliver(1, "a");
  fail("a");
  deliver(2, "b");
  fail("b", client::LeaseStatus::dead);
  look(there(2, client::TaskState::ready));
  expect_found("lives again");
}

TEST_F(DeliveryHistoryTest, WhatWasNotAnsweredMayHaveHappenedOrNot) {
  deliver(1, "a");
  history_.asked_complete(number_);
  history_.killed();
  look(there());
  deliver(1, "b");
  history_.asked_fail(number_, kStart);
  history_.killed();
  look(there(1));
  history_.asked_cancel(number_);
  look(std::nullopt);
  expect_fine();
}

TEST_F(DeliveryHistoryTest, WhatWasSettledMustStayAsItWas) {
  deliver(1, "a");
  history_.asked_complete(number_);
  history_.killed();
  look(there());
  look(std::nullopt);
  expect_found("was lost");
}

}  // namespace
}  // namespace detent

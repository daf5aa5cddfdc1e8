#include "server/operate/delivery_log.h"

#include <gtest/gtest.h>

#include <chrono>
#include <sstream>
#include <string>

#include "base/log/log.h"
#include "base/testing/count_of.h"

namespace detent::server {
namespace {

using namespace std::chrono_literals;

class DeliveryLogTest : public ::testing::Test {
 public:
  DeliveryLogTest() { configure_log({.out = &out_}); }
  ~DeliveryLogTest() override { configure_log({}); }

 protected:
  void fail(const std::string& receiver, DeliveryEnd end = DeliveryEnd::not_reached,
            const std::string& cause = "connect: Connection refused") {
    log_.webhook_called({receiver, end, cause});
  }
  void succeed(const std::string& receiver) {
    log_.webhook_called({receiver, DeliveryEnd::delivered, ""});
  }
  int count(const std::string& words) const { return count_of(words, out_.str()); }

  ManualClock clock_;
  std::ostringstream out_;
  DeliveryLog log_{clock_};
};

TEST_F(DeliveryLogTest, AFailedReceiverHasALinePerMinuteAndOneAboutItsRecovery) {
  for (int second = 0; second < 121; ++second) {
    for (int call = 0; call < 10; ++call) fail("shop.example:8443");
    clock_.advance(1s);
  }
  const std::string line =
      "warning webhook calls to a receiver fail receiver=shop.example:8443 "
      "cause=\"connect: Connection refused\" failed_calls=";
  EXPECT_EQ(count(line + "1 action=\"check that the receiver runs"), 1) << out_.str();
  EXPECT_EQ(count(line + "601 since=1m action="), 1) << out_.str();
  EXPECT_EQ(count(line + "1201 since=2m action="), 1) << out_.str();
  EXPECT_EQ(count("\n"), 3) << out_.str();
  clock_.advance(9s);
  succeed("other.example");
  succeed("shop.example:8443");
  EXPECT_EQ(count("info webhook calls to a receiver succeed again receiver=shop.example:8443 "
                  "failed_calls=1210 after=130s\n"),
            1)
      << out_.str();
  succeed("shop.example:8443");
  EXPECT_EQ(count("\n"), 4) << out_.str();
}

TEST_F(DeliveryLogTest, AReceiverThatFailsNowAndThenHasNotRecovered) {
  for (int second = 0; second < 60; ++second) {
    fail("a.test", DeliveryEnd::refused_by_status, "HTTP 500");
    succeed("a.test");
    clock_.advance(1s);
  }
  EXPECT_EQ(count("\n"), 1) << out_.str();
  clock_.advance(9s);
  succeed("a.test");
  EXPECT_EQ(count("succeed again receiver=a.test failed_calls=60 after=69s\n"), 1) << out_.str();
  fail("a.test");
  fail("a.test");
  EXPECT_EQ(count("calls to a receiver fail "), 2) << "a minute has passed since the first line";
  clock_.advance(10s);
  succeed("a.test");
  fail("a.test");
  clock_.advance(10s);
  succeed("a.test");
  EXPECT_EQ(count("\n"), 4) << "the last failure was too soon to be logged" << out_.str();
}

TEST_F(DeliveryLogTest, EachKindOfFailureHasItsAction) {
  fail("a.test", DeliveryEnd::refused_by_status, "HTTP 500");
  fail("b.test", DeliveryEnd::overloaded, "HTTP 429");
  fail("c.test", DeliveryEnd::gone, "HTTP 410");
  fail("d.test", DeliveryEnd::not_allowed, "10.0.0.1 is not a public address");
  fail("e.test", DeliveryEnd::timed_out, "timed out after 15 s");
  for (const char* action : {"read the log of the receiver", "give the receiver more capacity",
                             "schedule no more tasks", "correct the cause", "check that"}) {
    EXPECT_EQ(count(std::string("failed_calls=1 action=\"") + action), 1) << action << out_.str();
  }
  log_.webhook_called({"f.test", DeliveryEnd::given_back, ""});
  EXPECT_EQ(count("f.test"), 0);
}

TEST_F(DeliveryLogTest, ManyReceiversShareALine) {
  for (int i = 0; i < 1'000; ++i) fail("host" + std::to_string(i) + ".test");
  EXPECT_EQ(count("\n"), static_cast<int>(DeliveryLog::kMostReceivers) + 1) << out_.str();
  EXPECT_EQ(count("receiver=\"other receivers\""), 1);
  clock_.advance(1min);
  for (int i = 0; i < 1'000; ++i) fail("host" + std::to_string(i) + ".test");
  EXPECT_EQ(count("\n"), 2 * (static_cast<int>(DeliveryLog::kMostReceivers) + 1));
  clock_.advance(DeliveryLog::kForgotten);
  fail("new.test");
  EXPECT_EQ(count("receiver=new.test"), 1) << "the others have been forgotten";
}

TEST_F(DeliveryLogTest, ASinkThatTurnsAgainAndAgainHasALinePerMinute) {
  const Error down{ErrorCode::unavailable, "no broker", ""};
  for (int second = 0; second < 60; ++second) {
    log_.sink_turned("bills", down);
    log_.sink_turned("bills", ok());
    clock_.advance(1s);
  }
  EXPECT_EQ(count("warning a sink does not accept tasks; its queues wait sink=bills "), 1);
  EXPECT_EQ(count("info a sink accepts tasks again sink=bills"), 1);
  EXPECT_EQ(count("\n"), 2) << out_.str();
}

}  // namespace
}  // namespace detent::server

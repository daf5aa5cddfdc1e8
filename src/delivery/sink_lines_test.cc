#include "delivery/sink_lines.h"

#include <gtest/gtest.h>

namespace detent {
namespace {

using namespace std::chrono_literals;
using Urls = std::vector<std::string>;

class SinkLinesTest : public ::testing::Test {
 public:
  SinkLinesTest() : lines_({{"a", nullptr}, {"b", nullptr}}, limits_, 1) {}

 protected:
  void begin(int count, const std::string& name = "a") {
    for (int i = 0; i < count; ++i) lines_.begin(name);
  }
  bool finish(SendEnd end, const std::string& name = "a") { return lines_.finish(name, end, now_); }
  Urls held() { return lines_.held(now_); }
  /// Sends one message, lets it fail, and returns the pause after it.
  MonotonicTimeline::duration fail() {
    begin(1);
    finish(SendEnd::failed);
    const auto next = lines_.next_wakeup(now_);
    return next ? *next - now_ : 0ns;
  }

  const SinkLimits limits_{.max_under_way = 4, .first_pause = 100ms, .longest_pause = 1'000ms};
  SinkLines lines_;
  MonotonicTime now_{1h};
};

TEST_F(SinkLinesTest, HoldsAFullSinkUntilHalfOfItsMessagesAreAnswered) {
  EXPECT_EQ(held(), Urls{});
  begin(3);
  EXPECT_EQ(held(), Urls{});
  begin(1);
  EXPECT_EQ(held(), Urls{"sink:a"});
  finish(SendEnd::delivered);
  EXPECT_EQ(held(), Urls{"sink:a"});
  finish(SendEnd::refused);
  EXPECT_EQ(held(), Urls{});
}

TEST_F(SinkLinesTest, AFullOrFailedSinkDelaysNoOther) {
  begin(4);
  EXPECT_EQ(held(), Urls{"sink:a"});
  begin(1, "b");
  finish(SendEnd::failed, "b");
  EXPECT_EQ(held(), (Urls{"sink:a", "sink:b"}));
}

TEST_F(SinkLinesTest, AFailureHoldsTheSinkUntilATrialIsAnswered) {
  begin(2);
  EXPECT_TRUE(finish(SendEnd::failed));
  EXPECT_FALSE(finish(SendEnd::failed));
  EXPECT_EQ(held(), Urls{"sink:a"});
  now_ = lines_.next_wakeup(now_).value();
  EXPECT_EQ(held(), Urls{});
  EXPECT_FALSE(lines_.next_wakeup(now_));
  begin(2);
  EXPECT_EQ(held(), Urls{"sink:a"});
  EXPECT_TRUE(finish(SendEnd::delivered));
  EXPECT_EQ(held(), Urls{});
  EXPECT_TRUE(lines_.stats().at("a").is_up);
}

TEST_F(SinkLinesTest, PausesDoubleUpToTheLongestAndAreShortAgainAfterASuccess) {
  for (const auto most : {100ms, 200ms, 400ms, 800ms, 1'000ms, 1'000ms}) {
    const auto pause = fail();
    EXPECT_LE(pause, most);
    EXPECT_GE(pause, most / 2);
    now_ += pause;
  }
  begin(1);
  finish(SendEnd::delivered);
  EXPECT_LE(fail(), 100ms);
}

TEST_F(SinkLinesTest, ManyThatFailTogetherCountAsOneFailure) {
  begin(4);
  for (int i = 0; i < 4; ++i) finish(SendEnd::failed);
  EXPECT_LE(lines_.next_wakeup(now_).value() - now_, 100ms);
}

TEST_F(SinkLinesTest, AMessageThatIsRefusedShowsThatTheSinkIsUp) {
  fail();
  begin(1);
  EXPECT_TRUE(finish(SendEnd::refused));
  EXPECT_EQ(held(), Urls{});
}

TEST_F(SinkLinesTest, CountsHowSendsEnded) {
  begin(4);
  finish(SendEnd::delivered);
  finish(SendEnd::refused);
  finish(SendEnd::failed);
  const SinkStats& stats = lines_.stats().at("a");
  for (const std::uint64_t count : stats.ended) EXPECT_EQ(count, 1u);
  EXPECT_EQ(stats.under_way, 1u);
  EXPECT_FALSE(stats.is_up);
}

}  // namespace
}  // namespace detent

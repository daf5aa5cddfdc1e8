#include "server/operate/thresholds.h"

#include <gtest/gtest.h>

#include "base/histogram.h"

namespace detent::server {
namespace {

using namespace std::chrono_literals;  // NOLINT(google-build-using-namespace): literals only

/// A sample one second after the previous sample.
class ThresholdWatchTest : public ::testing::Test {
 protected:
  std::vector<Alert> look(ThresholdWatch& watch, std::uint64_t ready, std::uint64_t dead = 0) {
    now_ += 1s;
    return watch.look(
        {.taken_at = now_,
         .at = kAt,
         .stats = {
             .epoch = 1, .all = {.ready = ready, .dead = dead}, .lateness = lateness_.snapshot()}});
  }
  static Alert alert(AlertFigure figure, AlertState state, std::uint64_t value,
                     std::uint64_t threshold) {
    return {.figure = figure, .state = state, .value = value, .threshold = threshold, .at = kAt};
  }

  static constexpr WallTime kAt{1'577'836'800'000ms};
  MonotonicTime now_{};
  Histogram lateness_;
};

TEST_F(ThresholdWatchTest, FiresOnceAboveAndRecoversAtFourFifths) {
  ThresholdWatch watch({.pending = 100});
  EXPECT_TRUE(look(watch, 100).empty());
  EXPECT_EQ(look(watch, 101),
            std::vector{alert(AlertFigure::pending, AlertState::firing, 101, 100)});
  for (const std::uint64_t ready : {500u, 100u, 81u, 101u}) EXPECT_TRUE(look(watch, ready).empty());
  EXPECT_EQ(look(watch, 80),
            std::vector{alert(AlertFigure::pending, AlertState::recovered, 80, 100)});
  EXPECT_TRUE(look(watch, 100).empty());
  EXPECT_EQ(look(watch, 102).size(), 1u);
}

TEST_F(ThresholdWatchTest, AThresholdOfNothingRecoversAtNothing) {
  ThresholdWatch watch({.dead = 0});
  EXPECT_TRUE(look(watch, 5, 0).empty());
  EXPECT_EQ(look(watch, 5, 1), std::vector{alert(AlertFigure::dead, AlertState::firing, 1, 0)});
  EXPECT_EQ(look(watch, 5, 0), std::vector{alert(AlertFigure::dead, AlertState::recovered, 0, 0)});
}

TEST_F(ThresholdWatchTest, LatenessIsThatOfTheLastMinute) {
  ThresholdWatch watch({.lateness = 1s});
  for (int i = 0; i < 200; ++i) lateness_.record(1ms);
  EXPECT_TRUE(look(watch, 0).empty()) << "what was before the first look does not count";
  for (int i = 0; i < 95; ++i) lateness_.record(1ms);
  for (int i = 0; i < 5; ++i) lateness_.record(5s);
  EXPECT_EQ(look(watch, 0),
            std::vector{alert(AlertFigure::lateness, AlertState::firing, 4'194, 1'000)});
  for (int second = 0; second < 59; ++second) {
    ASSERT_TRUE(look(watch, 0).empty()) << second;
  }
  EXPECT_EQ(look(watch, 0),
            std::vector{alert(AlertFigure::lateness, AlertState::recovered, 0, 1'000)});
}

TEST_F(ThresholdWatchTest, WhatMayBeBelowTheThresholdDoesNotFire) {
  ThresholdWatch watch({.lateness = 5s});
  look(watch, 0);
  lateness_.record(6s);  // in the bucket from 4.2 to 8.4 s
  EXPECT_TRUE(look(watch, 0).empty());
  lateness_.record(9s);
  EXPECT_EQ(look(watch, 0).size(), 1u);
}

TEST_F(ThresholdWatchTest, AStoreThatHasFailedIsToldWhateverTheThresholdsAre) {
  ThresholdWatch watch({});
  const auto see = [&](bool is_stopped) {
    now_ += 1s;
    return watch.look({.taken_at = now_, .at = kAt, .stats = {.is_stopped = is_stopped}});
  };
  EXPECT_TRUE(see(false).empty());
  EXPECT_EQ(see(true), std::vector{alert(AlertFigure::store, AlertState::firing, 1, 0)});
  EXPECT_TRUE(see(true).empty());
  EXPECT_EQ(see(false), std::vector{alert(AlertFigure::store, AlertState::recovered, 0, 0)});
}

TEST_F(ThresholdWatchTest, ADiskThatIsNearlyFullIsToldWhateverTheThresholdsAre) {
  ThresholdWatch watch({});
  const auto see = [&](bool refuses_tasks) {
    now_ += 1s;
    return watch.look({.taken_at = now_, .at = kAt, .stats = {.refuses_tasks = refuses_tasks}});
  };
  EXPECT_EQ(see(true), std::vector{alert(AlertFigure::disk, AlertState::firing, 1, 0)});
  EXPECT_TRUE(see(true).empty());
  EXPECT_EQ(see(false), std::vector{alert(AlertFigure::disk, AlertState::recovered, 0, 0)});
}

TEST_F(ThresholdWatchTest, FiguresWithoutAThresholdAreNotWatchedAndOthersDoNotMeet) {
  ThresholdWatch none({});
  EXPECT_TRUE(look(none, 1'000'000, 1'000'000).empty());
  ThresholdWatch watch({.pending = 10, .dead = 20});
  EXPECT_EQ(look(watch, 11, 21).size(), 2u);
  EXPECT_EQ(look(watch, 1, 21).size(), 1u);
}

TEST(Alert, IsAnEventThatSaysWhatItIs) {
  const Alert alert{.figure = AlertFigure::lateness,
                    .value = 2'500,
                    .threshold = 1'000,
                    .at = WallTime{1'577'836'800'000ms}};
  EXPECT_EQ(
      render_alert(alert),
      R"json({"type":"alert.firing","timestamp":"2020-01-01T00:00:00.000Z","data":)json"
      R"json({"alert":"lateness","unit":"ms","value":2500,"threshold":1000,)json"
      R"json("text":"1 in 100 tasks fires more than 2500 ms late (the threshold is 1000)"}})json");
  EXPECT_EQ(text_of({.state = AlertState::recovered, .value = 80, .threshold = 100}),
            "recovered: 80 tasks are ready and not leased (the threshold is 100)");
}

}  // namespace
}  // namespace detent::server

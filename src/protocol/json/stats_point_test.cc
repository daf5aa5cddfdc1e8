#include "protocol/json/stats_point.h"

#include <gtest/gtest.h>

#include <vector>

namespace detent::json {
namespace {

using namespace std::chrono_literals;

const StatsPoint kPoint{.at = WallTime{1'577'836'800'000ms},
                        .span = 1'000ms,
                        .counters = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10},
                        .tasks = {.scheduled = 11, .ready = 12, .leased = 13, .dead = 14},
                        .loaded = 15,
                        .waiting_workers = 16,
                        .late = {17, 18, 19, 20},
                        .lateness = Quantiles{.p50 = 1'500ns, .p99 = 2ms, .max = 3s},
                        .commit = std::nullopt};
constexpr const char* kMembers =
    R"("at":"2020-01-01T00:00:00.000Z","span_ms":1000,"accepted":1,"fired":2,"leased":3,)"
    R"("completed":4,"failed":5,"died":7,)"
    R"("tasks":{"scheduled":11,"ready":12,"leased":13,"dead":14},"loaded":15,"waiting_workers":16,)"
    R"("late":{"before_start":17,"engine":18,"limit":19,"worker":20},)"
    R"("lateness_us":{"p50":2,"p99":2000,"max":3000000},"commit_us":null)";

TEST(StatsPoint, IsTheSameInTheHistoryAndInAnEvent) {
  EXPECT_EQ(render_history(10s, std::vector{kPoint}),
            std::string(R"({"step_ms":10000,"points":[{)") + kMembers + "}]}");
  StatsPoint recent = kPoint;
  recent.span = 10s;
  recent.lateness.reset();
  recent.late = {0, 0, 0, 1};
  recent.commit = Quantiles{.p50 = 1ms, .p99 = 1ms, .max = 1ms};
  EXPECT_EQ(render_stats_event(kPoint, recent),
            std::string("{") + kMembers +
                R"(,"recent":{"span_ms":10000,)"
                R"("late":{"before_start":0,"engine":0,"limit":0,"worker":1},"lateness_us":null,)"
                R"("commit_us":{"p50":1000,"p99":1000,"max":1000}}})");
}

TEST(MissedEvent, ShowsTheNumberIfItIsKnown) {
  EXPECT_EQ(render_missed_event(3), R"({"missed":3})");
  EXPECT_EQ(render_missed_event(std::nullopt), R"({"missed":null})");
}

}  // namespace
}  // namespace detent::json

#include "cli/commands/top_screen.h"

#include <gtest/gtest.h>

#include <chrono>
#include <string>
#include <vector>

#include "cli/output/text_table.h"

namespace detent::cli {
namespace {

using std::chrono::microseconds;
using std::chrono::milliseconds;

json::ServerStats stats_at(std::chrono::seconds uptime) {
  return {.version = "0.1.0",
          .uptime = uptime,
          .loaded = 42,
          .waiting_workers = 2,
          .schedules = 3,
          .queues = {{"mail", 5, 10, 1, 0, milliseconds{1'500}},
                     {"orders", 900, 2, 7, 4, milliseconds{60'000}},
                     {"idle", 0, 0, 0, 0, std::nullopt}}};
}

TopView view_of_two_looks() {
  TopView view{.server = "http://h:1",
               .before = stats_at(std::chrono::seconds{60}),
               .now = stats_at(std::chrono::seconds{62})};
  view.before.counters.fired = 1'000;
  view.before.lateness = {0, 1'000};
  view.now.counters = {.scheduled = 25'000, .fired = 1'100, .completed = 3, .failed = 1};
  view.now.lateness = {0, 1'000, 0, 98, 0, 2};
  return view;
}

/// The names of the shown queues, in order.
std::vector<std::string> names_in(const std::vector<std::string>& lines) {
  std::vector<std::string> names;
  for (const std::string& line : lines) {
    const std::string name = line.substr(0, line.find(' '));
    if (name == "mail" || name == "orders" || name == "idle") names.push_back(name);
  }
  return names;
}
using Names = std::vector<std::string>;

TEST(TopScreen, WithATokenForSomeQueuesThereAreNoRates) {
  TopView view = view_of_two_looks();
  view.now.scope = json::StatsScope::some_queues;
  for (const std::string& line : render_top(view, 200, 24)) {
    EXPECT_EQ(line.find("a second"), std::string::npos) << line;
    EXPECT_EQ(line.find("p99"), std::string::npos) << line;
    EXPECT_EQ(line.find("in memory"), std::string::npos) << line;
  }
}

TEST(TopScreen, ShowsRatesPerSecondBetweenTwoAnswers) {
  const TopRates rates = rates_between(view_of_two_looks().before, view_of_two_looks().now);
  EXPECT_DOUBLE_EQ(rates.accepted, 12'500);
  EXPECT_DOUBLE_EQ(rates.fired, 50);
  EXPECT_DOUBLE_EQ(rates.completed, 1.5);
  EXPECT_DOUBLE_EQ(rates.failed, 0.5);
  EXPECT_EQ(rates.late_half, microseconds{8}) << "of those that fired in between only";
  EXPECT_EQ(rates.late_most, microseconds{32});
}

TEST(TopScreen, ShowsAveragesSinceTheStartAtFirstAndAfterARestart) {
  const TopView view = view_of_two_looks();
  const TopRates first = rates_between({}, view.now);
  EXPECT_DOUBLE_EQ(first.fired, 1'100.0 / 62);
  json::ServerStats longer_up = view.before;
  longer_up.uptime = std::chrono::hours{5};
  longer_up.counters.fired = 1'000'000;
  EXPECT_DOUBLE_EQ(rates_between(longer_up, view.now).fired, first.fired);
  EXPECT_EQ(rates_between(view.now, view.now).late_half, microseconds{2}) << "no time has passed";
  EXPECT_DOUBLE_EQ(rates_between({}, {}).fired, 0);
  EXPECT_EQ(rates_between({}, {}).late_half, std::nullopt);
}

TEST(TopScreen, FillsTheTerminal) {
  const std::vector<std::string> lines = render_top(view_of_two_looks(), 100, 12);
  ASSERT_EQ(lines.size(), 12U);
  EXPECT_EQ(lines[0], "detent 0.1.0 at http://h:1, up 1m 2s");
  EXPECT_EQ(lines[1], "tasks    scheduled 905   ready 12   leased 8   dead 4   in memory 42");
  EXPECT_EQ(lines[2], "a second accepted 12.5k   fired 50   completed 1.5   failed 0.5   dead 0");
  EXPECT_EQ(lines[3], "late     p50 8us   p99 32us   workers waiting 2   schedules 3");
  EXPECT_EQ(lines[5], "QUEUE   SCHEDULED  READY*  LEASED  DEAD  OLDEST READY");
  EXPECT_EQ(lines[6], "mail    5          10      1       0     1s 500ms");
  EXPECT_EQ(lines[9], "");
  EXPECT_NE(lines[11].find("q quits"), std::string::npos);
}

TEST(TopScreen, KeysSortTheQueues) {
  TopView view = view_of_two_looks();
  const auto shown_by = [&view](char key) {
    view.order = order_of_key(key).value();
    return names_in(render_top(view, 100, 20));
  };
  EXPECT_EQ(shown_by('r'), (Names{"mail", "orders", "idle"}));
  EXPECT_EQ(shown_by('l'), (Names{"orders", "mail", "idle"}));
  EXPECT_EQ(shown_by('s'), (Names{"orders", "mail", "idle"}));
  EXPECT_EQ(shown_by('w'), (Names{"orders", "mail", "idle"}));
  EXPECT_EQ(shown_by('d'), (Names{"orders", "idle", "mail"}));
  EXPECT_EQ(shown_by('n'), (Names{"idle", "mail", "orders"}));
  EXPECT_EQ(order_of_key('x'), std::nullopt);
}

TEST(TopScreen, NeverLargerThanTheTerminalWhateverItsSize) {
  TopView view = view_of_two_looks();
  view.now.queues.push_back({std::string(200, 'q'), 1, 1, 1, 1, std::nullopt});
  view.trouble = "connect to h:1: \x1B[31mConnection refused";
  for (std::size_t width = 1; width < 130; width += 7) {
    for (std::size_t height = 0; height < 16; ++height) {
      const auto lines = render_top(view, width, height);
      EXPECT_LE(lines.size(), height);
      for (const std::string& line : lines) {
        EXPECT_LE(width_of(line), width);
        EXPECT_EQ(line.find('\x1B'), std::string::npos) << "what others wrote moves no cursor";
      }
    }
  }
  EXPECT_EQ(names_in(render_top(view, 100, 8)), (Names{"mail"}));
}

TEST(TopScreen, TheLineHasTheSameFigures) {
  EXPECT_EQ(render_top_line(view_of_two_looks()),
            "up 1m 2s  scheduled 905  ready 12  leased 8  dead 4  accepted/s 12.5k  fired/s 50  "
            "completed/s 1.5  failed/s 0.5  late p50 8us  p99 32us");
}

}  // namespace
}  // namespace detent::cli

// Tests the loop of `detent top` with a display that plays scripted events.
#include "cli/commands/top_command.h"

#include <deque>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "cli/testing/scripted_commands_fixture.h"
#include "protocol/json/stats_codec.h"

namespace detent::cli {
namespace {

using Kind = TopEvent::Kind;

/// The shown lines and the events to come.
struct Stage {
  bool is_screen = true;
  std::deque<TopEvent> events;  // after the last one, the user quits
  std::vector<std::vector<std::string>> shown = {};
  bool is_open = false;
};

class StagedDisplay final : public TopDisplay {
 public:
  explicit StagedDisplay(Stage& stage) : stage_(stage) { stage_.is_open = true; }
  ~StagedDisplay() override { stage_.is_open = false; }
  StagedDisplay(const StagedDisplay&) = delete;
  StagedDisplay& operator=(const StagedDisplay&) = delete;

  bool is_screen() const override { return stage_.is_screen; }
  std::size_t width() const override { return 80; }
  std::size_t height() const override { return 24; }
  void show(const std::vector<std::string>& lines) override { stage_.shown.push_back(lines); }
  TopEvent wait(std::chrono::milliseconds) override {
    if (stage_.events.empty()) return {.kind = Kind::quit};
    const TopEvent event = stage_.events.front();
    stage_.events.pop_front();
    return event;
  }

 private:
  Stage& stage_;
};

class TopCommandTest : public ScriptedCommands {
 protected:
  TopCommandTest() {
    answer(200, json::render_stats({.version = "1",
                                    .uptime = std::chrono::seconds{5},
                                    .queues = {{"b", 1, 0, 0, 0, std::nullopt},
                                               {"a", 0, 9, 0, 0, std::nullopt}}}));
  }
  ExitCode top(OutputFormat format = OutputFormat::people, bool once = false) {
    const ClientCall call{.server = "http://h:1", .format = format, .command = {}};
    return run_top({.once = once}, call, client_, {in_, out_, err_, terminal_},
                   [this](const Streams&) { return std::make_unique<StagedDisplay>(stage_); });
  }

  Stage stage_;
};

TEST_F(TopCommandTest, UpdatesAfterTheIntervalAndQuitsByKey) {
  stage_.events = {{Kind::time}, {Kind::time}, {Kind::key, 'q'}, {Kind::time}};
  EXPECT_EQ(top(), ExitCode::done);
  EXPECT_EQ(asked(), Lines(3, "GET /v1/stats"));
  EXPECT_EQ(stage_.shown.size(), 3U);
  EXPECT_FALSE(stage_.is_open);
}

TEST_F(TopCommandTest, AKeyOrANewSizeRedrawsWithoutARequest) {
  stage_.events = {{Kind::key, 's'}, {Kind::resize}, {Kind::key, 'x'}};
  EXPECT_EQ(top(), ExitCode::done);
  EXPECT_EQ(asked().size(), 1U);
  ASSERT_EQ(stage_.shown.size(), 4U);
  EXPECT_EQ(stage_.shown[0][6].front(), 'a');
  EXPECT_EQ(stage_.shown[1][6].front(), 'b');
  EXPECT_EQ(stage_.shown[3][6].front(), 'b') << "a key that means nothing changes nothing";
}

TEST_F(TopCommandTest, IfTheFirstRequestFailsNoDisplayIsOpened) {
  answer(503, R"({"type":"urn:detent:error:unavailable","detail":"starting"})");
  EXPECT_EQ(top(), ExitCode::failed);
  EXPECT_TRUE(stage_.shown.empty());
  EXPECT_EQ(err_.str(), "detent: starting\n");
}

TEST_F(TopCommandTest, AScreenSurvivesAStoppedServerButLinesEnd) {
  const Result<net::HttpResponse> good = script_.answer;
  script_.respond = [&](const net::HttpRequest&) -> Result<net::HttpResponse> {
    if (script_.asked.size() == 2) return Error{ErrorCode::unavailable, "nobody listens", ""};
    return Result<net::HttpResponse>(good);
  };
  stage_.events = {{Kind::time}, {Kind::time}};
  EXPECT_EQ(top(), ExitCode::done);
  ASSERT_EQ(stage_.shown.size(), 3U);
  EXPECT_EQ(stage_.shown[1][4], "nobody listens");
  EXPECT_EQ(stage_.shown[2][4], "");

  script_.asked.clear();
  stage_ = {.is_screen = false, .events = {{Kind::time}, {Kind::time}}};
  EXPECT_EQ(top(), ExitCode::failed);
  EXPECT_EQ(stage_.shown.size(), 1U);
  EXPECT_EQ(err_.str(), "detent: nobody listens\n");
}

TEST_F(TopCommandTest, WithoutAScreenEachUpdateIsALine) {
  stage_.is_screen = false;
  stage_.events = {{Kind::time}};
  EXPECT_EQ(top(), ExitCode::done);
  ASSERT_EQ(stage_.shown.size(), 2U);
  ASSERT_EQ(stage_.shown[0].size(), 1U);
  EXPECT_EQ(stage_.shown[0][0].rfind("up 5s", 0), 0U);

  stage_.shown.clear();
  EXPECT_EQ(top(OutputFormat::json), ExitCode::done);
  EXPECT_EQ(stage_.shown[0][0].front(), '{');
}

TEST_F(TopCommandTest, OncePrintsOneUpdateAndOpensNoDisplay) {
  EXPECT_EQ(top(OutputFormat::people, true), ExitCode::done);
  EXPECT_TRUE(stage_.shown.empty());
  EXPECT_NE(out_.str().find("\na      0          9"), std::string::npos) << out_.str();
  EXPECT_EQ(out_.str().find("quits"), std::string::npos);
  out_.str("");
  EXPECT_EQ(top(OutputFormat::json, true), ExitCode::done);
  EXPECT_EQ(out_.str().front(), '{');
}

}  // namespace
}  // namespace detent::cli

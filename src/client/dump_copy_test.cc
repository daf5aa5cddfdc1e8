// Writes and restores dumps with a client and a small server that supports only dumps and restores.
#include "client/dump_copy.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "tests/support/dump_server.h"

namespace detent {
namespace {

class DumpCopyTest : public testing::Test {
 protected:
  Result<DumpCounts> dump() {
    return write_dump(client_, out_, [this](std::uint64_t tasks) { progress_.push_back(tasks); });
  }
  /// The dump of a server with this number of tasks. Afterwards the server is empty.
  std::string dump_of(std::size_t tasks) {
    for (std::size_t i = 1; i <= tasks; ++i) server_.add(256 * i);
    EXPECT_TRUE(dump());
    server_.tasks.clear();
    script_.asked.clear();
    server_.calls = 0;
    return std::exchange(out_, std::ostringstream()).str();
  }
  DumpRestore::Report restore(const std::string& text, ErrorCode* failed = nullptr) {
    std::istringstream in(text);
    DumpRestore restore(client_, {.on_refused =
                                      [this](std::uint64_t line, const Error& error) {
                                        refused_.emplace_back(line, error.message);
                                      },
                                  .on_part = [this] { ++parts_; }});
    const Result<void> done = restore.run(in);
    EXPECT_EQ(done.has_value(), failed == nullptr);
    if (!done && failed != nullptr) *failed = done.error().code;
    return restore.report();
  }

  static std::string end_line(const json::LineCounts& counts, std::uint64_t external = 0) {
    std::string line;
    json::append_dump_line(line, json::DumpEnd{counts, external});
    return line;
  }
  static std::string next_line(const json::LineCounts& counts) {
    std::string line;
    json::append_dump_line(line, json::DumpNext{TaskId{256}, "", counts});
    return line;
  }

  test::Script script_;
  test::DumpServer server_{script_};
  Client client_ = test::scripted_client(script_);
  std::ostringstream out_;
  std::vector<std::uint64_t> progress_;
  std::vector<std::pair<std::uint64_t, std::string>> refused_;
  int parts_ = 0;
};

TEST_F(DumpCopyTest, ADumpIsAllPagesAndOneEnd) {
  for (const std::uint64_t id : {256U, 512U, 768U, 1'024U, 1'280U}) server_.add(id);
  server_.damaged = 300;
  const auto counts = dump();
  ASSERT_TRUE(counts);
  EXPECT_EQ(counts->lines, (json::LineCounts{.queues = 1, .tasks = 5, .damaged = 1}));
  EXPECT_EQ(progress_, (std::vector<std::uint64_t>{2, 4, 5}));
  const std::string text = out_.str();
  EXPECT_EQ(text.find("next"), std::string::npos) << text;
  EXPECT_TRUE(text.ends_with("}}\n" + end_line({.queues = 1, .tasks = 5, .damaged = 1}))) << text;
  EXPECT_EQ(text.find("\"end\""), text.rfind("\"end\""));
}

TEST_F(DumpCopyTest, ADumpThatFailsInTheMiddleHasNoEnd) {
  for (const std::uint64_t id : {256U, 512U, 768U}) server_.add(id);
  server_.fail_at_call = 2;
  EXPECT_EQ(dump().error().code, ErrorCode::unavailable);
  std::istringstream in(out_.str());
  EXPECT_FALSE(has_dump_end(in).value());
}

TEST_F(DumpCopyTest, AnOutputThatCannotBeWrittenIsAnError) {
  out_.setstate(std::ios::badbit);
  EXPECT_EQ(dump().error().code, ErrorCode::unavailable);
}

TEST_F(DumpCopyTest, TheEndIsFoundAfterBlankLinesAndNotInTheMiddle) {
  const std::string text = dump_of(5);
  const auto is_whole = [](const std::string& some) {
    std::istringstream in(some);
    const bool has_end = has_dump_end(in).value();
    std::string from_start;
    std::getline(in, from_start, '\0');
    EXPECT_EQ(from_start, some);  // the next reader begins at the start
    return has_end;
  };
  EXPECT_TRUE(is_whole(text));
  EXPECT_TRUE(is_whole(text + "\r\n \n"));
  EXPECT_TRUE(is_whole(end_line({})));
  EXPECT_FALSE(is_whole(""));
  EXPECT_FALSE(is_whole(text + text.substr(0, 100)));
  for (std::size_t size = text.size() - 2; size > 0; --size) {
    EXPECT_FALSE(is_whole(text.substr(0, size))) << size;
  }
}

TEST_F(DumpCopyTest, ARestoreBringsAllBackAndIsRepeatable) {
  const std::string text = dump_of(5);
  const DumpRestore::Report first = restore(text);
  EXPECT_EQ(first.restored, 5U);
  EXPECT_EQ(first.queues, 1U);
  EXPECT_EQ(first.refused, 0U);
  EXPECT_TRUE(first.has_end && first.is_count_right);
  const DumpRestore::Report second = restore(text);
  EXPECT_EQ(second.restored, 0U);
  EXPECT_EQ(second.there, 5U);
  ASSERT_TRUE(dump());
  EXPECT_EQ(out_.str(), text);
}

TEST_F(DumpCopyTest, ManyLinesGoInParts) {
  const std::string text = dump_of(2'500);
  EXPECT_EQ(restore(text).restored, 2'500U);
  EXPECT_EQ(parts_, 3);
}

TEST_F(DumpCopyTest, LargeLinesGoInPartsOfTheirSize) {
  for (std::uint64_t id = 1; id <= 100; ++id) {
    server_.tasks[id] = {.id = TaskId{id},
                         .queue = "q",
                         .payload = {Payload::Kind::bytes, std::string(kMaxPayloadBytes, 'x')}};
  }
  const std::string text = dump_of(0);
  EXPECT_EQ(restore(text).restored, 100U);
  EXPECT_EQ(parts_, 3);
  for (const net::HttpRequest& asked : script_.asked) EXPECT_LT(asked.body.size(), 5U << 20);
}

TEST_F(DumpCopyTest, AnInterruptedRestoreCanBeRepeated) {
  const std::string text = dump_of(2'500);
  server_.fail_at_call = 2;
  ErrorCode failed{};
  const DumpRestore::Report report = restore(text, &failed);
  EXPECT_EQ(failed, ErrorCode::unavailable);
  EXPECT_EQ(report.through_line, 1'000U);
  EXPECT_EQ(report.restored, 999U);  // one of the 1,000 lines is the queue
  const DumpRestore::Report again = restore(text);
  EXPECT_EQ(again.there, 999U);
  EXPECT_EQ(again.restored, 1'501U);
}

TEST_F(DumpCopyTest, WrongLinesAreReportedByTheirNumberInTheInput) {
  const std::string text = "\n" + dump_of(1'200) + "{\"task\":{}}\n";
  std::string broken = text;
  broken.replace(broken.find("\"id\":\"256\""), 10, "\"id\":\"000\"");
  broken.replace(broken.find("\"id\":\"281600\""), 13, "\"is\":\"281600\"");
  broken.insert(0, "{\"colour\":1}\n");
  const DumpRestore::Report report = restore(broken);
  EXPECT_EQ(report.restored, 1'198U);
  EXPECT_EQ(report.refused, 4U);
  ASSERT_EQ(refused_.size(), 4U);
  std::sort(refused_.begin(), refused_.end());  // the server refuses lines only part by part
  EXPECT_EQ(refused_[0].first, 1U);
  EXPECT_EQ(refused_[1].first, 4U);
  EXPECT_EQ(refused_[2].first, 1'103U);
  EXPECT_EQ(refused_[3].first, 1'205U);
  EXPECT_NE(refused_[3].second.find("after the end"), std::string::npos);
}

TEST_F(DumpCopyTest, AnIncompleteDumpIsReported) {
  server_.schedules["s"] = {.schedule = {.name = "s",
                                         .rule = IntervalRule{.period = std::chrono::seconds{1}},
                                         .queue = "q"}};
  server_.damaged = 100;
  const std::string text = dump_of(3);
  const std::size_t end = text.rfind("{\"end");
  EXPECT_FALSE(restore(text.substr(0, end)).has_end);
  EXPECT_TRUE(restore(text).is_count_right);
  for (const char* lost : {"{\"queue\"", "{\"task\"", "{\"schedule\"", "{\"damaged\""}) {
    std::string without = text;
    const std::size_t at = without.find(lost);
    ASSERT_NE(at, std::string::npos) << lost;
    without.erase(at, without.find('\n', at) + 1 - at);
    const DumpRestore::Report report = restore(without);
    EXPECT_TRUE(report.has_end) << lost;
    EXPECT_FALSE(report.is_count_right) << lost;
  }
}

TEST_F(DumpCopyTest, AnEndWithoutACountIsRefusedBeforeALineIsSent) {
  std::istringstream in("{\"task\":{}}\n{\"end\":true,\"tasks\":1}\n");
  const Error error = has_dump_end(in).error();
  EXPECT_EQ(error.code, ErrorCode::data_loss);
  EXPECT_NE(error.message.find("the dump is damaged"), std::string::npos) << error.message;
  const DumpRestore::Report report = restore(in.str());  // as from standard input
  EXPECT_TRUE(report.has_end);
  EXPECT_FALSE(report.is_count_right);
  EXPECT_TRUE(report.is_uncounted);
}

TEST_F(DumpCopyTest, UnchangedPagesOfTheServerAreADump) {
  const DumpRestore::Report report =
      restore("{\"task\":{}}\n" + next_line({.tasks = 1}) +
              "{\"damaged\":\"300\"}\n{\"task\":{}}\n" + end_line({.tasks = 1, .damaged = 1}));
  EXPECT_TRUE(report.has_end && report.is_count_right);
  EXPECT_EQ(report.damaged, 1U);
  EXPECT_EQ(report.refused, 2U);
  const DumpRestore::Report first_lost_one =
      restore(next_line({.queues = 1}) + "{\"task\":{}}\n" + end_line({.tasks = 1}));
  EXPECT_TRUE(first_lost_one.has_end);
  EXPECT_FALSE(first_lost_one.is_count_right);
}

TEST_F(DumpCopyTest, ATooLongLineIsRefusedBeforeItIsStored) {
  ErrorCode failed{};
  restore(std::string(3U << 20, 'x'), &failed);
  EXPECT_EQ(failed, ErrorCode::too_large);
  EXPECT_TRUE(script_.asked.empty());
}

TEST_F(DumpCopyTest, AnAnswerForOtherLinesIsAnError) {
  script_.respond = {};
  script_.answer = net::HttpResponse{
      .body = json::render_restored({.errors = {{2, {ErrorCode::conflict, "no", ""}}}})};
  ErrorCode failed{};
  restore("{\"task\":{}}\n", &failed);
  EXPECT_EQ(failed, ErrorCode::internal);
}

TEST_F(DumpCopyTest, TasksOfAnExternalSchedulerAreCountedAtTheEnd) {
  for (const std::uint64_t id : {256U, 512U, 768U}) server_.add(id);
  server_.external = 4;
  EXPECT_EQ(dump().value().external, 4U);
  const std::string text = out_.str();
  EXPECT_TRUE(text.ends_with(end_line({.queues = 1, .tasks = 3}, 4))) << text;
  EXPECT_TRUE(restore(text).is_count_right) << "it is not of the tasks that are in the dump";
}

TEST_F(DumpCopyTest, SchedulesTravelAndAreRestoredAfterAllTasks) {
  for (const char* name : {"a", "b"}) {
    server_.schedules[name] = {
        .schedule = {.name = name,
                     .rule = IntervalRule{.period = std::chrono::seconds{1},
                                          .anchor = WallTime{std::chrono::milliseconds{5}}},
                     .queue = "q"},
        .progress = {.made = 7}};
  }
  const auto schedules = server_.schedules;
  server_.add(256);
  EXPECT_EQ(dump().value().lines.schedules, 2U);
  std::string text = std::exchange(out_, std::ostringstream()).str();
  EXPECT_TRUE(text.ends_with(end_line({.queues = 1, .tasks = 1, .schedules = 2}))) << text;
  // Pages joined by hand may have schedules before tasks.
  const std::size_t at = text.find("{\"task\"");
  const std::string task = text.substr(at, text.find('\n', at) + 1 - at);
  text.erase(at, task.size()).insert(text.find("{\"end\""), task);
  server_.tasks.clear();
  server_.schedules.clear();
  DumpRestore::Report report = restore(text);
  EXPECT_EQ(server_.schedules, schedules);
  EXPECT_EQ(server_.tasks_before_schedules, 1U);
  EXPECT_EQ(report.schedules, 2U);
  EXPECT_TRUE(report.is_count_right);
  report = restore(text);
  EXPECT_EQ(report.schedules, 0U);
  EXPECT_EQ(report.schedules_there, 2U);
  text.replace(text.find("\"schedules\":2"), 13, "\"schedules\":3");
  EXPECT_FALSE(restore(text).is_count_right);
}

// ---- the pages of a dump ----

constexpr const char* kEnd = R"("end":true)";

/// The last line of a page: `what` names the next page or the end, and the counts follow.
std::string last_line(const std::string& what, const json::LineCounts& counts) {
  std::string line;
  json::append_dump_line(line, json::DumpEnd{counts});
  return line.replace(1, std::string(kEnd).size(), what);
}

/// A server that answers with one body after the other.
class DumpPageTest : public testing::Test {
 protected:
  /// Dumps a server that answers with `pages`.
  Result<DumpCounts> dump(std::vector<std::string> pages) {
    script_.asked.clear();
    out_.str("");
    script_.respond = [this, pages = std::move(pages)](const net::HttpRequest&) {
      return Result<net::HttpResponse>({.body = pages.at(script_.asked.size() - 1)});
    };
    return write_dump(client_, out_, [](std::uint64_t) {});
  }
  std::vector<std::string> asked() const {
    std::vector<std::string> targets;
    for (const net::HttpRequest& request : script_.asked) targets.push_back(request.target);
    return targets;
  }

  test::Script script_;
  Client client_ = test::scripted_client(script_);
  std::ostringstream out_;
};

TEST_F(DumpPageTest, APageHasCountsAndTheStartOfTheNextPage) {
  const std::string lines =
      "{\"queue\":{\"queue\":\"q\"}}\n{\"task\":{\"id\":1}}\n{\"damaged\":\"512\"}\n";
  const json::LineCounts counts{.queues = 1, .tasks = 1, .damaged = 1};
  const auto dumped = dump(
      {lines + last_line(R"("next":"512")", counts), last_line(R"("end":true,"external":3)", {})});
  ASSERT_TRUE(dumped) << dumped.error().message;
  EXPECT_EQ(dumped->lines, counts);
  EXPECT_EQ(dumped->external, 3U);
  EXPECT_TRUE(out_.str().starts_with(lines)) << out_.str();
  EXPECT_EQ(asked(), (std::vector<std::string>{"/v1/dump", "/v1/dump?after=512"}));
  EXPECT_EQ(dump({last_line(kEnd, {})}).value().external, 0U);
}

TEST_F(DumpPageTest, TheNextPageMayBeginWithinTheSchedules) {
  const std::string schedule = "{\"schedule\":{}}\n";
  const std::string next = R"("next":null,"next_schedule":"s")";
  const std::string later = R"("next":"256","next_schedule":"a/b")";
  const std::string end = schedule + last_line(kEnd, {.schedules = 1});
  ASSERT_TRUE(dump({schedule + last_line(next, {.schedules = 1}), end}));
  EXPECT_EQ(asked(), (std::vector<std::string>{"/v1/dump", "/v1/dump?after_schedule=s"}));
  ASSERT_TRUE(dump({schedule + last_line(later, {.schedules = 1}), end}));
  EXPECT_EQ(asked().at(1), "/v1/dump?after=256&after_schedule=a%2Fb");
  EXPECT_EQ(dump({schedule + last_line(kEnd, {})}).error().code, ErrorCode::internal);
  const std::string again = last_line(next, {});
  EXPECT_EQ(dump({again, again}).error().code, ErrorCode::internal) << "back to where it began";
}

TEST_F(DumpPageTest, AnIncompletePageIsAnError) {
  const std::string end = last_line(kEnd, {});
  const std::string first = last_line(R"("next":"256")", {});
  const std::string next = R"("next":"512")";
  for (const std::string& body : {
           std::string(), end.substr(0, end.size() - 1),  // no line feed
           std::string("{\"task\":{}}\n"),                // no last line
           last_line(kEnd, {.tasks = 1}),                 // other counts
           last_line(kEnd, {.queues = 1}),                // likewise
           last_line(kEnd, {.damaged = 1}),               // likewise
           last_line(next, {.queues = 1}),                // likewise
           std::string("{\"end\":true}\n"),               // no counts
           "{\"ta\n" + end,                               // not a valid line
           first,                                         // back to where it began
       }) {
    EXPECT_EQ(dump({first, body}).error().code, ErrorCode::internal) << body;
  }
}

TEST_F(DumpPageTest, ARestoreSendsItsLinesAndReadsTheResults) {
  const json::RestoreAnswer told{.restored = 1, .errors = {{2, {ErrorCode::conflict, "no", ""}}}};
  script_.answer = net::HttpResponse{.body = json::render_restored(told)};
  std::vector<std::pair<std::uint64_t, std::string>> refused;
  DumpRestore restore(client_, {.on_refused = [&](std::uint64_t line, const Error& error) {
                        refused.emplace_back(line, error.message);
                      }});
  const std::string lines = "{\"task\":{}}\n{\"task\":{}}\n";
  std::istringstream in(lines);
  ASSERT_TRUE(restore.run(in));
  EXPECT_EQ(restore.report().restored, 1U);
  EXPECT_EQ(refused, (std::vector<std::pair<std::uint64_t, std::string>>{{2, "no"}}));
  ASSERT_EQ(script_.asked.size(), 1U);
  EXPECT_EQ(script_.asked[0].target, "/v1/restore");
  EXPECT_EQ(script_.asked[0].body, lines);
  EXPECT_EQ(script_.asked[0].header("content-type"), "application/x-ndjson");
}

}  // namespace
}  // namespace detent

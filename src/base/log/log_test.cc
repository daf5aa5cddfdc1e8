#include "base/log/log.h"

#include <gtest/gtest.h>

#include <sstream>
#include <string>
#include <thread>
#include <vector>

#include "base/log/log_line.h"
#include "base/test_seed.h"

namespace detent {
namespace {

using namespace std::chrono_literals;
using namespace std::string_literals;

constexpr WallTime kTime{std::chrono::milliseconds{1'767'323'045'678}};

std::string text_line(std::string_view message, LogFields fields = {}) {
  return render_log_line(LogFormat::text, {kTime, LogLevel::info, message, fields});
}

std::string json_line(std::string_view message, LogFields fields = {}) {
  return render_log_line(LogFormat::json, {kTime, LogLevel::info, message, fields});
}

TEST(LogLine, TextHasTimeLevelMessageAndFields) {
  EXPECT_EQ(text_line("listening", {{"address", "127.0.0.1:7070"}, {"tls", true}, {"count", -3}}),
            "2026-01-02T03:04:05.678Z info listening address=127.0.0.1:7070 tls=true count=-3");
}

TEST(LogLine, TextQuotesValuesThatWouldRunTogether) {
  EXPECT_EQ(text_line("m", {{"a", ""}, {"b", "x y"}, {"c", "k=v"}, {"d", "say \"hi\""}}),
            "2026-01-02T03:04:05.678Z info m a=\"\" b=\"x y\" c=\"k=v\" d=\"say \\\"hi\\\"\"");
}

TEST(LogLine, JsonIsOneObject) {
  EXPECT_EQ(json_line("it \"works\"", {{"path", "a\\b"}, {"count", 3u}, {"ok", false}}),
            R"({"time":"2026-01-02T03:04:05.678Z","level":"info","message":"it \"works\"",)"
            R"("path":"a\\b","count":3,"ok":false})");
}

TEST(LogLine, EscapesControlBytes) {
  const std::string nasty = "a\nb\r\t\x1b[31m\x7f\0z"s;
  EXPECT_EQ(text_line(nasty), "2026-01-02T03:04:05.678Z info a\\nb\\r\\t\\x1b[31m\\x7f\\x00z");
  EXPECT_NE(json_line(nasty).find(R"("message":"a\nb\r\t\u001b[31m\u007f\u0000z")"),
            std::string::npos);
}

TEST(LogLine, KeepsUtf8AndEscapesOtherBytes) {
  EXPECT_NE(text_line("gr\u00fc\u00df \u4e16\U0001F600").find("gr\u00fc\u00df \u4e16\U0001F600"),
            std::string::npos);
  // A lone lead byte, a stray continuation, an overlong slash, a surrogate, above U+10FFFF.
  EXPECT_NE(text_line("\xC3(\x80|\xC0\xAF|\xED\xA0\x80|\xF4\x90\x80\x80")
                .find(R"(\xc3(\x80|\xc0\xaf|\xed\xa0\x80|\xf4\x90\x80\x80)"),
            std::string::npos);
  EXPECT_NE(json_line("a\xFFz").find(R"("a\ufffdz")"), std::string::npos);
  EXPECT_NE(text_line("a\u0085\u2028z").find(R"(a\x85\u2028z)"), std::string::npos);
}

TEST(LogLine, LeavesOutAFieldWithoutAValue) {
  const std::optional<std::string> none;
  EXPECT_TRUE(text_line("failed", {{"since", none}, {"after", 1}}).ends_with(" failed after=1"));
  EXPECT_TRUE(json_line("failed", {{"since", none}, {"after", 1}})
                  .ends_with(R"("message":"failed","after":1})"));
  EXPECT_TRUE(text_line("failed", {{"since", std::optional<std::string>("1m")}})
                  .ends_with(" failed since=1m"));
}

TEST(LogLine, CapsALongMessage) {
  const std::string text = text_line(std::string(100'000, 'x'), {{"after", 1}});
  EXPECT_LE(text.size(), kLongestLogEvent + 100);
  EXPECT_GT(text.size(), kLongestLogEvent);
  EXPECT_TRUE(text.ends_with("xxx [cut]"));
  const std::string json = json_line(std::string(100'000, '\n'), {{"after", 1}});
  EXPECT_LE(json.size(), kLongestLogEvent + 100);
  EXPECT_TRUE(json.ends_with(R"(\n\n","cut":true})"));
}

/// A small reader, strict about strings: true if `line` is exactly one flat JSON object.
bool is_flat_json(std::string_view line) {
  const auto skip_string = [&] {
    if (!line.starts_with('"')) return false;
    line.remove_prefix(1);
    while (!line.empty() && line.front() != '"') {
      if (static_cast<unsigned char>(line.front()) < 0x20) return false;
      line.remove_prefix(line.front() == '\\' ? 2 : 1);
    }
    if (line.empty()) return false;
    line.remove_prefix(1);
    return true;
  };
  if (!line.starts_with('{')) return false;
  do {
    line.remove_prefix(1);
    if (!skip_string() || !line.starts_with(':')) return false;
    line.remove_prefix(1);
    if (line.starts_with('"')) {
      if (!skip_string()) return false;
    } else {
      const std::size_t size = line.find_first_not_of("-0123456789truefals");
      if (size == 0 || size == std::string_view::npos) return false;
      line.remove_prefix(size);
    }
  } while (line.starts_with(','));
  return line == "}";
}

// Messages of every size around the limit: the line must stay one object within the limit.
TEST(LogLine, JsonStaysWholeWhereverItIsCut) {
  for (std::size_t size = kLongestLogEvent - 80; size < kLongestLogEvent + 10; ++size) {
    const std::string message(size, 'm');
    const std::string line =
        json_line(message, {{"number", 123456}, {"text", "abc\n"}, {"ok", true}});
    ASSERT_TRUE(is_flat_json(line)) << line.substr(line.size() - 100);
    ASSERT_LE(line.size(), kLongestLogEvent + 100);
  }
  EXPECT_FALSE(is_flat_json(R"({"a":})")) << "the reader above must be able to say no";
  EXPECT_FALSE(is_flat_json("{\"a\":\"b\n\"}"));
}

TEST(LogLine, AnyInputGivesOneCleanLine) {
  const std::uint64_t seed = test_seed();
  SCOPED_TRACE(replay_hint(seed));
  Rng rng(seed);
  for (int i = 0; i < 500; ++i) {
    std::string bytes(rng.below(200), '\0');
    for (char& byte : bytes) byte = static_cast<char>(rng.next());
    const std::string json = json_line(bytes, {{"value", bytes}});
    ASSERT_TRUE(is_flat_json(json));
    for (const std::string& line : {json, text_line(bytes, {{"value", bytes}})}) {
      for (const char byte : line) {
        ASSERT_GE(static_cast<unsigned char>(byte), 0x20);
        ASSERT_NE(static_cast<unsigned char>(byte), 0x7F);
      }
    }
  }
}

/// Writes the log to a string during its lifetime.
class CapturedLog {
 public:
  explicit CapturedLog(LogOptions options = {}) {
    options.out = &out_;
    options.clock = &clock_;
    configure_log(options);
  }
  ~CapturedLog() { configure_log({}); }
  std::string text() const { return out_.str(); }
  ManualClock& clock() { return clock_; }

 private:
  std::ostringstream out_;
  ManualClock clock_{WallInstant{kTime}};
};

TEST(Log, WritesLinesWithTheTimeOfTheGivenClock) {
  CapturedLog log;
  log_info("one");
  log.clock().advance(1ms);
  log_error("two", {{"n", 2}});
  EXPECT_EQ(log.text(),
            "2026-01-02T03:04:05.678Z info one\n"
            "2026-01-02T03:04:05.679Z error two n=2\n");
}

TEST(Log, DropsEventsBelowTheLevel) {
  CapturedLog log({.level = LogLevel::warning});
  log_debug("no");
  log_info("no");
  log_warning("yes");
  EXPECT_EQ(log.text(), "2026-01-02T03:04:05.678Z warning yes\n");
}

TEST(Log, ItsLevelCanBeChanged) {
  CapturedLog log({.level = LogLevel::warning});
  set_log_level(LogLevel::debug);
  log_debug("yes");
  set_log_level(LogLevel::error);
  log_warning("no");
  EXPECT_EQ(log.text(), "2026-01-02T03:04:05.678Z debug yes\n");
}

TEST(Log, TakesBracesOfAMessageLiterally) {
  CapturedLog log;
  log_info("{} {0} %v {");
  EXPECT_EQ(log.text(), "2026-01-02T03:04:05.678Z info {} {0} %v {\n");
}

TEST(Log, LinesOfSeveralThreadsDoNotMix) {
  CapturedLog log({.format = LogFormat::json});
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([] {
      for (int n = 0; n < 100; ++n) log_info("event", {{"n", n}});
    });
  }
  for (std::thread& thread : threads) thread.join();
  std::istringstream lines(log.text());
  int count = 0;
  for (std::string line; std::getline(lines, line); ++count) ASSERT_TRUE(is_flat_json(line));
  EXPECT_EQ(count, 400);
}

}  // namespace
}  // namespace detent

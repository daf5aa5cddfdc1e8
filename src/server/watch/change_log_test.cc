#include "server/watch/change_log.h"

#include <gtest/gtest.h>

#include <vector>

namespace detent::server {
namespace {

using namespace std::chrono_literals;

constexpr MonotonicTime kNow{100s};

TaskChange change(std::uint64_t id, std::string queue = "q") {
  return {.id = TaskId{id}, .queue = std::move(queue)};
}

void add_many(ChangeLog& log, std::size_t count) {
  for (std::size_t i = 0; i < count; ++i) log.add(change(log.end()));
}

std::size_t count_of(const std::string& text, std::string_view part) {
  std::size_t count = 0;
  for (auto at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++count;
  return count;
}

/// A reader and the changes that it got.
struct Told {
  Told(const ChangeLog& log, EventFilter filter, std::string_view last_id = "")
      : reader(log, std::move(filter), last_id, start) {}
  std::string read(ChangeLog& log, MonotonicTime now = kNow) {
    std::string text;
    reader.read(log, now, text);
    return text;
  }
  std::string start;
  ChangeReader reader;
};

TEST(ChangeLog, AnEventIsItsIdItsNameAndItsData) {
  ChangeLog log(7);
  Told told(log, {});
  EXPECT_EQ(told.start, "retry: 2000\nid: 7-0\n\n");
  log.add({.id = TaskId{512},
           .queue = "mail",
           .event = TaskEvent::failed,
           .state = TaskState::scheduled,
           .at = WallTime{1'577'836'800'000ms}});
  EXPECT_EQ(told.read(log),
            "id: 7-1\nevent: task\n"
            R"(data: {"id":"512","queue":"mail","change":"failed","state":"scheduled",)"
            R"("at":"2020-01-01T00:00:00.000Z"})"
            "\n\n");
  EXPECT_EQ(told.read(log), "");
}

TEST(ChangeLog, AGapIsReportedWithAnUnknownNumber) {
  ChangeLog log(7);
  Told told(log, {.queue = "a"});
  log.add_missed(3);
  log.add_gap();
  log.add(change(1, "a"));
  EXPECT_TRUE(
      told.read(log).starts_with("id: 7-2\nevent: missed\ndata: {\"missed\":null}\n\nid: "
                                 "7-3\nevent: task\n"));
  log.add_gap();
  EXPECT_EQ(told.read(log), "") << "until there is a change, or the next second";
  ASSERT_TRUE(told.reader.tells_missed_at());
  EXPECT_EQ(told.read(log, *told.reader.tells_missed_at()),
            "id: 7-4\nevent: missed\ndata: {\"missed\":null}\n\n");
  EXPECT_FALSE(told.reader.tells_missed_at());
}

TEST(ChangeLog, AReaderIsToldOnlyWhatItAskedFor) {
  ChangeLog log(7);
  Told of_a(log, {.queue = "a"});
  Told no_tasks(log, {.tasks = false});
  log.add(change(1, "a"));
  log.add(change(2, "b"));
  const std::string text = of_a.read(log);
  EXPECT_NE(text.find(R"("id":"1")"), std::string::npos);
  EXPECT_EQ(text.find(R"("id":"2")"), std::string::npos);
  EXPECT_EQ(no_tasks.read(log), "");
  EXPECT_FALSE(no_tasks.reader.is_behind(log));
}

TEST(ChangeLog, AReaderThatComesBackContinuesWhereItStopped) {
  ChangeLog log(7);
  add_many(log, 5);
  Told told(log, {}, "7-3");
  EXPECT_EQ(told.start, "retry: 2000\n\n");
  const std::string text = told.read(log);
  EXPECT_EQ(count_of(text, "event: task"), 2u);
  EXPECT_TRUE(text.starts_with("id: 7-4\n"));
  // A reader that continues after 7-0 gets all kept changes, and after 7-5 it gets none.
  EXPECT_EQ(count_of(Told(log, {}, "7-0").read(log), "event: task"), 5u);
  EXPECT_EQ(Told(log, {}, "7-5").read(log), "");
}

TEST(ChangeLog, AReaderThatCannotContinueIsTold) {
  ChangeLog log(7);
  add_many(log, 5);
  const std::string cannot = "retry: 2000\nid: 7-5\nevent: missed\ndata: {\"missed\":null}\n\n";
  for (const char* const id :
       {"6-3", "7-6", "7", "7-", "-3", "7-3x", "x", "7-99999999999999999999"}) {
    Told told(log, {}, id);
    EXPECT_EQ(told.start, cannot) << id;
    EXPECT_EQ(told.read(log), "") << id;
  }
}

TEST(ChangeLog, ForgetsTheOldestAndAllOfATimeWithoutReaders) {
  ChangeLog log(7);
  add_many(log, ChangeLog::kMaxKept + 10);
  EXPECT_EQ(log.end() - log.begin(), ChangeLog::kMaxKept);
  EXPECT_TRUE(log.after("7-10"));
  EXPECT_FALSE(log.after("7-9"));
  const std::string last = log.id_of(log.end() - 1);
  EXPECT_TRUE(log.after(last));
  log.forget();
  EXPECT_FALSE(log.after(last));
  add_many(log, 1);
  EXPECT_FALSE(log.after(last));
  EXPECT_TRUE(log.after(log.id_of(log.end() - 1)));
}

TEST(ChangeLog, MoreThanAClientCanFollowIsCountedAsMissed) {
  ChangeLog log(7);
  Told told(log, {});
  add_many(log, ChangeReader::kMaxPerSecond + 30);
  EXPECT_EQ(count_of(told.read(log), "event: task"), ChangeReader::kMaxPerSecond);
  EXPECT_EQ(told.reader.tells_missed_at(), kNow + 1s);
  add_many(log, 5);
  EXPECT_EQ(told.read(log, kNow + 999ms), "");
  add_many(log, 1);
  const std::string next = told.read(log, kNow + 1s);
  EXPECT_TRUE(next.starts_with("id: 7-235\nevent: missed\ndata: {\"missed\":35}\n\n")) << next;
  EXPECT_EQ(count_of(next, "event: task"), 1u);
  EXPECT_FALSE(told.reader.tells_missed_at());
}

TEST(ChangeLog, ChangesMissedByTheFeedAreReportedWithTheNextChangeOrSecond) {
  ChangeLog log(7);
  Told of_q(log, {.queue = "q"});
  Told of_other(log, {.queue = "other"});
  of_q.read(log);
  of_other.read(log);
  log.add_missed(12);
  log.add(change(1));
  const std::string text = of_q.read(log);
  EXPECT_TRUE(text.starts_with("id: 7-1\nevent: missed\ndata: {\"missed\":12}\n\nid: 7-2\n"))
      << text;
  EXPECT_EQ(of_other.read(log), "");
  EXPECT_EQ(of_other.read(log, kNow + 1s), "id: 7-2\nevent: missed\ndata: {\"missed\":12}\n\n");
}

// All kept changes in one answer would exceed the buffer of a connection.
TEST(ChangeLog, KeptChangesAreSentInPartsAndDoNotCountForTheSecond) {
  ChangeLog log(7);
  add_many(log, 1'200);
  Told told(log, {}, "7-0");
  add_many(log, 10);
  std::vector<std::size_t> parts;
  do parts.push_back(count_of(told.read(log), "event: task"));
  while (told.reader.is_behind(log));
  EXPECT_EQ(parts, (std::vector<std::size_t>{500, 500, 210}));
}

TEST(ChangeLog, AReaderThatTheLogHasOvertakenIsToldHowManyItMissed) {
  ChangeLog log(7);
  add_many(log, 1'000);
  Told told(log, {}, "7-0");
  told.read(log);
  add_many(log, ChangeLog::kMaxKept);
  const std::string text = told.read(log);
  EXPECT_TRUE(text.starts_with("id: 7-1000\nevent: missed\ndata: {\"missed\":500}\n\nid: 7-1001\n"))
      << text.substr(0, 200);
}

}  // namespace
}  // namespace detent::server

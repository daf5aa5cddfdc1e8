#include "task/queue_page.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace detent {
namespace {

std::vector<QueueStats> some_queues() {
  return {{.queue = "d", .scheduled = 1, .ready = 5},
          {.queue = "a", .ready = 5, .dead = 2},
          {.queue = "c", .leased = 7},
          {.queue = "b"},
          {.queue = "e", .scheduled = 3, .ready = 9}};
}

/// The names of all pages of one queue list, and " | " between the pages.
std::string pages(const std::string& sort, std::uint64_t limit) {
  std::string names;
  std::optional<std::string> cursor;
  for (int page = 0; page < 10; ++page) {
    const auto request = QueuePageRequest::read(sort, {}, cursor, limit);
    if (!request) return request.error().message;
    std::vector<QueueStats> queues = some_queues();
    cursor = keep_page(queues, *request);
    for (const QueueStats& queue : queues) names += queue.queue;
    if (cursor->empty()) return names;
    names += " | ";
  }
  return names + "no end";
}

TEST(QueuePage, SortsNamesUpAndCountsDownWithTheNameForEqualCounts) {
  EXPECT_EQ(pages("name", 10), "abcde");
  EXPECT_EQ(pages("scheduled", 10), "edabc");
  EXPECT_EQ(pages("ready", 10), "eadbc");
  EXPECT_EQ(pages("leased", 10), "cabde");
  EXPECT_EQ(pages("dead", 10), "abcde");
  EXPECT_EQ(pages("tasks", 10), "eacdb");
}

TEST(QueuePage, EachPageContinuesBehindTheLastQueueOfThePageBefore) {
  EXPECT_EQ(pages("name", 2), "ab | cd | e");
  EXPECT_EQ(pages("ready", 2), "ea | db | c");
  EXPECT_EQ(pages("ready", 1), "e | a | d | b | c");
  EXPECT_EQ(pages("ready", 5), "eadbc") << "the last page has no cursor";
}

TEST(QueuePage, AQueueNameMayHaveAnyCharacter) {
  const auto first = QueuePageRequest::read("ready", {}, {}, 1);
  std::vector<QueueStats> queues{{.queue = "a:b:1", .ready = 2}, {.queue = "z", .ready = 1}};
  const std::string cursor = keep_page(queues, first.value());
  const auto next = QueuePageRequest::read("ready", {}, cursor, 1);
  ASSERT_TRUE(next);
  EXPECT_EQ(next->after, (QueuePlace{.key = 2, .queue = "a:b:1"}));
}

TEST(QueuePage, FiltersByState) {
  const auto in = [](const std::string& state) {
    const QueueState wanted = *QueuePageRequest::read({}, state, {}, 1)->state;
    std::string names;
    for (const QueueStats& queue : some_queues()) {
      if (is_in_state(queue, queue.queue == "d", wanted)) names += queue.queue;
    }
    std::ranges::sort(names);
    return names;
  };
  EXPECT_EQ(in("paused"), "d");
  EXPECT_EQ(in("scheduled"), "de");
  EXPECT_EQ(in("ready"), "ade");
  EXPECT_EQ(in("leased"), "c");
  EXPECT_EQ(in("dead"), "a");
  EXPECT_EQ(in("empty"), "b");
}

TEST(QueuePage, RefusesUnknownWordsAndCursorsOfOtherLists) {
  EXPECT_EQ(QueuePageRequest::read("size", {}, {}, 1).error().message,
            "sort must be name, scheduled, ready, leased, dead or tasks");
  EXPECT_EQ(QueuePageRequest::read({}, "open", {}, 1).error().field, "state");
  for (const char* cursor : {"", "ready", "ready:", "ready:x:q", "ready:1", "name:0:q",
                             "ready:-1:q", "ready:99999999999999999999:q"}) {
    EXPECT_EQ(QueuePageRequest::read("ready", {}, cursor, 1).error().field, "cursor") << cursor;
  }
}

}  // namespace
}  // namespace detent

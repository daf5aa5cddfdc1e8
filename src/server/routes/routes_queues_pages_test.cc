// Pages of GET /v1/queues: sorted, filtered and continued (routes_fixture.h).
#include <gtest/gtest.h>

#include <string>

#include "protocol/json/queue_codec.h"
#include "server/testing/routes_fixture.h"

namespace detent::server {
namespace {

class RoutesQueuesPages : public RoutesTest {
 protected:
  /// Ready tasks: a 2, b 1 (paused), c 3. Scheduled tasks: d 1. The queue e is empty.
  void make_queues() {
    for (const char* name : {"a", "a", "b", "c", "c", "c"}) {
      schedule(R"({"queue":")" + std::string(name) + "\"}");
    }
    schedule(R"({"queue":"d","delay":"1h"})");
    ASSERT_EQ(send("PATCH", "/v1/queues/b", R"({"paused":true})").status, 200);
    ASSERT_EQ(send("PATCH", "/v1/queues/e", R"({"rate":5})").status, 200);
  }
  /// The names of the queues of all pages, and " | " between the pages.
  std::string pages(const std::string& query) {
    std::string names;
    const std::string first = "/v1/queues?" + query;
    std::string target = first;
    for (int page = 0; page < 10; ++page) {
      const net::HttpResponse answer = send("GET", target);
      const auto read = json::parse_queue_page(answer.body);
      if (!read) return answer.body;
      for (const QueueView& view : read->queues) names += view.stats.queue;
      if (read->cursor.empty()) return names;
      names += " | ";
      target = first;
      target.append("&cursor=").append(read->cursor);
    }
    return names + "no end";
  }
};

TEST_F(RoutesQueuesPages, SortByACountAndContinueAtTheCursor) {
  make_queues();
  EXPECT_EQ(pages("sort=ready&limit=2"), "ca | bd | e");
  EXPECT_EQ(pages("sort=name&limit=3"), "abc | de");
  EXPECT_EQ(pages("sort=tasks"), "cabde");
  EXPECT_EQ(pages("sort=scheduled&limit=1"), "d | a | b | c | e");
}

TEST_F(RoutesQueuesPages, AreFilteredByStateAndName) {
  make_queues();
  EXPECT_EQ(pages("state=paused"), "b");
  EXPECT_EQ(pages("state=ready"), "abc");
  EXPECT_EQ(pages("state=ready&sort=ready"), "cab");
  EXPECT_EQ(pages("state=scheduled"), "d");
  EXPECT_EQ(pages("state=empty"), "e");
  EXPECT_EQ(pages("state=dead"), "");
  EXPECT_EQ(pages("sort=ready&name=C"), "c");
}

TEST_F(RoutesQueuesPages, AreOnlyAnsweredIfAskedFor) {
  make_queues();
  EXPECT_EQ(send("GET", "/v1/queues").body.find("cursor"), std::string::npos);
  EXPECT_EQ(send("GET", "/v1/queues?limit=2").body.find("cursor"), std::string::npos);
  EXPECT_NE(send("GET", "/v1/queues?sort=name").body.find(R"(],"cursor":null})"),
            std::string::npos);
}

TEST_F(RoutesQueuesPages, WrongParametersAreRefused) {
  expect_problem(send("GET", "/v1/queues?sort=size"), 400,
                 {"sort must be name, scheduled, ready, leased, dead or tasks"});
  expect_problem(send("GET", "/v1/queues?state=open"), 400, {"state must be paused, "});
  expect_problem(send("GET", "/v1/queues?sort=ready&cursor=name:0:a"), 400, {"cursor must be"});
  expect_problem(send("GET", "/v1/queues?sort=ready&by=age"), 400, {"by cannot be given"});
  expect_problem(send("GET", "/v1/queues?sort=ready&limit=1001"), 400, {"limit"});
}

TEST_F(RoutesQueuesPages, AreUnavailableWhileTheStoreHasFailed) {
  make_queues();
  await_rest();
  store_->fail_write(1, WriteFault::not_applied);
  EXPECT_EQ(post("/v1/tasks", R"({"queue":"q"})").status, 503);
  EXPECT_EQ(send("GET", "/v1/queues?sort=ready").status, 503);
}

}  // namespace
}  // namespace detent::server

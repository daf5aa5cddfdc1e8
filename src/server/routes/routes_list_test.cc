// The list of tasks over HTTP (routes_fixture.h): its pages, and the requests that it refuses.
#include <gtest/gtest.h>

#include <set>
#include <string>
#include <vector>

#include "base/wall_time.h"
#include "server/testing/routes_fixture.h"

namespace detent::server {
namespace {

using net::HttpResponse;

class RoutesListTest : public RoutesTest {
 protected:
  struct Page {
    std::vector<std::string> ids;
    std::string cursor;
  };
  Page page(const std::string& query) {
    const HttpResponse answer = send("GET", "/v1/tasks" + query);
    EXPECT_EQ(answer.status, 200) << answer.body;
    const json::TaskListAnswer list = json::parse_task_list(answer.body).value();
    Page page{.ids = {}, .cursor = list.cursor};
    for (const TaskSnapshot& view : list.tasks) page.ids.push_back(to_string(view.task.id));
    return page;
  }
};

TEST_F(RoutesListTest, GoesThroughAllTasksInDueOrderByCursor) {
  const std::string third = schedule(R"({"queue":"a","delay":"3h"})");
  const std::string first = schedule(R"({"queue":"b","delay":"1h"})");
  const std::string second = schedule(R"({"queue":"a","delay":"2h"})");
  const Page begin = page("?limit=2");
  EXPECT_EQ(begin.ids, (std::vector{first, second}));
  ASSERT_FALSE(begin.cursor.empty());
  const Page end = page("?limit=2&cursor=" + begin.cursor);
  EXPECT_EQ(end.ids, (std::vector{third}));
  EXPECT_TRUE(end.cursor.empty());
  EXPECT_EQ(page("").ids, (std::vector{first, second, third}));
}

TEST_F(RoutesListTest, CombinesItsFilters) {
  const std::string soon = schedule(R"({"queue":"a","key":"k","delay":"1h"})");
  const std::string late = schedule(R"({"queue":"a","delay":"3h"})");
  const std::string other = schedule(R"({"queue":"b","key":"k","delay":"1h"})");
  const std::string at = format_rfc3339(floor<std::chrono::milliseconds>(clock_.wall_now()) + 2h);
  const std::string at_ms = std::to_string(
      floor<std::chrono::milliseconds>(clock_.wall_now() + 2h).time_since_epoch().count());
  EXPECT_EQ(page("?queue=a").ids, (std::vector{soon, late}));
  EXPECT_EQ(page("?key=k").ids, (std::vector{soon, other}));
  EXPECT_EQ(page("?queue=b&key=k").ids, (std::vector{other}));
  EXPECT_EQ(page("?due_after=" + at).ids, (std::vector{late}));
  EXPECT_EQ(page("?due_before=" + at_ms + "&queue=a").ids, (std::vector{soon}));
  EXPECT_EQ(page("?state=ready").ids, (std::vector<std::string>{}));
  EXPECT_EQ(page("?state=scheduled&queue=b").ids, (std::vector{other}));
}

TEST_F(RoutesListTest, FillsAPageThatTakesManySteps) {
  std::string crowd;
  for (int i = 0; i < 2'000; ++i) crowd += "{\"queue\":\"crowd\",\"delay\":\"1h\"}\n";
  ASSERT_EQ(post("/v1/tasks/batch", crowd).status, 200);
  const std::string id = schedule(R"({"queue":"a","delay":"2h"})");
  const Page all = page("?queue=a");
  EXPECT_EQ(all.ids, (std::vector{id}));
  EXPECT_TRUE(all.cursor.empty());
  EXPECT_EQ(page("?limit=1000").ids.size(), 1'000U);
}

TEST_F(RoutesListTest, ShowsTheRulesInForce) {
  send("PATCH", "/v1/queues/a", R"({"max_attempts":3})");
  const std::string id = schedule(R"({"queue":"a","delay":"2h","payload":{"n": 1}})");
  const std::string task = send("GET", "/v1/tasks/" + id).body;
  EXPECT_NE(task.find("\"max_attempts\":3"), std::string::npos);
  EXPECT_EQ(send("GET", "/v1/tasks").body, "{\"tasks\":[" + task + "],\"cursor\":null}");
}

TEST_F(RoutesListTest, ShowsTheTimeOfDeathAndTheHolderOfALease) {
  schedule(R"({"queue":"dead","max_attempts":1})");
  const std::string token = lease("dead").at(0).lease;
  post("/v1/leases/fail", R"({"leases":[")" + token + R"("]})");
  schedule(R"({"queue":"leased"})");
  lease("leased", R"({"worker":"w-1"})");
  const std::string now = format_rfc3339(floor<std::chrono::milliseconds>(clock_.wall_now()));
  const std::string dead = send("GET", "/v1/tasks?state=dead").body;
  EXPECT_NE(dead.find(R"("died_at":")" + now), std::string::npos) << dead;
  EXPECT_EQ(dead.find("leased_at"), std::string::npos) << dead;
  const std::string leased = send("GET", "/v1/tasks?queue=leased").body;
  EXPECT_NE(leased.find(R"("leased_at":")" + now + R"(","worker":"w-1")"), std::string::npos)
      << leased;
  EXPECT_EQ(leased.find("died_at"), std::string::npos) << leased;
}

TEST_F(RoutesListTest, NamesTheParameterThatIsWrong) {
  const auto refuses = [this](const std::string& query, const std::string& field) {
    expect_problem(send("GET", "/v1/tasks?" + query), 400, {"\"field\":\"" + field + "\""});
  };
  refuses("queue=-a", "queue");
  refuses("queue=", "queue");
  refuses("state=delayed", "state");
  refuses("key=", "key");
  refuses("due_after=tomorrow", "due_after");
  refuses("due_before=-1", "due_before");
  refuses("due_before=253402300800000", "due_before");
  refuses("limit=0", "limit");
  refuses("limit=1001", "limit");
  refuses("limit=ten", "limit");
  refuses("offset=10", "offset");
  refuses("limit=1&limit=2", "limit");
  for (const char* const cursor :
       {"", "x", "l", "l0-1", "l0-1-1-", "l0-1-1x", "l1-1-1", "e1-1-1", "l00-1-1", "l0--1-1",
        "d4294967296-1-1", "r1-1-1", "l0-1-99999999999999999999", "L0-1-1"}) {
    refuses(std::string("cursor=") + cursor, "cursor");
  }
}

}  // namespace
}  // namespace detent::server

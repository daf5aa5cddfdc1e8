// The permissions of each token for each route, in one table. A row is a route, and a column is a
// token. If a route is missing from the table, the test fails.
#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "base/log/log.h"
#include "server/testing/routes_access_fixture.h"
#include "tests/support/raw_socket.h"

namespace detent::server {
namespace {

struct Row {
  const char* method;
  const char* pattern;
  const char* body;
  /// One letter for each token: U 401, F 403, N 404, '.' allowed. Tasks and queues belong to a.q.
  const char* expected;
};

// Tokens:                             none, wrong, read-a, produce-a, -b, consume-a, -b, admin-a,
// -b,
//                                     read, admin
constexpr const char* kOpen = "...........";
constexpr const char* kAnyToken = "UU.........";
constexpr const char* kLook = "UU..F.F.F..";
constexpr const char* kLookTask = "UU..N.N.N..";
constexpr const char* kLookAll = "UUFFFFFFF..";
constexpr const char* kProduce = "UUF.FFF.FF.";
constexpr const char* kProduceTask = "UUF.NFF.NF.";
constexpr const char* kProduceEach = "UUF..FF..F.";  // for batches with a result for each task
constexpr const char* kConsume = "UUFFF.F.FF.";
constexpr const char* kConsumeEach = "UUFFF....F.";
constexpr const char* kAdmin = "UUFFFFF.FF.";
constexpr const char* kAdminAll = "UUFFFFFFFF.";

constexpr Row kTable[] = {
    {"POST", "/v1/tasks", R"({"queue":"a.q"})", kProduce},
    {"GET", "/v1/tasks", "", kAnyToken},
    {"POST", "/v1/tasks/batch", R"([{"queue":"a.q"}])", kProduceEach},
    {"POST", "/v1/tasks/cancel", R"({"ids":["256"]})", kProduceEach},
    {"POST", "/v1/tasks/move", R"({"ids":["256"],"delay":"1s"})", kProduceEach},
    {"GET", "/v1/tasks/{id}", "", kLookTask},
    {"PATCH", "/v1/tasks/{id}", R"({"priority":7})", kProduceTask},
    {"DELETE", "/v1/tasks/{id}", "", kProduceTask},
    {"POST", "/v1/tasks/{id}/run", "", kProduceTask},
    {"POST", "/v1/queues/{queue}/lease", "", kConsume},
    {"POST", "/v1/leases/complete", R"({"leases":["1-1"]})", kConsumeEach},
    {"POST", "/v1/leases/fail", R"({"leases":["1-1"]})", kConsumeEach},
    {"POST", "/v1/leases/extend", R"({"leases":["1-1"],"by":"1s"})", kConsumeEach},
    {"POST", "/v1/leases/release", R"({"leases":["1-1"]})", kConsumeEach},
    {"GET", "/v1/queues", "", kAnyToken},
    {"GET", "/v1/queues/{queue}", "", kLook},
    {"PATCH", "/v1/queues/{queue}", R"({"retention":"1s"})", kAdmin},
    {"DELETE", "/v1/queues/{queue}", "", kAdmin},
    {"POST", "/v1/queues/{queue}/pause", "", kAdmin},
    {"POST", "/v1/queues/{queue}/resume", "", kAdmin},
    {"POST", "/v1/queues/{queue}/purge", "", kAdmin},
    {"POST", "/v1/queues/{queue}/redrive", "", kAdmin},
    {"GET", "/v1/queues/{queue}/keys/{key}", "", kLook},
    {"PATCH", "/v1/queues/{queue}/keys/{key}", R"({"priority":7})", kProduce},
    {"DELETE", "/v1/queues/{queue}/keys/{key}", "", kProduce},
    {"GET", "/v1/schedules", "", kLookAll},
    {"GET", "/v1/schedules/{name}", "", kLookAll},
    {"PUT", "/v1/schedules/{name}", R"({"every":"1h","queue":"a.q"})", kAdminAll},
    {"DELETE", "/v1/schedules/{name}", "", kAdminAll},
    {"GET", "/v1/schedules/{name}/next", "", kLookAll},
    {"POST", "/v1/schedules/{name}/pause", "", kAdminAll},
    {"POST", "/v1/schedules/{name}/resume", "", kAdminAll},
    {"POST", "/v1/schedules/{name}/trigger", "", kAdminAll},
    {"POST", "/v1/schedules/{name}/backfill", "{}", kAdminAll},
    {"POST", "/v1/occurrences", R"({"every":"1h","queue":"a.q"})", kAnyToken},
    {"GET", "/v1/stats", "", kAnyToken},
    {"GET", "/v1/stats/history", "", kLookAll},
    {"GET", "/v1/events", "", kLookAll},
    {"GET", "/v1/forecast", "", kLookAll},
    {"GET", "/v1/wheel", "", kLookAll},
    {"GET", "/v1/dump", "", kAdminAll},
    {"POST", "/v1/restore", "", kAdminAll},
    {"POST", "/v1/backup", "", kAdminAll},
    {"POST", "/v1/backup/end", "", kAdminAll},
    {"GET", "/metrics", "", kLookAll},
    {"GET", "/v1/cluster", "", kLookAll},
    {"GET", "/readyz", "", kOpen},
    {"GET", "/healthz", "", kOpen},
    {"GET", "/openapi.json", "", kOpen},
    {"GET", "/", "", kOpen},
    {"GET", "/assets/{name}", "", kOpen},
};

char letter_of(int status) {
  if (status == 401) return 'U';
  if (status == 403) return 'F';
  return status == 404 ? 'N' : '.';
}

std::string replaced(std::string text, const std::string& what, const std::string& by) {
  const std::size_t at = text.find(what);
  return at == std::string::npos ? text : text.replace(at, what.size(), by);
}

TEST_F(RoutesAccessTest, EachRouteLetsThroughWhomTheTableSays) {
  int keys = 0;
  for (const Row& row : kTable) {
    ASSERT_EQ(std::string(row.expected).size(), std::size(kTokens));
    std::string actual;
    for (const auto& [token, scopes] : kTokens) {
      const std::string key = std::to_string(++keys);  // a used key stands for an earlier task
      std::string target = replaced(row.pattern, "{queue}", "a.q");
      target = replaced(target, "{id}", schedule_in("a.q", key));
      target = replaced(target, "{key}", key);
      target = replaced(target, "/assets/{name}", "/assets/index.html");
      if (target.find("{name}") != std::string::npos) {
        as("admin", "PUT", "/v1/schedules/s", R"({"every":"1h","queue":"a.q"})");
        target = replaced(target, "{name}", "s");
      }
      // The invalid type is refused after the permission was checked, so no stream begins.
      if (target == "/v1/events") target += "?types=none";
      actual += letter_of(as(token, row.method, target, row.body).status);
      as("admin", "DELETE", "/v1/queues/a.q/keys/" + key);
    }
    EXPECT_EQ(actual, row.expected) << row.method << " " << row.pattern;
  }
}

/// The head of a request with `token` that announces the largest allowed body.
std::string promise(const std::string& line, const std::string& token, const char* more = "") {
  return line + " HTTP/1.1\r\nHost: 127.0.0.1\r\n" + more + "Authorization: Bearer dt_" + token +
         "\r\nContent-Length: 16777216\r\n\r\n";
}

TEST_F(RoutesAccessTest, ManyWhoMaySendNothingMakeTheServerHoldNothing) {
  std::vector<test::RawSocket> clients;
  for (int i = 0; i < 300; ++i) {
    clients.emplace_back(http_->port());
    clients.back().send(promise("POST /v1/tasks/batch", i % 2 == 0 ? "wrong" : "read-a"));
  }
  for (std::size_t i = 0; i < clients.size(); ++i) {
    // The answer comes before the body, and the server then closes the connection.
    const std::string answer = clients[i].read_response();
    EXPECT_TRUE(answer.starts_with(i % 2 == 0 ? "HTTP/1.1 401 " : "HTTP/1.1 403 ")) << answer;
    EXPECT_NE(answer.find("Connection: close"), std::string::npos) << answer;
  }
}

TEST_F(RoutesAccessTest, ABodyIsAskedForOnlyFromWhoMaySendIt) {
  struct Case {
    const char* line;
    const char* token;
    const char* answer;
  };
  const Case cases[] = {
      {"POST /v1/tasks/batch", "wrong", "HTTP/1.1 401 "},
      {"POST /v1/restore", "produce-a", "HTTP/1.1 403 "},
      {"PATCH /v1/queues/b.q", "admin-a", "HTTP/1.1 403 "},
      {"POST /v1/nothing", "admin", "HTTP/1.1 404 "},
      {"PUT /v1/tasks", "admin", "HTTP/1.1 405 "},
      {"POST /v1/tasks/batch", "produce-a", "HTTP/1.1 100 "},
      {"POST /v1/restore", "admin", "HTTP/1.1 100 "},
  };
  for (const Case& row : cases) {
    test::RawSocket client(http_->port());
    client.send(promise(row.line, row.token, "Expect: 100-continue\r\n"));
    EXPECT_EQ(client.read(13), row.answer) << row.line << " " << row.token;
  }
}

TEST_F(RoutesAccessTest, TheTableHasEveryRoute) {
  using Route = std::pair<std::string_view, std::string_view>;
  std::set<Route> there;
  for (const Routes::Route& route : routes_->all()) there.emplace(route.method, route.pattern);
  std::set<Route> listed;
  for (const Row& row : kTable) listed.emplace(row.method, row.pattern);
  EXPECT_EQ(there, listed);
}

TEST_F(RoutesAccessTest, ARequestWithoutATokenIsToldHowToSendOne) {
  const net::HttpResponse answer = as("none", "GET", "/v1/stats");
  expect_problem(answer, 401, {"a token is needed"});
  EXPECT_EQ(answer.header("www-authenticate"), "Bearer");
}

TEST_F(RoutesAccessTest, ATokenInTheQueryIsNone) {
  EXPECT_EQ(as("none", "GET", "/v1/stats?access_token=dt_admin").status, 401);
}

TEST_F(RoutesAccessTest, ARefusalNamesTheScope) {
  expect_problem(as("produce-a", "POST", "/v1/queues/a.q/purge"), 403,
                 {"urn:detent:error:forbidden", "scope admin for queue a.q"});
  expect_problem(as("admin-a", "GET", "/v1/dump"), 403, {"scope admin for all queues"});
}

TEST_F(RoutesAccessTest, ATaskOfAQueueOneMayNotSeeIsNotThere) {
  const std::string id = schedule_in("a.q", "k");
  const std::string hidden = as("produce-b", "GET", "/v1/tasks/" + id).body;
  std::string missing = as("produce-b", "GET", "/v1/tasks/99999744").body;
  EXPECT_EQ(hidden, replaced(missing, "99999744", id));
  expect_problem(as("consume-a", "DELETE", "/v1/tasks/" + id), 403, {"produce"});
  EXPECT_EQ(as("admin", "GET", "/v1/tasks/" + id).status, 200);
}

TEST_F(RoutesAccessTest, EachTaskOfABatchIsScheduledOrRefused) {
  const auto answer = as("produce-a", "POST", "/v1/tasks/batch",
                         R"([{"queue":"a.q"},{"queue":"b.q"},{"queue":"a.r"}])");
  EXPECT_EQ(answer.status, 200);
  EXPECT_NE(answer.body.find(R"("status":403)"), std::string::npos) << answer.body;
  EXPECT_EQ(as("admin", "GET", "/v1/queues/a.q").status, 200);
  EXPECT_EQ(as("admin", "GET", "/v1/queues/a.r").status, 200);
  EXPECT_EQ(as("admin", "GET", "/v1/queues/b.q").status, 404);
}

TEST_F(RoutesAccessTest, ABatchByIdOrKeyChangesOnlyWhatOneMay) {
  const std::string own = schedule_in("a.q", "k");
  const std::string other = schedule_in("b.q", "k");
  const std::string ids = R"({"ids":[")" + own + R"(",")" + other + R"("])";
  as("produce-a", "POST", "/v1/tasks/move", ids + R"(,"delay":"5h"})");
  as("produce-a", "POST", "/v1/tasks/cancel", ids + "}");
  EXPECT_EQ(as("admin", "GET", "/v1/tasks/" + own).status, 404);
  const auto left = as("admin", "GET", "/v1/tasks/" + other);
  EXPECT_EQ(left.status, 200);
  EXPECT_NE(left.body.find("T01:00:00"), std::string::npos) << left.body;  // not moved
  const auto by_key =
      as("produce-a", "POST", "/v1/tasks/cancel", R"({"queue":"b.q","keys":["k"]})");
  EXPECT_NE(by_key.body.find(R"("status":403)"), std::string::npos) << by_key.body;
  EXPECT_EQ(as("admin", "GET", "/v1/tasks/" + other).status, 200);
}

TEST_F(RoutesAccessTest, ALeaseOfAnotherQueueIsNotHeld) {
  for (const auto& [verb, rest] : std::vector<std::pair<std::string, std::string>>{
           {"complete", ""}, {"fail", ""}, {"extend", R"(,"by":"1s")"}, {"release", ""}}) {
    const std::string body = R"({"leases":[")" + lease_of("a.q") + R"("])" + rest + "}";
    const std::string target = "/v1/leases/" + verb;
    const auto refused = as("consume-b", "POST", target, body);
    EXPECT_NE(refused.body.find("conflict"), std::string::npos) << verb << refused.body;
    const auto done = as("consume-a", "POST", target, body);
    EXPECT_NE(done.body.find("done"), std::string::npos) << verb << done.body;
  }
}

TEST_F(RoutesAccessTest, ListsAndStatsShowOnlyQueuesOneMayLookAt) {
  for (const char* queue : {"a.q", "a.r", "b.q"}) schedule_in(queue, "k");
  for (const char* target : {"/v1/tasks", "/v1/queues", "/v1/stats"}) {
    const std::string all = as("read", "GET", target).body;
    EXPECT_NE(all.find("a.q"), std::string::npos) << all;
    EXPECT_NE(all.find("b.q"), std::string::npos) << all;
    const std::string some = as("read-a", "GET", target).body;
    EXPECT_NE(some.find("a.q"), std::string::npos) << some;
    EXPECT_NE(some.find("a.r"), std::string::npos) << some;
    EXPECT_EQ(some.find("b.q"), std::string::npos) << some;
  }
  EXPECT_EQ(as("read-a", "GET", "/v1/tasks?queue=b.q").status, 403);
  EXPECT_EQ(as("read-a", "GET", "/v1/tasks?queue=a.q").status, 200);
}

TEST_F(RoutesAccessTest, TheSumsOfStatsAreOfTheQueuesOneMayLookAt) {
  for (const char* queue : {"a.q", "a.r", "b.q"}) schedule_in(queue, "k");
  const json::ServerStats all = json::parse_stats(as("read", "GET", "/v1/stats").body).value();
  EXPECT_EQ(all.all.scheduled, 3u);
  EXPECT_EQ(all.queue_count, 3u);
  const json::ServerStats some =
      json::parse_stats(as("read-a", "GET", "/v1/stats?queues=1").body).value();
  EXPECT_EQ(some.all.scheduled, 2u);
  EXPECT_EQ(some.queue_count, 2u);
  EXPECT_EQ(some.queues.size(), 1u);
}

TEST_F(RoutesAccessTest, ATokenForSomeQueuesIsToldNoFigureOfTheWholeServer) {
  for (const char* queue : {"a.q", "b.q"}) schedule_in(queue, "k");
  for (const std::string member :
       {"counters", "late", "lateness_counts", "loaded", "schedules", "waiting_workers"}) {
    const auto has = [&](const std::string& token) {
      return as(token, "GET", "/v1/stats").body.find("\"" + member + "\":") != std::string::npos;
    };
    EXPECT_TRUE(has("read")) << member;
    EXPECT_FALSE(has("read-a")) << member;
  }
  const std::string aged = as("read-a", "GET", "/v1/stats?by=age").body;
  EXPECT_EQ(aged.find("b.q"), std::string::npos) << aged;
}

TEST_F(RoutesAccessTest, APageOfTheListIsFullOfTasksOneMaySee) {
  for (int i = 0; i < 20; ++i) schedule_in(i % 4 == 0 ? "a.q" : "b.q", std::to_string(i));
  const std::string page = as("read-a", "GET", "/v1/tasks?limit=5").body;
  std::size_t count = 0;
  for (std::size_t at = 0; (at = page.find("a.q", at)) != std::string::npos; ++at) ++count;
  EXPECT_EQ(count, 5U) << page;
}

TEST_F(RoutesAccessTest, ACursorTellsNoTaskOneMayNotSee) {
  std::set<std::string> own;
  for (int i = 0; i < 6; ++i) {
    own.insert(schedule_in("a.q", std::to_string(i)));
    schedule_in("b.q", std::to_string(i));
  }
  std::set<std::string> seen;
  std::string more;
  do {
    const net::HttpResponse page = as("read-a", "GET", "/v1/tasks?limit=1" + more);
    const json::TaskListAnswer list = json::parse_task_list(page.body).value();
    for (const TaskSnapshot& view : list.tasks) seen.insert(to_string(view.task.id));
    if (list.cursor.empty()) break;
    EXPECT_EQ(list.cursor.find('-'), std::string::npos) << "a place in the open";
    more = "&cursor=" + list.cursor;
    EXPECT_EQ(as("admin", "GET", "/v1/tasks?limit=1" + more).status, 400);
  } while (seen.size() < 7);
  EXPECT_EQ(seen, own);
  const std::string open = as("read", "GET", "/v1/tasks?limit=1").body;
  const std::string cursor = json::parse_task_list(open).value().cursor;
  EXPECT_NE(cursor.find('-'), std::string::npos);
  EXPECT_EQ(as("read", "GET", "/v1/tasks?cursor=" + cursor).status, 200);
  expect_problem(as("read-a", "GET", "/v1/tasks?cursor=" + cursor), 400, {"cursor"});
}

TEST_F(RoutesAccessTest, APreviewShowsNoScheduleToWhomItIsHidden) {
  const std::string rule = R"({"every":"1h","queue":"a.q"})";
  for (const char* name : {"s", "preview"}) {
    ASSERT_EQ(as("admin", "PUT", "/v1/schedules/" + std::string(name), rule).status, 201);
  }
  advance(7min);
  const std::string of_s = as("read", "POST", "/v1/occurrences?name=s", rule).body;
  const std::string of_none = as("read", "POST", "/v1/occurrences?name=none", rule).body;
  EXPECT_NE(of_s, of_none) << "it tells that there is one, and its anchor";
  for (const char* token : {"read-a", "produce-a", "consume-a", "admin-a"}) {
    for (const char* name : {"s", "none"}) {
      expect_problem(as(token, "POST", "/v1/occurrences?name=" + std::string(name), rule), 403,
                     {"read for all queues"});
    }
    EXPECT_EQ(as(token, "POST", "/v1/occurrences", rule).body, of_none);
  }
}

TEST_F(RoutesAccessTest, AdministrativeActsAreLogged) {
  std::ostringstream log;
  configure_log({.out = &log});
  schedule_in("a.q", "k");
  as("admin-a", "POST", "/v1/queues/a.q/purge");
  as("produce-b", "DELETE", "/v1/queues/a.q");
  as("read", "GET", "/v1/stats");
  for (int i = 0; i < 5; ++i) as("none", "POST", "/v1/queues/a.q/purge");  // one line a second
  configure_log({});
  const std::string text = log.str();
  EXPECT_EQ(std::count(text.begin(), text.end(), '\n'), 3) << text;
  EXPECT_NE(text.find("who=admin-a address=127.0.0.1 act=\"POST /v1/queues/a.q/purge\" status=200"),
            std::string::npos)
      << text;
  EXPECT_NE(text.find("who=produce-b address=127.0.0.1 act=\"DELETE /v1/queues/a.q\" status=403"),
            std::string::npos)
      << text;
}

TEST_F(RoutesTest, AForeignPageMayChangeNothingAndAStrangeNameIsNotAnswered) {
  const auto ask = [this](const std::string& method, net::HttpHeaders headers) {
    return client_
        ->send({.method = method,
                .target = method == "GET" ? "/v1/stats" : "/v1/tasks",
                .headers = std::move(headers),
                .body = method == "GET" ? "" : R"({"queue":"q"})"})
        .value();
  };
  expect_problem(ask("POST", {{"origin", "https://evil.example"}}), 403,
                 {"https://evil.example", "--cors-origin"});
  EXPECT_EQ(ask("GET", {{"origin", "https://evil.example"}}).status, 200);
  EXPECT_EQ(ask("POST", {}).status, 201);
}

}  // namespace
}  // namespace detent::server

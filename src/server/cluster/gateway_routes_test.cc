// Requests to a cluster of three shards get the same answers as from a single server: the same
// tasks, the same errors, and the same permissions. Random requests and lists are in
// gateway_list_test.cc.
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <fstream>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "protocol/json/dump_codec.h"
#include "server/testing/gateway_fixture.h"

namespace detent::server {
namespace {

using GatewayRoutes = GatewayRoutesTest;

TEST_F(GatewayRoutes, SchedulesAreFoundOnWhicheverShardTheyAre) {
  const std::vector<std::string> names = queues(2);
  for (std::size_t i = 0; i < names.size(); ++i) {
    same("PUT", "/v1/schedules/s" + std::to_string(i),
         R"({"every":"1h","anchor":0,"queue":")" + names[i] + R"("})");
  }
  for (int i = 0; i < 6; ++i) {
    const std::string path = "/v1/schedules/s" + std::to_string(i);
    same("GET", path);
    same("GET", path + "/next?count=3");
    same("GET", path + "/next?count=0");
    same("POST", path + "/pause");
    same("POST", path + "/resume", "{}");
    same("POST", path + "/resume", R"({"x":1})");
    same("POST", path + "/trigger");
    same("POST", path + "/backfill",
         R"({"from":"2019-12-31T10:00:00Z","to":"2019-12-31T13:00:00Z"})");
  }
  for (int limit = 1; limit <= 8; ++limit) {
    same("GET", "/v1/schedules?limit=" + std::to_string(limit));
    same("GET", "/v1/schedules?cursor=s1&limit=" + std::to_string(limit));
  }
  same("GET", "/v1/schedules");
  same("PUT", "/v1/schedules/s0", R"({"every":"2h","queue":")" + names[3] + R"("})");  // its shard
  same("DELETE", "/v1/schedules/s4");
  for (const char* gone : {"/v1/schedules/s4", "/v1/schedules/never"}) {
    same("GET", gone);
    same("DELETE", gone);
    same("POST", std::string(gone) + "/pause");
    same("POST", std::string(gone) + "/pause", R"({"x":1})");
    same("GET", std::string(gone) + "/next");
  }
  same("GET", "/v1/stats");
}

TEST_F(GatewayRoutes, AScheduleMovesToAQueueOfAnotherShardByBeingRemovedFirst) {
  const std::vector<std::string> names = queues(1);
  const auto put = [&](const std::string& queue) {
    return ask_cluster({.method = "PUT",
                        .target = "/v1/schedules/night%2Fly",
                        .headers = {},
                        .body = R"({"every":"1h","queue":")" + queue + R"("})"});
  };
  EXPECT_EQ(put(names[0]).status, 201);
  EXPECT_EQ(put(names[0]).status, 200);
  const net::HttpResponse refused = put(names[1]);
  EXPECT_EQ(refused.status, 409);
  EXPECT_NE(refused.body.find("night/ly"), std::string::npos) << refused.body;
  EXPECT_EQ(
      ask_cluster(
          {.method = "DELETE", .target = "/v1/schedules/night%2Fly", .headers = {}, .body = ""})
          .status,
      200);
  EXPECT_EQ(put(names[1]).status, 201);
}

TEST_F(GatewayRoutes, InvalidRequestsGetTheSameErrors) {
  const std::string queue = queues(1).at(1);
  std::string too_many = "[";
  for (int i = 0; i <= 10'000; ++i) too_many += R"("1",)";
  too_many.back() = ']';
  const struct {
    const char* method = "";
    std::string target;
    std::string body;
  } kCases[] = {{"POST", "/v1/tasks", "{"},
                {"POST", "/v1/tasks", R"({"queue":7})"},
                {"POST", "/v1/tasks", R"({"queue":"a","queue":"b"})"},
                {"PUT", "/v1/tasks", ""},
                {"POST", "/v1/tasks/batch", R"([{"queue":"a"},)"},
                {"POST", "/v1/tasks/batch", R"("text")"},
                {"POST", "/v1/tasks/batch", too_many},
                {"POST", "/v1/tasks/cancel", R"({"ids":)" + too_many + "}"},
                {"POST", "/v1/tasks/cancel", R"({"ids":["256",7]})"},
                {"POST", "/v1/tasks/cancel", R"({"ids":["256","257"],"ids":[]})"},
                {"POST", "/v1/tasks/cancel", R"({"ids":["256","257"],"keys":[]})"},
                {"POST", "/v1/tasks/cancel", R"({"keys":[]})"},
                {"POST", "/v1/tasks/move", R"({"ids":["256","257"]})"},
                {"POST", "/v1/tasks/move", R"({"ids":["256","257"],"delay":"x"})"},
                {"POST", "/v1/leases/complete", R"({"leases":["1-100","1-101"],"x":1})"},
                {"POST", "/v1/leases/extend", R"({"leases":["1-100","1-101"]})"},
                {"POST", "/v1/leases/fail", ""},
                {"POST", "/v1/leases/complete", R"({"leases":)" + too_many + "}"},
                {"GET", "/v1/tasks/99999999999999999999", ""},
                {"GET", "/v1/tasks/257", ""},
                {"GET", "/v1/tasks/511", ""},  // of shard 255
                {"GET", "/v1/tasks?limit=0", ""},
                {"GET", "/v1/tasks?limit=1&limit=1", ""},
                {"GET", "/v1/tasks?state=gone", ""},
                {"GET", "/v1/tasks?cursor=gone", ""},
                {"GET", "/v1/tasks?state=gone&cursor=gone", ""},
                {"GET", "/v1/tasks?cursor=d0-0-0.3", ""},
                {"GET", "/v1/tasks?cursor=l0-0-0.1", ""},
                {"GET", "/v1/tasks?x=%zz", ""},
                {"GET", "/v1/tasks?queue=bad%20name", ""},
                {"GET", "/v1/schedules?limit=1001", ""},
                {"GET", "/v1/schedules?x=1", ""},
                {"PUT", "/v1/schedules/s", "{}"},
                {"PUT", "/v1/schedules/s", R"({"queue":")" + queue + R"("})"},
                {"PATCH", "/v1/schedules/s", ""},
                {"POST", "/v1/occurrences", "{}"},
                {"GET", "/v1/stats?queues=x", ""},
                {"GET", "/v1/stats?queues=1000001", ""},
                {"GET", "/v1/stats?x=1", ""},
                {"GET", "/v1/forecast?bins=0", ""},
                {"GET", "/v1/forecast?span=1s", ""},
                {"GET", "/v1/queues/" + queue, ""},
                {"POST", "/v1/queues/bad%20name/lease", ""},
                {"DELETE", "/v1/queues", ""}};
  for (const auto& one : kCases) {
    const int status = same(one.method, one.target, one.body).status;
    EXPECT_TRUE(status >= 400 && status < 500) << one.method << " " << one.target << " " << status;
  }
}

TEST_F(GatewayRoutes, OneNamelessElementIsRefusedAmongOthers) {
  const std::vector<std::string> names = queues(1);
  same("POST", "/v1/tasks/batch",
       "{\"queue\":\"" + names[0] + "\"}\n\n nonsense\n{\"queue\":\"" + names[2] + "\"}");
  same("POST", "/v1/tasks/cancel", R"({"ids":["@0","none","511","@1","0"]})");
  same("POST", "/v1/leases/complete", R"({"leases":["1-100","none","1-101","1-ff"]})");
}

TEST_F(GatewayRoutes, ThePayloadStaysByteForByte) {
  const std::vector<std::string> names = queues(1);
  const std::string payload = "{ \"a\":1.00,\t\"\\u0041\": [ 1e400 ] }";
  same("POST", "/v1/tasks/batch",
       R"([{"queue":")" + names[0] + R"("},{"payload":)" + payload + R"(,"queue":")" + names[1] +
           R"("}])");
  EXPECT_NE(same("GET", "/v1/tasks/@1").body.find(payload), std::string::npos);
  EXPECT_NE(same("GET", "/v1/tasks").body.find(payload), std::string::npos);
}

TEST_F(GatewayRoutes, ARequestForOneShardAsksOnlyThat) {
  const std::vector<std::string> names = queues(2);
  const auto requests = [this] {
    int sum = 0;
    for (const auto& shard : shards_) sum += shard->requests();
    return sum;
  };
  same("POST", "/v1/tasks/batch",
       R"([{"queue":")" + names[0] + R"("},{"x":1},{"queue":")" + names[3] + R"("}])");
  same("POST", "/v1/tasks/cancel", R"({"ids":["@0","@1","none"]})");
  same("GET", "/v1/tasks?queue=" + names[0]);
  same("POST", "/v1/queues/" + names[0] + "/lease");
  EXPECT_EQ(requests(), 4);
  EXPECT_EQ(shards_[0]->requests(), 4);
  same("GET", "/v1/tasks");
  EXPECT_EQ(requests(), 7);  // a page among the live tasks needs no second request
}

TEST_F(GatewayRoutes, AHeadIsAnsweredAsAGet) {
  for (const char* target : {"/v1/stats", "/v1/tasks", "/v1/tasks/256", "/v1/queues"}) {
    const auto [one, cluster] =
        ask_both({.method = "HEAD", .target = target, .headers = {}, .body = ""});
    EXPECT_EQ(one.status, cluster.status) << target;
    EXPECT_EQ(one.content_type, cluster.content_type) << target;
  }
}

/// The lines of a dump, read in pages of two tasks.
std::string dump_of(const std::function<net::HttpResponse(net::HttpRequest)>& ask) {
  std::string lines;
  std::string target = "/v1/dump?limit=2";
  for (int page = 0; page < 100; ++page) {
    const std::string body = ask({.method = "GET", .target = target}).body;
    const std::size_t last = body.rfind('\n', body.size() - 2) + 1;
    lines += body.substr(0, body.size() < 2 || last > body.size() ? 0 : last);
    const auto line = json::parse_dump_line(std::string_view(body).substr(last)).value();
    const auto* const next = std::get_if<json::DumpNext>(&line);
    if (next == nullptr) return lines;
    target = "/v1/dump?limit=2&after=" + to_string(next->after);
    if (!next->schedule.empty()) target += "&after_schedule=" + next->schedule;
  }
  ADD_FAILURE() << "a dump without end";
  return lines;
}

TEST_F(GatewayRoutes, DumpedTasksAreRestoredWithTheirIds) {
  const auto ask = [this](net::HttpRequest request) { return ask_cluster(std::move(request)); };
  for (const std::string& queue : queues(2)) {
    for (int i = 0; i < 3; ++i) {
      same("POST", "/v1/tasks", R"({"queue":")" + queue + R"(","payload":1,"delay":"1h"})");
    }
  }
  const std::string queue = queues(1).back();
  same("PUT", "/v1/schedules/s",
       R"({"cron":"0 9 1 * *","queue":")" + queue + R"(","payload":{"kind":"month"}})");
  const std::string dump = dump_of(ask);
  EXPECT_EQ(std::ranges::count(dump, '\n'), 6 + 18 + 1) << dump;
  for (const std::string& one : queues(2)) {
    EXPECT_EQ(ask({.method = "POST", .target = "/v1/queues/" + one + "/purge"}).status, 200);
  }
  EXPECT_EQ(ask({.method = "DELETE", .target = "/v1/schedules/s"}).status, 200);
  const auto restored = json::parse_restored(
      ask({.method = "POST", .target = "/v1/restore", .headers = {}, .body = dump}).body);
  EXPECT_EQ(restored->restored, 18u);
  EXPECT_EQ(restored->schedules, 1u);
  EXPECT_TRUE(restored->errors.empty());
  EXPECT_EQ(dump_of(ask), dump);
}

class GatewayRoutesCors : public GatewayRoutesTest {
 protected:
  GatewayRoutesCors() : GatewayRoutesTest({.cors_origin = "https://example.org"}) {}
};

TEST_F(GatewayRoutesCors, AnotherSiteMayReadWhatOneServerLetsItRead) {
  for (const char* origin : {"https://example.org", "https://evil.example"}) {
    const net::HttpHeaders headers{{"origin", origin}};
    for (const char* target : {"/v1/tasks", "/v1/queues", "/v1/stats", "/v1/schedules/s"}) {
      same("GET", target, "", headers);
      same("OPTIONS", target, "", {{"origin", origin}, {"access-control-request-method", "GET"}});
    }
    const std::vector<std::string> names = queues(1);
    same("POST", "/v1/tasks/batch",
         R"([{"queue":")" + names[0] + R"("},{"queue":")" + names[1] + R"("}])", headers);
  }
}

constexpr std::array kTokens{"read", "produce", "consume", "admin", "read:q1", "admin:q1"};

/// Access rules: the token "dt_NAME" has the scope NAME for all queues, or for the queues whose
/// names begin with "q1".
class Rules {
 protected:
  Rules() : file_(::testing::TempDir() + "gateway_tokens_" + std::to_string(getpid())) {
    std::ofstream out(file_);
    for (const char* scope : kTokens) {
      out << "[[token]]\nname = \"" << scope << "\"\nsha256 = \""
          << to_hex(hash_token(std::string("dt_") + scope)) << "\"\nscopes = [\"" << scope
          << "\"]\n";
    }
    out.close();
    chmod(file_.c_str(), S_IRUSR | S_IWUSR);
    access_ = Access::load(file_).value();
  }
  ~Rules() { std::filesystem::remove(file_); }
  const Access* access() const noexcept { return access_.get(); }

 private:
  std::string file_;
  std::unique_ptr<Access> access_;
};

class GatewayRoutesAccess : private Rules, public GatewayRoutesTest {
 protected:
  GatewayRoutesAccess() : GatewayRoutesTest({.access = access()}) {}
};

TEST_F(GatewayRoutesAccess, ACallerWithoutPermissionIsRefusedAndSeesNothing) {
  const std::vector<std::string> names = queues(4);
  ASSERT_TRUE(std::ranges::any_of(names, [](const auto& name) { return name.starts_with("q1"); }));
  const auto headers_of = [](const std::string& token) {
    return net::HttpHeaders{{"authorization", "Bearer dt_" + token}};
  };
  std::string batch;
  for (const std::string& name : names) {
    batch += (batch.empty() ? "[" : ",") + (R"({"queue":")" + name) + R"("})";
  }
  batch += "]";
  same("POST", "/v1/tasks/batch", batch, headers_of("produce"));
  const std::string schedule = R"({"every":"1h","queue":")" + names[1] + R"("})";
  for (const std::string token :
       {"read", "produce", "consume", "admin", "read:q1", "admin:q1", "nobody"}) {
    SCOPED_TRACE(token);
    const net::HttpHeaders headers = headers_of(token);
    for (const char* target : {"/v1/tasks", "/v1/queues", "/v1/stats", "/v1/forecast",
                               "/v1/tasks/@0", "/v1/schedules", "/v1/schedules/s"}) {
      same("GET", target, "", headers);
    }
    same("PUT", "/v1/schedules/s", schedule, headers);
    same("POST", "/v1/schedules/s/pause", "", headers);
    same("GET", "/v1/schedules/s/next", "", headers);
    same("POST", "/v1/tasks/batch", batch, headers);
    same("POST", "/v1/tasks/move", R"({"ids":["@0","@1","@2","@3"],"delay":"1h"})", headers);
    same("POST", "/v1/leases/complete", R"({"leases":["1-100","1-101"]})", headers);
    same("DELETE", "/v1/schedules/s", "", headers);
  }
}

}  // namespace
}  // namespace detent::server

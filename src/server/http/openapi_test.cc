// The server matches its OpenAPI document: it has the same routes, and its answers have the
// documented form. The test sends requests for the whole API and checks each request and answer
// with the document. It implements the part of JSON Schema that the document uses. An unknown
// keyword of a schema is a failure.
#include "server/http/openapi.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <boost/json/parse.hpp>
#include <boost/json/serialize.hpp>
#include <cctype>
#include <initializer_list>
#include <regex>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "server/testing/backups_rig.h"
#include "server/testing/routes_fixture.h"
#include "tests/support/raw_socket.h"

namespace detent::server {
namespace {

namespace boost_json = boost::json;
using net::HttpResponse;

boost_json::value parse(std::string_view text) {
  return boost_json::parse(boost_json::string_view(text.data(), text.size()));
}

std::string text_of(const boost_json::value& value) { return boost_json::serialize(value); }

/// Says what is wrong with a value according to a schema. Returns "" if the value is valid.
class SchemaCheck {
 public:
  explicit SchemaCheck(const boost_json::value& document) : document_(document) {}

  std::string fault(const boost_json::value& schema, const boost_json::value& value) const {
    for (const auto& [word, rule] : schema.as_object()) {
      if (!follows(std::string(word), rule, schema, value)) {
        return text_of(value) + " against \"" + std::string(word) + "\" of " + text_of(schema);
      }
      if (word == "properties" || word == "items" || word == "$ref") {
        std::string inner = inner_fault(std::string(word), rule, value);
        if (!inner.empty()) return inner;
      }
    }
    return "";
  }

  const boost_json::value& resolve(const boost_json::value& node) const {
    const boost_json::value* const ref = node.as_object().if_contains("$ref");
    return ref == nullptr ? node : document_.at_pointer(ref->as_string().subview(1));
  }

 private:
  static bool has_type(const boost_json::value& value, std::string_view type) {
    if (type == "object") return value.is_object();
    if (type == "array") return value.is_array();
    if (type == "string") return value.is_string();
    if (type == "boolean") return value.is_bool();
    if (type == "null") return value.is_null();
    if (type == "integer") return value.is_int64() || value.is_uint64();
    ADD_FAILURE() << "type " << type;
    return false;
  }
  static bool has_one_type(const boost_json::value& value, const boost_json::value& types) {
    if (types.is_string()) return has_type(value, std::string_view(types.as_string()));
    return std::ranges::any_of(types.as_array(), [&value](const boost_json::value& type) {
      return has_type(value, std::string_view(type.as_string()));
    });
  }
  static double number(const boost_json::value& value) { return value.to_number<double>(); }

  bool follows(const std::string& word, const boost_json::value& rule,
               const boost_json::value& schema, const boost_json::value& value) const {
    static const std::set<std::string> kSaid{"description",     "examples",   "default", "format",
                                             "contentEncoding", "properties", "items",   "$ref"};
    if (kSaid.contains(word)) return true;
    if (word == "type") return has_one_type(value, rule);
    if (word == "const") return value == rule;
    if (word == "enum") return std::ranges::find(rule.as_array(), value) != rule.as_array().end();
    if (word == "oneOf") {
      return std::ranges::count_if(rule.as_array(), [&](const boost_json::value& one) {
               return fault(one, value).empty();
             }) == 1;
    }
    if (word == "minimum") return !value.is_number() || number(value) >= number(rule);
    if (word == "maximum") return !value.is_number() || number(value) <= number(rule);
    if (word == "pattern") {
      return !value.is_string() || std::regex_search(std::string(value.as_string()),
                                                     std::regex(std::string(rule.as_string())));
    }
    if (word == "minLength") return !value.is_string() || value.as_string().size() >= size(rule);
    if (word == "maxLength") return !value.is_string() || value.as_string().size() <= size(rule);
    if (word == "maxItems") return !value.is_array() || value.as_array().size() <= size(rule);
    if (word == "minProperties") {
      return !value.is_object() || value.as_object().size() >= size(rule);
    }
    if (word == "maxProperties") {
      return !value.is_object() || value.as_object().size() <= size(rule);
    }
    return follows_of_object(word, rule, schema, value);
  }
  bool follows_of_object(const std::string& word, const boost_json::value& rule,
                         const boost_json::value& schema, const boost_json::value& value) const {
    if (word == "required") {
      return !value.is_object() || std::ranges::all_of(rule.as_array(), [&](const auto& name) {
        return value.as_object().contains(name.as_string());
      });
    }
    if (word == "additionalProperties") {
      const boost_json::value* const known = schema.as_object().if_contains("properties");
      return !value.is_object() || std::ranges::all_of(value.as_object(), [&](const auto& member) {
        if (known != nullptr && known->as_object().contains(member.key())) return true;
        return rule.is_object() && fault(rule, member.value()).empty();
      });
    }
    ADD_FAILURE() << "a word of JSON Schema that this check does not know: " << word;
    return false;
  }
  static std::size_t size(const boost_json::value& rule) { return rule.to_number<std::size_t>(); }

  std::string inner_fault(const std::string& word, const boost_json::value& rule,
                          const boost_json::value& value) const {
    if (word == "$ref") return fault(document_.at_pointer(rule.as_string().subview(1)), value);
    std::string inner;
    if (word == "items" && value.is_array()) {
      for (const boost_json::value& item : value.as_array()) {
        if (inner.empty()) inner = fault(rule, item);
      }
    }
    if (word == "properties" && value.is_object()) {
      for (const auto& [name, its_schema] : rule.as_object()) {
        const boost_json::value* const member = value.as_object().if_contains(name);
        if (member != nullptr && inner.empty()) inner = fault(its_schema, *member);
      }
    }
    return inner;
  }

  const boost_json::value& document_;
};

class OpenapiTest : public RoutesTest {
 protected:
  /// Sends a request, and checks the request and its answer with the document.
  HttpResponse check(const std::string& method, const std::string& pattern,
                     const std::string& target, const std::string& body, int status,
                     const std::string& if_match = "") {
    std::string name = method;
    std::ranges::transform(name, name.begin(), [](unsigned char c) { return std::tolower(c); });
    net::HttpRequest request{.method = method, .target = target, .headers = {}, .body = body};
    if (!if_match.empty()) request.headers.emplace_back("if-match", if_match);
    HttpResponse answer = client_->send(request).value();
    EXPECT_EQ(answer.status, status) << method << ' ' << target << ": " << answer.body;
    const boost_json::value& operation = document_.at("paths").at(pattern).at(name);
    const boost_json::object& responses = operation.at("responses").as_object();
    const boost_json::value* const response = responses.if_contains(std::to_string(status));
    if (response == nullptr) {
      ADD_FAILURE() << method << ' ' << pattern << " says nothing of " << status;
      return answer;
    }
    if (status < 300) expect_request(operation, body);
    expect_answer(schemas_.resolve(*response), answer);
    if (status < 300) seen_.insert(method + " " + pattern);
    return answer;
  }
  void expect_request(const boost_json::value& operation, const std::string& body) {
    if (body.empty()) return;
    const boost_json::object& content = operation.at("requestBody").at("content").as_object();
    const boost_json::value* const type = content.if_contains("application/json");
    if (type == nullptr) return;
    EXPECT_EQ(schemas_.fault(type->at("schema"), parse(body)), "");
  }
  void expect_answer(const boost_json::value& response, const HttpResponse& answer) {
    const boost_json::object& content = response.at("content").as_object();
    const std::string type = answer.content_type.substr(0, answer.content_type.find(';'));
    ASSERT_TRUE(content.contains(type)) << type;
    if (const auto* headers = response.as_object().if_contains("headers")) {
      for (const auto& [name, header] : headers->as_object()) {
        std::string lower(name);
        std::ranges::transform(lower, lower.begin(),
                               [](unsigned char c) { return std::tolower(c); });
        EXPECT_NE(answer.header(lower), "") << lower;
      }
    }
    if (!type.ends_with("json") || type.ends_with("ndjson")) return;
    EXPECT_EQ(schemas_.fault(content.at(type).at("schema"), parse(answer.body)), "");
  }
  std::string id_of(const HttpResponse& answer) {
    return std::string(parse(answer.body).at("id").as_string());
  }
  std::string schedule_one(const std::string& rest) {
    return id_of(check("POST", "/v1/tasks", "/v1/tasks", R"({"queue":"q")" + rest + "}", 201));
  }
  std::string lease_one() {
    const HttpResponse answer = check("POST", "/v1/queues/{queue}/lease", "/v1/queues/q/lease",
                                      R"({"max":1,"worker":"w","visibility_timeout":"60s"})", 200);
    return std::string(parse(answer.body).at("tasks").at(0).at("lease").as_string());
  }

  void use_tasks();
  void use_leases();
  void use_queues();
  void use_schedules();
  void use_the_rest();
  void use_backups();
  void use_events();

  const boost_json::value document_ = parse(openapi_document());
  const SchemaCheck schemas_{document_};
  std::set<std::string> seen_;  // that were answered 2xx
};

TEST_F(OpenapiTest, TheDocumentHasTheRoutesOfTheServerAndNoOthers) {
  std::set<std::string> served;
  for (const Routes::Route& route : routes_->all()) {
    std::string method(route.method);
    std::ranges::transform(method, method.begin(), [](unsigned char c) { return std::tolower(c); });
    served.insert(method + " " + std::string(route.pattern));
  }
  std::set<std::string> described;
  for (const auto& [path, item] : document_.at("paths").as_object()) {
    for (const auto& [word, operation] : item.as_object()) {
      if (word != "parameters") described.insert(std::string(word) + " " + std::string(path));
    }
  }
  EXPECT_EQ(described, served);
}

TEST_F(OpenapiTest, TheDocumentIsServedAndWellFormed) {
  const HttpResponse answer = send("GET", "/openapi.json");
  EXPECT_EQ(answer.status, 200);
  EXPECT_EQ(answer.content_type, "application/json");
  EXPECT_EQ(answer.body, openapi_document());
  EXPECT_EQ(document_.at("openapi").as_string(), "3.1.0");
  EXPECT_EQ(document_.at("info").at("version").as_string(), DETENT_VERSION);
  std::set<std::string> ids;
  for (const auto& [path, item] : document_.at("paths").as_object()) {
    const std::string pattern(path);
    const auto places = static_cast<std::size_t>(std::ranges::count(pattern, '{'));
    const boost_json::value* const shared = item.as_object().if_contains("parameters");
    EXPECT_EQ(shared == nullptr ? 0 : shared->as_array().size(), places) << pattern;
    for (std::size_t i = 0; i < places; ++i) {
      const auto name = schemas_.resolve(shared->at(i)).at("name").as_string();
      EXPECT_NE(pattern.find("{" + std::string(name) + "}"), std::string::npos) << pattern;
    }
    for (const auto& [word, operation] : item.as_object()) {
      if (word == "parameters") continue;
      EXPECT_TRUE(ids.insert(std::string(operation.at("operationId").as_string())).second);
    }
  }
}

TEST_F(OpenapiTest, EveryReferenceLeadsSomewhereAndEveryPartIsUsed) {
  const std::string text(openapi_document());
  std::set<std::string> used;
  const std::string mark = R"("$ref": "#)";
  for (auto at = text.find(mark); at != std::string::npos; at = text.find(mark, at + 1)) {
    const auto begin = at + mark.size();
    const std::string pointer = text.substr(begin, text.find('"', begin) - begin);
    boost_json::error_code missing;
    EXPECT_NE(document_.find_pointer(pointer, missing), nullptr) << pointer;
    used.insert(pointer);
  }
  for (const auto& [kind, parts] : document_.at("components").as_object()) {
    if (kind == "securitySchemes") continue;  // named by `security`, without a reference
    for (const auto& [name, part] : parts.as_object()) {
      EXPECT_TRUE(used.contains("/components/" + std::string(kind) + "/" + std::string(name)))
          << name;
    }
  }
}

void OpenapiTest::use_tasks() {
  const std::string a = schedule_one(R"(,"payload":{"n":1},"delay":"1h","key":"a","priority":7)");
  check("POST", "/v1/tasks", "/v1/tasks",
        R"({"queue":"q","payload":{"n":1},"delay":"1h","key":"a","priority":7})", 200);
  check("POST", "/v1/tasks", "/v1/tasks", R"({"queue":"q","key":"a"})", 409);
  check("POST", "/v1/tasks", "/v1/tasks", R"({"queue":"q","dely":"1h"})", 400);
  const std::string b = schedule_one(
      R"(,"payload_base64":"eA==","due_at":"2030-01-01T00:00:00+02:00","max_attempts":3,)"
      R"("visibility_timeout_ms":5,"backoff":{"initial":"1s","max_ms":2000})");
  check("POST", "/v1/tasks/batch", "/v1/tasks/batch",
        R"([{"queue":"q","delay":"2h"},{"queue":"q","due_at":5000}])", 200);
  const std::string etag(check("GET", "/v1/tasks/{id}", "/v1/tasks/" + a, "", 200).header("etag"));
  check("GET", "/v1/tasks/{id}", "/v1/tasks/" + b, "", 200);
  check("GET", "/v1/tasks/{id}", "/v1/tasks/99", "", 404);
  check("PATCH", "/v1/tasks/{id}", "/v1/tasks/" + a, R"({"priority":1,"payload":[1]})", 200, etag);
  check("PATCH", "/v1/tasks/{id}", "/v1/tasks/" + a, R"({"priority":1})", 412, etag);
  check("PATCH", "/v1/tasks/{id}", "/v1/tasks/" + a, "{}", 400);
  check("PATCH", "/v1/tasks/{id}", "/v1/tasks/" + a,
        R"({"webhook":"https://a","headers":{"X-A":"b"}})", 200);
  check("GET", "/v1/tasks/{id}", "/v1/tasks/" + a, "", 200);
  check("PATCH", "/v1/tasks/{id}", "/v1/tasks/" + a, R"({"webhook":null,"headers":null})", 200);
  check("GET", "/v1/tasks", "/v1/tasks?limit=1", "", 200);
  check("GET", "/v1/tasks", "/v1/tasks?queue=q&state=scheduled", "", 200);
  check("GET", "/v1/tasks", "/v1/tasks?state=delayed", "", 400);
  const std::string by_key = "/v1/queues/{queue}/keys/{key}";
  check("GET", by_key, "/v1/queues/q/keys/a", "", 200);
  check("PATCH", by_key, "/v1/queues/q/keys/a", R"({"delay_ms":5})", 200);
  check("DELETE", by_key, "/v1/queues/q/keys/a", "", 200);
  check("DELETE", by_key, "/v1/queues/q/keys/a", "", 404);
  check("POST", "/v1/tasks/{id}/run", "/v1/tasks/" + b + "/run", "{}", 200);
  check("POST", "/v1/tasks/move", "/v1/tasks/move", R"({"ids":[")" + b + R"("],"delay":"1h"})",
        200);
  check("POST", "/v1/tasks/move", "/v1/tasks/move", R"({"ids":[]})", 400);
  check("POST", "/v1/tasks/cancel", "/v1/tasks/cancel", R"({"queue":"q","keys":["none"]})", 200);
  check("POST", "/v1/tasks/cancel", "/v1/tasks/cancel", R"({"ids":[")" + b + R"("]})", 200);
  check("DELETE", "/v1/tasks/{id}", "/v1/tasks/" + schedule_one(""), "", 200);
}

void OpenapiTest::use_leases() {
  const auto leases = [](const std::string& lease) { return R"({"leases":[")" + lease + R"("])"; };
  schedule_one(R"(,"key":"k","max_attempts":1,"headers":{"X-A":"b"})");
  const std::string lease = lease_one();
  check("POST", "/v1/leases/extend", "/v1/leases/extend", leases(lease) + R"(,"by":"60s"})", 200);
  check("POST", "/v1/leases/extend", "/v1/leases/extend", leases(lease) + "}", 400);
  check("POST", "/v1/leases/release", "/v1/leases/release", leases(lease) + R"(,"priority":3})",
        200);
  check("POST", "/v1/leases/fail", "/v1/leases/fail", leases(lease_one()) + R"(,"error":"no"})",
        200);
  check("GET", "/v1/tasks", "/v1/tasks?state=dead", "", 200);
  check("POST", "/v1/queues/{queue}/redrive", "/v1/queues/q/redrive", "", 200);
  const std::string second = lease_one();
  check("POST", "/v1/leases/complete", "/v1/leases/complete", leases(second) + "}", 200);
  check("POST", "/v1/leases/complete", "/v1/leases/complete", leases(second) + "}", 200);
  check("POST", "/v1/queues/{queue}/lease", "/v1/queues/q/lease", R"({"max":0})", 400);
}

void OpenapiTest::use_queues() {
  const std::string queue = "/v1/queues/{queue}";
  check("PATCH", queue, "/v1/queues/q",
        R"({"rate":50,"retention":"1d","max_attempts":null,"backoff":{"initial":"1s"}})", 200);
  check("PATCH", queue, "/v1/queues/q",
        R"({"webhook":{"url":"https://a","keys":["whsec_AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA"]}})",
        200);
  check("PATCH", queue, "/v1/queues/q", R"({"webhook":"https://a"})", 200);
  check("PATCH", queue, "/v1/queues/q", R"({"sink":"events"})", 200);
  check("PATCH", queue, "/v1/queues/q", R"({"webhook":null,"sink":null})", 200);
  check("PATCH", queue, "/v1/queues/q", R"({"rat":50})", 400);
  check("GET", queue, "/v1/queues/q", "", 200);
  check("GET", queue, "/v1/queues/none", "", 404);
  check("GET", "/v1/queues", "/v1/queues", "", 200);
  check("POST", queue + "/pause", "/v1/queues/q/pause", "{}", 200);
  check("POST", queue + "/resume", "/v1/queues/q/resume", "", 200);
  schedule_one("");
  check("DELETE", queue, "/v1/queues/q", "", 409);
  check("POST", queue + "/purge", "/v1/queues/q/purge", "", 200);
  check("POST", queue + "/purge", "/v1/queues/none/purge", "", 404);
  check("DELETE", queue, "/v1/queues/q", "", 200);
}

void OpenapiTest::use_schedules() {
  const std::string one = "/v1/schedules/{name}";
  check("PUT", one, "/v1/schedules/s", R"({"cron":"0 9 * * *","queue":"q","payload":[1]})", 201);
  check("PUT", one, "/v1/schedules/s", R"({"every":"1h","queue":"q","count":500})", 200);
  check("PUT", one, "/v1/schedules/s", R"({"cron":"x","queue":"q"})", 400);
  check("GET", one, "/v1/schedules/s", "", 200);
  check("GET", one, "/v1/schedules/none", "", 404);
  check("GET", "/v1/schedules", "/v1/schedules?limit=1", "", 200);
  check("GET", one + "/next", "/v1/schedules/s/next?count=2", "", 200);
  check("POST", "/v1/occurrences", "/v1/occurrences?count=2&name=s",
        R"({"cron":"0 9 * * *","queue":"q"})", 200);
  check("POST", "/v1/occurrences", "/v1/occurrences", R"({"cron":"x","queue":"q"})", 400);
  check("POST", one + "/pause", "/v1/schedules/s/pause", "", 200);
  check("POST", one + "/resume", "/v1/schedules/s/resume", "", 200);
  check("POST", one + "/trigger", "/v1/schedules/s/trigger", "{}", 201);
  check("POST", one + "/backfill", "/v1/schedules/s/backfill",
        R"({"from":"2019-12-31T20:00:00Z","to":"2019-12-31T23:00:00Z"})", 200);
  check("DELETE", one, "/v1/schedules/s", "", 200);
}

/// Reads only the beginning of a stream, because a stream does not end.
void OpenapiTest::use_events() {
  test::RawSocket client(http_->port());
  client.send("GET /v1/events HTTP/1.1\r\nHost: localhost\r\n\r\n");
  std::string read;
  while (read.find("event: stats\ndata: ") == std::string::npos || !read.ends_with("}\n\n")) {
    const std::string byte = client.read(1);
    ASSERT_NE(byte, "") << read;
    read += byte;
  }
  EXPECT_NE(read.find("Content-Type: text/event-stream\r\n"), std::string::npos) << read;
  const boost_json::value& content =
      document_.at("paths").at("/v1/events").at("get").at("responses").at("200").at("content");
  EXPECT_TRUE(content.as_object().contains("text/event-stream"));
  // A point, and one thing more.
  const std::size_t at = read.find("data: ") + 6;
  boost_json::object data = parse(read.substr(at, read.find('\n', at) - at)).as_object();
  EXPECT_TRUE(data.erase("recent") == 1);
  EXPECT_EQ(schemas_.fault(document_.at_pointer("/components/schemas/StatsPoint"), data), "");
  seen_.insert("GET /v1/events");
}

void OpenapiTest::use_the_rest() {
  schedule_one(R"(,"delay":"5m")");
  for (const char* const path :
       {"/", "/v1/stats", "/v1/forecast", "/v1/wheel", "/v1/dump", "/v1/cluster", "/healthz",
        "/readyz", "/metrics", "/openapi.json"}) {
    check("GET", path, path, "", 200);
  }
  check("GET", "/assets/{name}", "/assets/app.js", "", 200);
  check("GET", "/assets/{name}", "/assets/style.css", "", 200);
  check("GET", "/assets/{name}", "/assets/none", "", 404);
  check("GET", "/v1/stats", "/v1/stats?queues=-1", "", 400);
  advance(10s);
  check("GET", "/v1/stats/history", "/v1/stats/history?span=1h&step=10s", "", 200);
  check("GET", "/v1/stats/history", "/v1/stats/history?step=1s", "", 400);
  schedule_one("");
  lease_one();
  advance(10s);
  check("GET", "/v1/stats/history", "/v1/stats/history?queue=q", "", 200);
  check("GET", "/v1/stats/history", "/v1/stats/history?queue=unknown", "", 404);
  check("GET", "/v1/forecast", "/v1/forecast?queue=q", "", 200);
  check("GET", "/v1/forecast", "/v1/forecast?queue=unknown", "", 404);
  check("GET", "/v1/events", "/v1/events?types=all", "", 400);
  use_events();
  check("GET", "/v1/forecast", "/v1/forecast?bins=0", "", 400);
  check("POST", "/v1/restore", "/v1/restore", send("GET", "/v1/dump").body + "{\"end\":}\n", 200);
  check("POST", "/v1/backup", "/v1/backup", "", 409);
}

void OpenapiTest::use_backups() {
  BackupsRig rig(clock_);
  listen_with({.backups = &rig.backups});
  check("POST", "/v1/backup", "/v1/backup", "", 201);
  check("POST", "/v1/backup/end", "/v1/backup/end",
        R"({"bytes":7,"copied_bytes":3,"made_at":"2019-12-31T00:00:00.000Z"})", 200);
  check("POST", "/v1/backup/end", "/v1/backup/end", R"({"bytes":"x"})", 400);
  http_->stop(0ms);
}

TEST_F(OpenapiTest, AnswersOfEveryRouteAreAsTheDocumentSays) {
  use_tasks();
  use_leases();
  use_queues();
  use_schedules();
  use_the_rest();
  use_backups();
  for (const Routes::Route& route : routes_->all()) {
    const std::string name = std::string(route.method) + " " + std::string(route.pattern);
    EXPECT_TRUE(seen_.contains(name)) << name << " was not used";
  }
}

TEST_F(OpenapiTest, TheCheckFindsValuesThatBreakTheSchema) {
  const boost_json::value& task = document_.at_pointer("/components/schemas/AcceptedTask");
  const std::string sound =
      R"({"id":"256","queue":"q","state":"ready","due_at":"2026-01-02T03:04:05.678Z")";
  EXPECT_EQ(schemas_.fault(task, parse(sound + "}")), "");
  EXPECT_NE(schemas_.fault(task, parse(sound + R"(,"more":1})")), "");
  EXPECT_NE(schemas_.fault(task, parse(R"({"id":"256"})")), "");
  EXPECT_NE(schemas_.fault(task, parse(sound + R"(,"was_there":1})")), "");
  EXPECT_NE(schemas_.fault(task, parse("[]")), "");
}

}  // namespace
}  // namespace detent::server

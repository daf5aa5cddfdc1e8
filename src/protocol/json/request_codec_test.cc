#include "protocol/json/request_codec.h"

#include <gtest/gtest.h>

#include <array>
#include <string>
#include <string_view>
#include <vector>

namespace detent::json {
namespace {

using std::chrono::milliseconds;

/// A body with a queue and these members.
std::string task_with(std::string_view members) {
  return R"({"queue":"q",)" + std::string(members) + "}";
}

TEST(ParseSchedule, AQueueIsEnough) {
  const auto request = parse_schedule(R"({"queue":"mail"})");
  ASSERT_TRUE(request);
  EXPECT_EQ(request->queue, "mail");
  EXPECT_EQ(request->payload, (Payload{Payload::Kind::json, "null"}));
  EXPECT_EQ(request->rules, TaskRules{});
  EXPECT_EQ(request->due, Due{milliseconds{0}});
  EXPECT_EQ(request->key, "");
}

TEST(ParseSchedule, ReadsEveryField) {
  const auto request = parse_schedule(R"({
    "backoff": {"max": "PT10M", "initial_ms": 250}, "visibility_timeout": "90s", "priority": 0,
    "max_attempts": 3, "delay": "1h", "payload_base64": "AP8=", "queue": "mail",
    "key": "order \u00e9", "on_key": "postpone", "max_wait": "5m"})");
  ASSERT_TRUE(request);
  EXPECT_EQ(request->on_key, OnKey::postpone);
  EXPECT_EQ(request->max_wait, milliseconds{300'000});
  EXPECT_EQ(request->key, "order \xC3\xA9");
  EXPECT_EQ(request->payload, (Payload{Payload::Kind::bytes, std::string("\0\xFF", 2)}));
  EXPECT_EQ(request->due, Due{milliseconds{3'600'000}});
  EXPECT_EQ(request->rules,
            (TaskRules{.priority = 0,
                       .max_attempts = 3,
                       .visibility_timeout = milliseconds{90'000},
                       .backoff = Backoff{milliseconds{250}, milliseconds{600'000}}}));
}

TEST(ParseSchedule, KeepsAJsonPayloadByteForByte) {
  for (const std::string_view payload :
       {"1.0", "1e400", "-0", "1e99999999999", "123456789012345678901234567890", "null", "\"\"",
        R"("\u00e9 \ud83d\ude00 \/ \" ] }")", "{ \"b\" : 1 ,\n\t\"a\" : [ ] , \"a\" : {} }",
        "\"h\xC3\xA9 \xF0\x9F\x98\x80\"", R"([[{"payload":"}"}],{"queue":1}])"}) {
    for (const std::string_view space : {"", " ", "\n\t "}) {
      std::string body = "{\"queue\":\"q\",\"payload\":";
      body.append(space).append(payload).append(space).append(",\"priority\":7}");
      const auto request = parse_schedule(body);
      ASSERT_TRUE(request) << payload << ": " << request.error().message;
      EXPECT_EQ(request->payload.kind, Payload::Kind::json);
      EXPECT_EQ(request->payload.data, payload);
      EXPECT_EQ(request->rules.priority, 7U);
    }
  }
}

TEST(ParseSchedule, TakesADateInBothForms) {
  const WallTime at{milliseconds{1'767'323'045'678}};
  EXPECT_EQ(parse_schedule(task_with(R"("due_at":"2026-01-02T03:04:05.678Z")"))->due, Due{at});
  EXPECT_EQ(parse_schedule(task_with(R"("due_at":1767323045678)"))->due, Due{at});
}

TEST(ParseSchedule, TakesTheLongestDelayAndNoMore) {
  EXPECT_EQ(parse_schedule(task_with(R"("delay_ms":4294967295000)"))->due, Due{kMaxDelay});
  EXPECT_EQ(parse_schedule(task_with(R"("delay":"4294967295s")"))->due, Due{kMaxDelay});
  EXPECT_EQ(parse_schedule(task_with(R"("delay_ms":4294967295001)")).error().field, "delay_ms");
}

TEST(ParseSchedule, AnInitialBackoffAboveTheDefaultMaximumRaisesTheMaximum) {
  const auto request = parse_schedule(task_with(R"("backoff":{"initial":"2h"})"));
  EXPECT_EQ(request->rules.backoff, (Backoff{milliseconds{7'200'000}, milliseconds{7'200'000}}));
}

/// Wrong members of a task, and the field that the error must name.
struct Wrong {
  const char* members;
  const char* field;
};
constexpr Wrong kWrongMembers[] = {
    {R"("colour":1)", "colour"},
    {R"("Queue":"x")", "Queue"},
    {R"("queue":"x")", "queue"},  // task_with() also adds a queue, so the field is repeated
    {R"("payload":1,"payload":1)", "payload"},
    {R"("payload":1,"payload_base64":"")", "payload_base64"},
    {R"("payload_base64":"AP8")", "payload_base64"},
    {R"("payload_base64":5)", "payload_base64"},
    {R"("delay":30)", "delay"},
    {R"("delay":1e30)", "delay"},
    {R"("delay":null)", "delay"},
    {R"("delay":"")", "delay"},
    {R"("delay":"30")", "delay"},
    {R"("delay":"-1s")", "delay"},
    {R"("delay":"1 fortnight")", "delay"},
    {R"("delay":"P1M")", "delay"},
    {R"("delay":"P1Y")", "delay"},
    {R"("delay":"4294967296s")", "delay"},
    {R"("delay":"18446744073709551616ms")", "delay"},
    {R"("delay_ms":-1)", "delay_ms"},
    {R"("delay_ms":1.5)", "delay_ms"},
    {R"("delay_ms":1.0)", "delay_ms"},
    {R"("delay_ms":1e3)", "delay_ms"},
    {R"("delay_ms":1e30)", "delay_ms"},
    {R"("delay_ms":"5")", "delay_ms"},
    {R"("delay_ms":9223372036854775808)", "delay_ms"},
    {R"("delay_ms":18446744073709551615)", "delay_ms"},
    {R"("delay_ms":18446744073709551616)", "delay_ms"},
    {R"("delay":"1s","delay_ms":1000)", "delay_ms"},
    {R"("delay":"1s","due_at":0)", "due_at"},
    {R"("delay_ms":1,"due_at":0)", "due_at"},
    {R"("due_at":-1)", "due_at"},
    {R"("due_at":1.5)", "due_at"},
    {R"("due_at":253402300800000)", "due_at"},
    {R"("due_at":18446744073709551616)", "due_at"},
    {R"("due_at":"10000-01-01T00:00:00Z")", "due_at"},
    {R"("due_at":"2026-02-30T00:00:00Z")", "due_at"},
    {R"("due_at":"soon")", "due_at"},
    {R"("due_at":{})", "due_at"},
    {R"("priority":-1)", "priority"},
    {R"("priority":4294967296)", "priority"},
    {R"("priority":1e3)", "priority"},
    {R"("priority":"high")", "priority"},
    {R"("max_attempts":0)", "max_attempts"},
    {R"("max_attempts":1000001)", "max_attempts"},
    {R"("max_attempts":1.5)", "max_attempts"},
    {R"("visibility_timeout":60)", "visibility_timeout"},
    {R"("visibility_timeout":"31d")", "visibility_timeout"},
    {R"("visibility_timeout_ms":-1)", "visibility_timeout_ms"},
    {R"("backoff":"1s")", "backoff"},
    {R"("backoff":[])", "backoff"},
    {R"("backoff":{"initial":1})", "backoff.initial"},
    {R"("backoff":{"max_ms":-1})", "backoff.max_ms"},
    {R"("backoff":{"jitter":1})", "backoff.jitter"},
    {R"("backoff":{"backoff":1})", "backoff.backoff"},
    {R"("key":5)", "key"},
    {R"("key":null)", "key"},
    {R"("key":"a","key":"a")", "key"},
    {R"("key":"a","on_key":"drop")", "on_key"},
    {R"("key":"a","on_key":"replace","max_wait":5)", "max_wait"},
    {R"("webhook":5)", "webhook"},
    {R"("webhook":"")", "webhook"},
    {R"("webhook":{"url":"http://a"})", "webhook"},
    {R"("headers":[])", "headers"},
    {R"("headers":"a: b")", "headers"},
    {R"("headers":{"a":1})", "headers"},
    {R"("headers":{"a":null})", "headers"},
    {R"("headers":{"1":"","2":"","3":"","4":"","5":"","6":"","7":"","8":"","9":"","10":"",)"
     R"("11":"","12":"","13":"","14":"","15":"","16":"","17":""})",
     "headers"},
};

TEST(ParseSchedule, EveryWrongFieldIsNamed) {
  for (const Wrong& wrong : kWrongMembers) {
    const auto request = parse_schedule(task_with(wrong.members));
    ASSERT_FALSE(request) << wrong.members;
    EXPECT_EQ(request.error().code, ErrorCode::invalid_argument) << wrong.members;
    EXPECT_EQ(request.error().field, wrong.field) << wrong.members;
    EXPECT_FALSE(request.error().message.empty());
  }
}

TEST(ParseSchedule, AWebhookAndHeadersAreKeptUnchanged) {
  const auto request = parse_schedule(
      task_with(R"("webhook":"https:\/\/a\u002fb","headers":{"X-B":"\"1\"","a":""})"));
  ASSERT_TRUE(request) << request.error().message;
  EXPECT_EQ(request->webhook, "https://a/b");
  EXPECT_EQ(request->headers, (TaskHeaders{{"X-B", "\"1\""}, {"a", ""}}));
  const auto without = parse_schedule(task_with(R"("webhook":null,"headers":null)"));
  ASSERT_TRUE(without);
  EXPECT_EQ(without->webhook, "");
  EXPECT_TRUE(without->headers.empty());
  // validate() checks the values. It refuses a repeated name, and ignores the case of letters.
  const auto twice = parse_schedule(task_with(R"("headers":{"a":"1","A":"2"})"));
  EXPECT_EQ(validate(*twice).error().field, "headers");
}

TEST(ParseSchedule, ABodyOfTheWrongFormIsRefused) {
  for (const std::string_view body :
       {"", " ", "null", "[]", "\"q\"", "{", "{}", R"({"queue":5})", R"({"queue":null})",
        R"({"queue":"q"} x)", R"({"queue":"q",})", "{\"queue\":\"\xFF\"}", "\xEF\xBB\xBF{}",
        R"({"queue":"\ud800"})", R"({'queue':'q'})"}) {
    const auto request = parse_schedule(body);
    ASSERT_FALSE(request) << body;
    EXPECT_EQ(request.error().code, ErrorCode::invalid_argument) << body;
  }
  EXPECT_EQ(parse_schedule("{}").error().message, "queue is required");
}

TEST(ParseScheduleBatch, AnArrayGivesAResultEach) {
  const auto requests = parse_schedule_batch(
      R"([{"queue":"a","payload":[1, 2]}, 5, {"queue":"b","dely":"1s"}, {"queue":"c"}])",
      "application/json");
  ASSERT_TRUE(requests);
  ASSERT_EQ(requests->size(), 4U);
  EXPECT_EQ((*requests)[0]->payload.data, "[1, 2]");
  EXPECT_EQ((*requests)[1].error().code, ErrorCode::invalid_argument);
  EXPECT_EQ((*requests)[2].error().field, "dely");
  EXPECT_EQ((*requests)[3]->queue, "c");
}

TEST(ParseScheduleBatch, LinesGiveAResultEach) {
  constexpr std::string_view kBody =
      "{\"queue\":\"a\"}\r\n\n  "
      "{\"queue\":\"b\",\"payload\":\"x\"}\n{\"queue\":\n{\"queue\":\"c\"}";
  for (const char* type :
       {"application/x-ndjson", "application/x-ndjson; charset=utf-8", "application/json", ""}) {
    const auto requests = parse_schedule_batch(kBody, type);
    ASSERT_TRUE(requests) << type;
    ASSERT_EQ(requests->size(), 4U) << type;
    EXPECT_EQ((*requests)[1]->payload.data, "\"x\"");
    EXPECT_FALSE((*requests)[2]);
    EXPECT_EQ((*requests)[3]->queue, "c");
  }
}

TEST(ParseScheduleBatch, AnEmptyBatchHasNoTasks) {
  EXPECT_EQ(parse_schedule_batch("[]", "")->size(), 0U);
  EXPECT_EQ(parse_schedule_batch("\n", "application/x-ndjson")->size(), 0U);
}

TEST(ParseScheduleBatch, BadFramingFailsAsAWhole) {
  for (const char* body : {"", "[", "[{\"queue\":\"a\"}", "[{\"queue\":\"a\"},]", "[1] [2]", "null",
                           "\"x\"", "[{\"queue\":\"\xFF\"}]"}) {
    const auto requests = parse_schedule_batch(body, "application/json");
    ASSERT_FALSE(requests) << body;
    EXPECT_EQ(requests.error().code, ErrorCode::invalid_argument) << body;
  }
}

TEST(ParseScheduleBatch, TheLimitIsExact) {
  std::string array = "[0";
  std::string lines = "{}\n";
  for (std::size_t i = 1; i < kMaxBatchTasks; ++i) {
    array += ",0";
    lines += "{}\n";
  }
  EXPECT_EQ(parse_schedule_batch(array + "]", "")->size(), kMaxBatchTasks);
  EXPECT_EQ(parse_schedule_batch(lines, "")->size(), kMaxBatchTasks);
  EXPECT_EQ(parse_schedule_batch(array + ",0]", "").error().code, ErrorCode::too_large);
  EXPECT_EQ(parse_schedule_batch(lines + "{}", "").error().code, ErrorCode::too_large);
}

TEST(ParseLease, AnEmptyBodyAsksForTheDefaults) {
  for (const char* body : {"", " \n", "{}"}) {
    const auto call = parse_lease("q", body);
    ASSERT_TRUE(call) << body;
    EXPECT_EQ(call->lease.queue, "q");
    EXPECT_EQ(call->lease.max, 1U);
    EXPECT_EQ(call->lease.visibility_timeout, std::nullopt);
    EXPECT_EQ(call->wait, milliseconds{0});
  }
}

TEST(ParseLease, ReadsEveryField) {
  const auto call =
      parse_lease("q", R"({"max":1000,"wait":"20s","visibility_timeout_ms":1500,"worker":"w-1"})");
  ASSERT_TRUE(call);
  EXPECT_EQ(call->lease.max, 1000U);
  EXPECT_EQ(call->wait, milliseconds{20'000});
  EXPECT_EQ(call->lease.visibility_timeout, milliseconds{1500});
  EXPECT_EQ(call->lease.worker, "w-1");
}

TEST(ParseLease, EveryWrongFieldIsNamed) {
  constexpr std::pair<const char*, const char*> kWrong[] = {
      {R"({"max":0})", "max"},
      {R"({"max":1001})", "max"},
      {R"({"max":"5"})", "max"},
      {R"({"max":18446744073709551617})", "max"},
      {R"({"wait":20})", "wait"},
      {R"({"wait":"61s"})", "wait"},
      {R"({"wait_ms":60001})", "wait_ms"},
      {R"({"worker":1})", "worker"},
      {R"({"queue":"q"})", "queue"},
      {R"({"visibility_timeout":"31d"})", "visibility_timeout"}};
  for (const auto& [body, field] : kWrong) {
    const auto call = parse_lease("q", body);
    ASSERT_FALSE(call) << body;
    EXPECT_EQ(call.error().code, ErrorCode::invalid_argument) << body;
    EXPECT_EQ(call.error().field, field) << body;
  }
}

TEST(ParseComplete, ATextThatCannotBeALeaseIsNotAnError) {
  const LeaseToken token{7, 42};
  const auto leases =
      parse_complete(R"({"leases":[")" + to_string(token) + R"(","","nonsense","\u0000"]})");
  ASSERT_TRUE(leases);
  EXPECT_EQ(*leases, (LeaseList{token, std::nullopt, std::nullopt, std::nullopt}));
}

TEST(ParseComplete, EveryWrongFieldIsNamed) {
  for (const char* body : {"{}", R"({"leases":"x"})", R"({"leases":[1]})", R"({"leases":null})"}) {
    const auto leases = parse_complete(body);
    ASSERT_FALSE(leases) << body;
    EXPECT_EQ(leases.error().field, "leases") << body;
  }
  EXPECT_EQ(parse_complete(R"({"leases":[],"error":"x"})").error().field, "error");
}

TEST(ParseComplete, TooManyLeasesAreTooLarge) {
  std::string body = R"({"leases":[""])";
  body.resize(body.size() - 1);
  for (std::size_t i = 0; i < kMaxBatchTasks; ++i) body += R"(,"")";
  const auto leases = parse_complete(body + "]}");
  ASSERT_FALSE(leases);
  EXPECT_EQ(leases.error().code, ErrorCode::too_large);
  EXPECT_EQ(leases.error().field, "leases");
}

TEST(ParseFail, ReadsEveryField) {
  const auto call = parse_fail(R"({"error":"no route\n","delay":"5m","leases":["?"]})");
  ASSERT_TRUE(call);
  EXPECT_EQ(call->leases.size(), 1U);
  EXPECT_EQ(call->delay, milliseconds{300'000});
  EXPECT_EQ(call->error, "no route\n");
  EXPECT_FALSE(call->final);
  EXPECT_TRUE(parse_fail(R"({"leases":[],"final":true})")->final);
  const auto least = parse_fail(R"({"leases":[]})");
  ASSERT_TRUE(least);
  EXPECT_EQ(least->delay, std::nullopt);
}

TEST(ParseFail, EveryWrongFieldIsNamed) {
  EXPECT_EQ(parse_fail(R"({"leases":[],"delay":5})").error().field, "delay");
  EXPECT_EQ(parse_fail(R"({"leases":[],"error":5})").error().field, "error");
  EXPECT_EQ(parse_fail(R"({"leases":[],"by":"5s"})").error().field, "by");
  EXPECT_EQ(parse_fail(R"({"leases":[],"final":"yes"})").error().field, "final");
  EXPECT_EQ(parse_fail(R"({"leases":[],"final":true,"delay":"0s"})").error().field, "final");
  EXPECT_EQ(parse_fail(R"({"error":"x"})").error().field, "leases");
}

// The server must read equal values from the requests that clients write.
std::vector<ScheduleRequest> examples() {
  std::vector<ScheduleRequest> requests(4);
  requests[0].queue = "plain";
  requests[1] = {.queue = "a/b;$(x)",
                 .payload = {Payload::Kind::json, "{ \"n\" : 1.0 ,\n\"s\":\"}\\\"\" }"},
                 .rules = {.priority = 0,
                           .max_attempts = 3,
                           .visibility_timeout = milliseconds{1500},
                           .backoff = Backoff{milliseconds{0}, milliseconds{1}}},
                 .due = kMaxDelay,
                 .key = "a \"key\"",
                 .webhook = "https://a/b?c='d'",
                 .headers = {{"X-A", "\"\\"}, {"!#$%&'*+-.^_`|~", ""}}};
  requests[2] = {.queue = "bytes",
                 .payload = {Payload::Kind::bytes, std::string("\0\xFF\"\\\n", 5)},
                 .rules = {},
                 .due = WallTime{milliseconds{253'402'300'799'999}}};
  requests[3] = {
      .queue = "empty", .payload = {Payload::Kind::bytes, ""}, .rules = {}, .due = WallTime{}};
  return requests;
}

void expect_same(const ScheduleRequest& read, const ScheduleRequest& written) {
  EXPECT_EQ(read.queue, written.queue);
  EXPECT_EQ(read.payload, written.payload);
  EXPECT_EQ(read.rules, written.rules);
  EXPECT_EQ(read.due, written.due);
  EXPECT_EQ(read.key, written.key);
  EXPECT_EQ(read.webhook, written.webhook);
  EXPECT_EQ(read.headers, written.headers);
}

TEST(RenderRequest, ASchedulingComesBackAsItWas) {
  for (const ScheduleRequest& written : examples()) {
    const auto read = parse_schedule(render_schedule(written));
    ASSERT_TRUE(read) << read.error().message;
    expect_same(*read, written);
  }
}

TEST(RenderRequest, ABatchComesBackAsItWas) {
  const std::vector<ScheduleRequest> written = examples();
  const auto read = parse_schedule_batch(render_schedule_batch(written), "application/json");
  ASSERT_TRUE(read);
  ASSERT_EQ(read->size(), written.size());
  for (std::size_t i = 0; i < written.size(); ++i) expect_same(*(*read)[i], written[i]);
}

TEST(RenderRequest, NamesOfManyTasksComeBackAsTheyWere) {
  const TaskNames ids{.ids = {TaskId{256}, TaskId{512}}};
  EXPECT_EQ(parse_cancel_batch(render_cancel_batch(ids))->ids, ids.ids);
  const TaskNames keys{.queue = "q", .keys = {"a \"1\"", "é"}};
  const auto read = parse_move_batch(render_move_batch({.tasks = keys, .due = milliseconds{5}}));
  ASSERT_TRUE(read) << read.error().message;
  EXPECT_EQ(read->tasks.queue, "q");
  EXPECT_EQ(read->tasks.keys, keys.keys);
  EXPECT_EQ(read->due, Due{milliseconds{5}});
}

TEST(RenderRequest, AnEditComesBackAsItWasAndSaysNothingElse) {
  const TaskEdit whole{.due = WallTime{milliseconds{7}},
                       .priority = 3,
                       .payload = Payload{Payload::Kind::json, "[1, 2]"},
                       .webhook = "https://example.org/hook",
                       .headers = TaskHeaders{{"X-Tenant", "a \"1\""}}};
  const auto read = parse_edit(render_edit(whole));
  ASSERT_TRUE(read) << read.error().message;
  EXPECT_EQ(read->due, whole.due);
  EXPECT_EQ(read->priority, whole.priority);
  EXPECT_EQ(read->payload, whole.payload);
  EXPECT_EQ(read->webhook, whole.webhook);
  EXPECT_EQ(read->headers, whole.headers);
  EXPECT_EQ(render_edit({.priority = 0}), R"({"priority":0})");
  EXPECT_EQ(render_edit({.webhook = ""}), R"({"webhook":null})");
  EXPECT_EQ(render_edit({.headers = TaskHeaders()}), R"({"headers":null})");
}

TEST(RenderRequest, ALeaseComesBackAsItWas) {
  LeaseCall call;
  call.lease = {.queue = "q", .max = 7, .visibility_timeout = milliseconds{9}, .worker = "w \"1\""};
  call.wait = milliseconds{20'000};
  const auto read = parse_lease("q", render_lease(call));
  ASSERT_TRUE(read);
  EXPECT_EQ(read->lease.max, 7U);
  EXPECT_EQ(read->lease.visibility_timeout, milliseconds{9});
  EXPECT_EQ(read->lease.worker, "w \"1\"");
  EXPECT_EQ(read->wait, milliseconds{20'000});
}

TEST(RenderRequest, LeasesComeBackAsTheyWere) {
  const std::array<std::string, 2> leases{to_string(LeaseToken{1, 2}), "no \"lease\""};
  const LeaseList expected{LeaseToken{1, 2}, std::nullopt};
  EXPECT_EQ(parse_complete(render_complete(leases)), expected);

  const auto failed = parse_fail(render_fail(leases, {.delay = milliseconds{5}, .error = "why\n"}));
  ASSERT_TRUE(failed);
  EXPECT_EQ(failed->leases, expected);
  EXPECT_EQ(failed->delay, milliseconds{5});
  EXPECT_EQ(failed->error, "why\n");
  EXPECT_EQ(parse_fail(render_fail(leases, {}))->delay, std::nullopt);
  EXPECT_FALSE(parse_fail(render_fail(leases, {}))->final);
  EXPECT_TRUE(parse_fail(render_fail(leases, {.final = true}))->final);
}

}  // namespace
}  // namespace detent::json

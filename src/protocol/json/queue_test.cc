// Bodies about queues and the requests for tasks and leases: written bodies are read back into
// equal values, and the error of a wrong body names the field.
#include <gtest/gtest.h>

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "protocol/json/queue_codec.h"
#include "protocol/json/request_codec.h"

namespace detent::json {
namespace {

using std::chrono::milliseconds;

QueueSettings full_settings() {
  return {.paused = true,
          .max_attempts = 7,
          .visibility_timeout = milliseconds{5'000},
          .backoff = Backoff{.initial = milliseconds{10}, .max = milliseconds{20}},
          .retention = milliseconds{1},
          .key_retention = milliseconds{2},
          .max_tasks = 18'446'744'073'709'551'615U,
          .max_bytes = 0,
          .rate = 1'000'000,
          .concurrency = 1,
          .webhook = QueueWebhook{.url = "https://a/b"},
          .partitions = 4};
}

QueueView example_view(QueueSettings settings) {
  return {.stats = {.queue = "a/b",
                    .scheduled = 1,
                    .ready = 2,
                    .leased = 3,
                    .dead = 4,
                    .oldest_ready_age = milliseconds{1'500},
                    .last_handed_out_age = milliseconds{250}},
          .bytes = 99,
          .settings = std::move(settings)};
}

template <class T>
std::optional<std::optional<T>> unset() {
  return std::make_optional(std::optional<T>());
}

/// The field of the error.
template <class T>
std::string refused_field(const Result<T>& result) {
  return result ? "none: it was accepted" : result.error().field;
}
/// True if the error says that the server's answer is unreadable.
template <class T>
bool is_bad_answer(const Result<T>& result) {
  return !result && result.error().code == ErrorCode::internal;
}

/// A patch with only these members.
QueuePatch patch_of(const std::string& members) {
  const auto patch = parse_queue_patch("{" + members + "}");
  EXPECT_TRUE(patch) << members << ": " << patch.error().message;
  return patch ? *patch : QueuePatch{};
}

TEST(Queue, AnAnswerShowsEverySetting) {
  EXPECT_EQ(render_queue(example_view(full_settings())),
            R"({"queue":"a/b","scheduled":1,"ready":2,"leased":3,"dead":4,)"
            R"("oldest_ready_age_ms":1500,"last_handed_out_age_ms":250,"bytes":99,)"
            R"("settings":{"paused":true,"max_attempts":7,)"
            R"("visibility_timeout_ms":5000,"backoff":{"initial_ms":10,"max_ms":20},)"
            R"("retention_ms":1,"key_retention_ms":2,"max_tasks":18446744073709551615,)"
            R"("max_bytes":0,"rate":1000000,"concurrency":1,)"
            R"("webhook":{"url":"https://a/b","keys":[]},"sink":null,"partitions":4}})");
  QueueView plain{};
  plain.stats.queue = "q";
  EXPECT_EQ(render_queue(plain),
            R"({"queue":"q","scheduled":0,"ready":0,"leased":0,"dead":0,)"
            R"("oldest_ready_age_ms":null,"last_handed_out_age_ms":null,"bytes":0,)"
            R"("settings":{"paused":false,)"
            R"("max_attempts":null,"visibility_timeout_ms":null,"backoff":null,"retention_ms":0,)"
            R"("key_retention_ms":600000,"max_tasks":null,"max_bytes":null,"rate":null,)"
            R"("concurrency":null,"webhook":null,"sink":null,"partitions":1}})");
}

TEST(Queue, AnswersAreReadBack) {
  const std::vector<QueueView> views{example_view(full_settings()), example_view({})};
  for (const QueueView& view : views) EXPECT_EQ(parse_queue(render_queue(view)).value(), view);
  EXPECT_EQ(parse_queues(render_queues(views)).value(), views);
  EXPECT_EQ(render_queues({}), R"({"queues":[]})");
  EXPECT_EQ(parse_count(render_count(1'000'000)).value(), 1'000'000U);
}

TEST(Queue, TheSettingsOfAnAnswerAreAPatch) {
  for (const QueueSettings& settings : {full_settings(), QueueSettings{}}) {
    const std::string body = render_queue(example_view(settings));
    const std::size_t at = body.find(R"("settings":)") + sizeof(R"("settings":)") - 1;
    const auto patch = parse_queue_patch(body.substr(at, body.size() - at - 1));
    ASSERT_TRUE(patch) << patch.error().message;
    EXPECT_EQ(patch->applied_to({}), settings);
    EXPECT_EQ(patch->applied_to(full_settings()), settings);
  }
}

TEST(Queue, AnUnreadableAnswerIsAnInternalError) {
  for (const char* body :
       {"", "[]", R"({"queue":"q"})",
        R"({"queue":"q","scheduled":0,"ready":0,"leased":0,"dead":0,"bytes":0})",
        R"({"queue":"q","scheduled":0,"ready":0,"leased":0,"dead":0,"bytes":0,"settings":[]})"}) {
    EXPECT_TRUE(is_bad_answer(parse_queue(body))) << body;
  }
  EXPECT_TRUE(is_bad_answer(parse_queues(R"({"queues":[{}]})")));
  EXPECT_TRUE(is_bad_answer(parse_count("{}")));
  const auto newer = parse_queue(
      R"({"queue":"q","scheduled":0,"ready":0,"leased":0,"dead":0,"bytes":0,"colour":1,)"
      R"("settings":{"paused":true,"colour":2}})");
  ASSERT_TRUE(newer) << newer.error().message;
  EXPECT_TRUE(newer->settings.paused);
}

TEST(Queue, APatchChangesResetsOrKeepsEachSetting) {
  EXPECT_EQ(patch_of(""), QueuePatch{});
  EXPECT_EQ(patch_of("").applied_to(full_settings()), full_settings());
  QueueSettings expected = full_settings();
  expected.paused = false;
  expected.rate = 5;
  expected.max_tasks.reset();
  expected.retention = milliseconds{86'400'000};
  EXPECT_EQ(patch_of(R"("paused":false,"rate":5,"max_tasks":null,"retention":"1d")")
                .applied_to(full_settings()),
            expected);
}

TEST(Queue, NullTakesEachSettingBackToItsDefault) {
  struct Case {
    const char* name;
    QueuePatch patch;
  };
  const std::vector<Case> cases{
      {"paused", {.paused = false}},
      {"max_attempts", {.max_attempts = unset<std::uint32_t>()}},
      {"visibility_timeout", {.visibility_timeout = unset<milliseconds>()}},
      {"visibility_timeout_ms", {.visibility_timeout = unset<milliseconds>()}},
      {"backoff", {.backoff = unset<Backoff>()}},
      {"retention", {.retention = milliseconds{0}}},
      {"retention_ms", {.retention = milliseconds{0}}},
      {"key_retention", {.key_retention = milliseconds{600'000}}},
      {"key_retention_ms", {.key_retention = milliseconds{600'000}}},
      {"max_tasks", {.max_tasks = unset<std::uint64_t>()}},
      {"max_bytes", {.max_bytes = unset<std::uint64_t>()}},
      {"rate", {.rate = unset<std::uint32_t>()}},
      {"concurrency", {.concurrency = unset<std::uint32_t>()}},
      {"webhook", {.webhook = unset<QueueWebhook>()}},
      {"partitions", {.partitions = 1U}}};
  for (const Case& some : cases) {
    const QueuePatch patch = patch_of("\"" + std::string(some.name) + "\":null");
    EXPECT_EQ(patch, some.patch) << some.name;
    EXPECT_NE(patch.applied_to(full_settings()), full_settings()) << some.name;
  }
}

TEST(Queue, EveryFormOfASettingIsRead) {
  EXPECT_EQ(patch_of(R"("visibility_timeout":"90s")").visibility_timeout, milliseconds{90'000});
  EXPECT_EQ(patch_of(R"("visibility_timeout_ms":90)").visibility_timeout, milliseconds{90});
  EXPECT_EQ(patch_of(R"("retention":"P1D")").retention, milliseconds{86'400'000});
  EXPECT_EQ(patch_of(R"("key_retention_ms":0)").key_retention, milliseconds{0});
  EXPECT_EQ(patch_of(R"("backoff":{"initial":"5s"})").backoff,
            (Backoff{.initial = milliseconds{5'000}}));
  EXPECT_EQ(patch_of(R"("webhook":"http://a")").webhook, (QueueWebhook{.url = "http://a"}));
  EXPECT_EQ(patch_of(R"("webhook":{"url":"http://a"})").webhook, (QueueWebhook{.url = "http://a"}));
  EXPECT_EQ(patch_of(R"("webhook":{"keys":["whsec_1","whsec_2"],"url":"http://a"})").webhook,
            (QueueWebhook{.url = "http://a", .keys = {"whsec_1", "whsec_2"}}));
}

TEST(Queue, ASinkReplacesAWebhookAndOnlyItsOwnNullRemovesIt) {
  const QueueSettings webhook{.webhook = QueueWebhook{.url = "http://a"}};
  const QueueSettings sink = patch_of(R"("sink":"events")").applied_to(webhook);
  EXPECT_EQ(sink.webhook, QueueWebhook{.url = "sink:events"});
  EXPECT_EQ(patch_of(R"("sink":null)").applied_to(webhook), webhook);
  EXPECT_EQ(patch_of(R"("webhook":null)").applied_to(sink), sink);
  EXPECT_EQ(patch_of(R"("webhook":null,"sink":"b")").applied_to(webhook).webhook->url, "sink:b");
  EXPECT_EQ(patch_of(R"("sink":null)").applied_to(sink), QueueSettings{});
  EXPECT_EQ(patch_of(R"("webhook":"http://a")").applied_to(sink), webhook);
  EXPECT_EQ(patch_of(R"("webhook":"http://a","sink":null)").applied_to(sink), webhook);
  const std::string body = render_queue(example_view(sink));
  EXPECT_NE(body.find(R"("webhook":null,"sink":"events","partitions":1})"), std::string::npos)
      << body;
  EXPECT_EQ(parse_queue(body)->settings, sink);
}

TEST(Queue, AnAnswerShowsTheNumberOfKeysAndHidesTheirText) {
  const std::string key = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw";
  const QueueView view =
      example_view({.webhook = QueueWebhook{.url = "https://a", .keys = {key, key}}});
  const std::string body = render_queue(view);
  EXPECT_EQ(body.find(key.substr(6, 4)), std::string::npos) << body;
  EXPECT_NE(body.find(R"("webhook":{"url":"https://a","keys":["whsec_…","whsec_…"]})"),
            std::string::npos)
      << body;
  EXPECT_EQ(parse_queue(body)->settings.webhook->keys.size(), 2u);
  // The hidden form of a key is not a valid key, so it cannot replace the real keys by mistake.
  EXPECT_FALSE(validate(parse_queue(body)->settings));
  // A client's request contains the real keys.
  QueuePatch patch;
  patch.webhook.emplace(view.settings.webhook);
  EXPECT_EQ(parse_queue_patch(render_queue_patch(patch)).value(), patch);
}

TEST(Queue, APatchThatIsWrongIsRefusedByName) {
  struct Case {
    const char* body;
    const char* field;
  };
  for (const Case& some :
       std::vector<Case>{{R"({"colour":1})", "colour"},
                         {R"({"paused":1})", "paused"},
                         {R"({"paused":"true"})", "paused"},
                         {R"({"max_attempts":0})", "max_attempts"},
                         {R"({"visibility_timeout":5})", "visibility_timeout"},
                         {R"({"retention":"366d"})", "retention"},
                         {R"({"retention":null,"retention_ms":null})", "retention_ms"},
                         {R"({"key_retention_ms":-1})", "key_retention_ms"},
                         {R"({"max_tasks":1.0})", "max_tasks"},
                         {R"({"max_bytes":"1"})", "max_bytes"},
                         {R"({"rate":0})", "rate"},
                         {R"({"rate":1000001})", "rate"},
                         {R"({"concurrency":4294967297})", "concurrency"},
                         {R"({"backoff":{"first":1}})", "backoff.first"},
                         {R"({"rate":1,"rate":2})", "rate"},
                         {R"({"webhook":5})", "webhook"},
                         {R"({"webhook":{}})", "webhook.url"},
                         {R"({"webhook":{"url":1}})", "webhook.url"},
                         {R"({"webhook":{"url":"a","key":"b"}})", "webhook.key"},
                         {R"({"webhook":{"url":"a","keys":"b"}})", "webhook.keys"},
                         {R"({"webhook":{"url":"a","keys":[1]}})", "webhook.keys"},
                         {R"({"webhook":{"url":"a","keys":["","","",""]}})", "webhook.keys"},
                         {R"({"sink":{}})", "sink"},
                         {R"({"sink":"a","webhook":"http://a"})", "sink"},
                         {R"({"webhook":"sink:a"})", "webhook"},
                         {R"({"partitions":0})", "partitions"},
                         {R"({"partitions":257})", "partitions"}}) {
    const auto patch = parse_queue_patch(some.body);
    ASSERT_FALSE(patch) << some.body;
    EXPECT_EQ(patch.error().code, ErrorCode::invalid_argument) << some.body;
    EXPECT_EQ(patch.error().field, some.field) << some.body;
  }
  EXPECT_FALSE(parse_queue_patch(""));
  EXPECT_FALSE(parse_queue_patch("null"));
}

TEST(Queue, APatchIsReadBackAsItWasWritten) {
  QueuePatch patch;
  EXPECT_EQ(render_queue_patch(patch), "{}");
  patch.rate.emplace(5);
  patch.max_bytes.emplace();
  patch.retention = milliseconds{7};
  patch.backoff.emplace(Backoff{});
  EXPECT_EQ(parse_queue_patch(render_queue_patch(patch)).value(), patch);
  EXPECT_EQ(render_queue_patch(patch),
            R"({"backoff":{"initial_ms":1000,"max_ms":3600000},"retention_ms":7,)"
            R"("max_bytes":null,"rate":5})");
}

TEST(Queue, ABodyWithoutParametersMustBeEmpty) {
  for (const char* body : {"", " \n", "{}", " { } "}) EXPECT_TRUE(parse_nothing(body)) << body;
  EXPECT_EQ(refused_field(parse_nothing(R"({"state":"dead"})")), "state");
  EXPECT_FALSE(parse_nothing("[]"));
  EXPECT_FALSE(parse_nothing("x"));
}

TEST(MoveRequest, IsADelayOrADate) {
  for (const Due& due : {Due{milliseconds{0}}, Due{milliseconds{1'500}},
                         Due{WallTime{milliseconds{1'767'323'045'678}}}}) {
    EXPECT_EQ(parse_edit(render_edit({.due = due})).value().due, due);
  }
  EXPECT_EQ(parse_edit(R"({"delay":"5m"})").value().due, Due{milliseconds{300'000}});
}

TEST(MoveRequest, OtherBodiesAreRefusedByFieldName) {
  struct Case {
    const char* body;
    const char* field;
  };
  for (const Case& some :
       std::vector<Case>{{"{}", "due_at"},
                         {R"({"delay":"1s","due_at":0})", "due_at"},
                         {R"({"delay":"1s","priority":-5})", "priority"},
                         {R"({"payload":{},"payload_base64":""})", "payload_base64"},
                         {R"({"payload_base64":"x"})", "payload_base64"},
                         {R"({"queue":"q"})", "queue"},
                         {R"({"delay":null})", "delay"}}) {
    const auto edit = parse_edit(some.body);
    ASSERT_FALSE(edit) << some.body;
    EXPECT_EQ(edit.error().code, ErrorCode::invalid_argument);
    EXPECT_EQ(edit.error().field, some.field) << some.body;
  }
}

TEST(EditRequest, SetsOrRemovesAWebhookAndHeaders) {
  TaskEdit edit = parse_edit(R"({"webhook":"http://a","headers":{"b":"c"}})").value();
  EXPECT_EQ(edit.webhook, "http://a");
  EXPECT_EQ(edit.headers, (TaskHeaders{{"b", "c"}}));
  edit = parse_edit(R"({"webhook":null,"headers":null})").value();
  EXPECT_EQ(edit.webhook, "");
  EXPECT_EQ(edit.headers, TaskHeaders());
  edit = parse_edit(R"({"priority":1})").value();
  EXPECT_FALSE(edit.webhook || edit.headers);
}

TEST(EditRequest, HasOnlyTheGivenFields) {
  const TaskEdit priority = parse_edit(R"({"priority":0})").value();
  EXPECT_EQ(priority.priority, 0U);
  EXPECT_FALSE(priority.due || priority.payload);
  const TaskEdit payload = parse_edit(R"({"payload": [1, 2] })").value();
  EXPECT_EQ(payload.payload, (Payload{Payload::Kind::json, "[1, 2]"}));
  EXPECT_FALSE(payload.due || payload.priority);
  const TaskEdit bytes = parse_edit(R"({"payload_base64":"eA==","due_at":5})").value();
  EXPECT_EQ(bytes.payload, (Payload{Payload::Kind::bytes, "x"}));
  EXPECT_EQ(bytes.due, Due{WallTime{milliseconds{5}}});
}

TEST(BatchRequest, NamesTasksByIdOrByKey) {
  const TaskNames ids = parse_cancel_batch(R"({"ids":["256","x","512"]})").value();
  EXPECT_EQ(ids.ids, (std::vector<std::optional<TaskId>>{TaskId{256}, {}, TaskId{512}}));
  const MoveCall keys =
      parse_move_batch(R"({"queue":"q","keys":["a\u0062"],"delay":"1s"})").value();
  EXPECT_EQ(keys.tasks.queue, "q");
  EXPECT_EQ(keys.tasks.keys, (std::vector<std::string>{"ab"}));
  EXPECT_EQ(keys.due, Due{milliseconds{1'000}});
}

TEST(BatchRequest, OtherBodiesAreRefusedByFieldName) {
  EXPECT_EQ(refused_field(parse_cancel_batch("{}")), "ids");
  EXPECT_EQ(refused_field(parse_cancel_batch(R"({"ids":[],"queue":"q"})")), "queue");
  EXPECT_EQ(refused_field(parse_cancel_batch(R"({"ids":[],"keys":[]})")), "keys");
  EXPECT_EQ(refused_field(parse_cancel_batch(R"({"ids":[256]})")), "ids");
  EXPECT_EQ(refused_field(parse_cancel_batch(R"({"keys":["a"]})")), "queue");
  EXPECT_EQ(refused_field(parse_cancel_batch(R"({"queue":"q"})")), "keys");
  EXPECT_EQ(refused_field(parse_cancel_batch(R"({"ids":[],"delay":"1s"})")), "delay");
  EXPECT_EQ(refused_field(parse_move_batch(R"({"ids":[]})")), "due_at");
  EXPECT_EQ(refused_field(parse_move_batch(R"({"ids":[],"delay":"1s","due_at":5})")), "due_at");
  std::string many = R"({"ids":["1")";
  for (std::size_t i = 0; i < kMaxBatchTasks; ++i) many += R"(,"1")";
  EXPECT_EQ(parse_cancel_batch(many + "]}").error().code, ErrorCode::too_large);
}

TEST(LeaseRequests, ExtendAndReleaseAreReadBack) {
  const LeaseToken token{.epoch = 3, .number = 17};
  const std::array<std::string, 2> leases{to_string(token), "x"};
  const auto extend = parse_extend(render_extend(leases, milliseconds{5}));
  ASSERT_TRUE(extend) << extend.error().message;
  EXPECT_EQ(extend->leases, (LeaseList{token, std::nullopt}));
  EXPECT_EQ(extend->by, milliseconds{5});
  const auto release =
      parse_release(render_release(leases, {.delay = milliseconds{7}, .priority = 0}));
  ASSERT_TRUE(release) << release.error().message;
  EXPECT_EQ(release->leases, (LeaseList{token, std::nullopt}));
  EXPECT_EQ(release->delay, milliseconds{7});
  EXPECT_EQ(release->priority, 0U);
  const auto plain = parse_release(render_release(leases, {}));
  EXPECT_EQ(plain->delay, std::nullopt);
  EXPECT_EQ(plain->priority, std::nullopt);
}

TEST(LeaseRequests, WrongBodiesAreRefusedByFieldName) {
  EXPECT_EQ(refused_field(parse_extend(R"({"leases":["3-17"]})")), "by");
  EXPECT_EQ(refused_field(parse_extend(R"({"leases":["3-17"],"by":"0s"})")), "by");
  EXPECT_EQ(refused_field(parse_extend(R"({"leases":["3-17"],"by":"31d"})")), "by");
  EXPECT_EQ(refused_field(parse_extend(R"({"by":"1s"})")), "leases");
  EXPECT_EQ(refused_field(parse_extend(R"({"leases":["3-17"],"by":"1s","delay":"1s"})")), "delay");
  EXPECT_EQ(refused_field(parse_release(R"({"leases":["3-17"],"priority":-1})")), "priority");
  EXPECT_EQ(refused_field(parse_release(R"({"leases":["3-17"],"error":"e"})")), "error");
}

}  // namespace
}  // namespace detent::json

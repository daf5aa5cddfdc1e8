#include "task/webhook.h"

#include <gtest/gtest.h>

#include <string>

#include "task/queue_settings.h"
#include "task/request.h"

namespace detent {
namespace {

bool is_url(std::string_view url) {
  const Result<void> valid = validate_webhook_url(url);
  if (!valid) {
    EXPECT_EQ(valid.error().code, ErrorCode::invalid_argument);
    EXPECT_EQ(valid.error().field, "webhook");
    EXPECT_FALSE(valid.error().message.empty());
  }
  return valid.has_value();
}

/// The error message of these headers, or "" if they are valid.
std::string wrong_with(const TaskHeaders& headers) {
  const Result<void> valid = validate_headers(headers);
  if (valid) return "";
  EXPECT_EQ(valid.error().code, ErrorCode::invalid_argument);
  EXPECT_EQ(valid.error().field, "headers");
  return valid.error().message;
}
std::string wrong_with(std::string name, std::string value) {
  return wrong_with({{std::move(name), std::move(value)}});
}

bool is_key(const std::string& key) {
  return validate(QueueWebhook{.url = "https://a", .keys = {key}}).has_value();
}

TEST(Webhook, HttpUrlsWithAHostAreAccepted) {
  for (const char* url :
       {"http://a", "https://example.com/hooks?x=1&y=%20", "http://127.0.0.1:8080/", "http://[::1]",
        "https://[2001:db8::1]:443/a", "http://a_b-c.d:1?q", "https://h/a@b:c//d;e=(f)'!*,+$[]~",
        "http://a:65535"}) {
    EXPECT_TRUE(is_url(url)) << url;
  }
}

TEST(Webhook, OtherUrlsAreRefused) {
  for (const char* url : {"",
                          "a",
                          "ftp://a",
                          "HTTP://a",
                          "https:/a",
                          "//a/b",
                          "http://",
                          "http:///a",
                          "http://?a",
                          "http://:80",
                          "http://a:",
                          "http://a:0",
                          "http://a:65536",
                          "http://a:+1",
                          "http://a:8x",
                          "http://a:000080",
                          "http://u@a",
                          "http://u:p@a/",
                          "http://a#b",
                          "http://a/#",
                          "http://a b",
                          "http://a/\n",
                          "http://a/\x7F",
                          "http://\xC3\xA9",
                          "http://a/\xC3\xA9",
                          "http://a\\b",
                          "http://a/\"",
                          "http://a/<b>",
                          "http://a/{b}",
                          "http://[]",
                          "http://[::1",
                          "http://::1",
                          "http://[g]",
                          "http://a]",
                          "http://[::1]a",
                          "http://a%20b",
                          "http://a,b"}) {
    EXPECT_FALSE(is_url(url)) << url;
  }
  EXPECT_FALSE(is_url(std::string("http://a/\0b", 11)));
}

TEST(Webhook, AUrlIsAsLongAsTheLimitAndNotLonger) {
  std::string url = "http://a/";
  url.resize(kMaxWebhookBytes, 'x');
  EXPECT_TRUE(is_url(url));
  EXPECT_FALSE(is_url(url + "x"));
}

TEST(Webhook, HeadersAreTokensAndVisibleAscii) {
  EXPECT_EQ(wrong_with({}), "");
  EXPECT_EQ(wrong_with({{"X-Tenant", "a b ~!"}, {"authorization", "Bearer x"}, {"Empty", ""}}), "");
  EXPECT_EQ(wrong_with("!#$%&'*+-.^_`|~09", "v"), "");
  for (const char* name : {"", "a b", "a:", "a\n", "\xC3\xA9", "a(b)", "a,b", "a/b", "\"a\""}) {
    EXPECT_NE(wrong_with(name, "v"), "") << name;
  }
  for (const char* value : {" a", "a ", "a\tb", "a\r\nb: c", "\x7F", "\xC3\xA9"}) {
    EXPECT_NE(wrong_with("a", value), "") << value;
  }
  EXPECT_NE(wrong_with("a", std::string("b\0", 2)), "");
}

TEST(Webhook, HeadersHaveTheirBounds) {
  EXPECT_EQ(wrong_with(std::string(64, 'n'), std::string(1'024, 'v')), "");
  EXPECT_NE(wrong_with(std::string(65, 'n'), ""), "");
  EXPECT_NE(wrong_with("n", std::string(1'025, 'v')), "");
  TaskHeaders headers;
  for (char c = 'a'; c < 'a' + 16; ++c) headers.push_back({std::string(1, c), ""});
  EXPECT_EQ(wrong_with(headers), "");
  headers.push_back({"z", ""});
  EXPECT_NE(wrong_with(headers), "");
  headers = {{"a", std::string(1'024, 'v')},
             {"b", std::string(1'024, 'v')},
             {"c", std::string(1'024, 'v')},
             {"d", std::string(1'020, 'v')}};
  EXPECT_EQ(wrong_with(headers), "");
  headers.back().value += 'v';
  EXPECT_NE(wrong_with(headers), "");
}

TEST(Webhook, AHeaderComesOnceInAnyCaseOfLetters) {
  EXPECT_NE(wrong_with({{"X-A", "1"}, {"b", "2"}, {"x-a", "1"}}), "");
}

TEST(Webhook, HeadersOfTheServerAreRefused) {
  for (const char* name :
       {"Host", "content-length", "Content-Type", "TRANSFER-ENCODING", "connection", "keep-alive",
        "te", "trailer", "upgrade", "expect", "User-Agent", "webhook-id", "Webhook-Signature",
        "detent-attempt", "proxy-authorization"}) {
    EXPECT_NE(wrong_with(name, "v"), "") << name;
  }
  for (const char* name : {"hosts", "x-host", "webhook", "traceparent", "content-language"}) {
    EXPECT_EQ(wrong_with(name, "v"), "") << name;
  }
}

TEST(Webhook, KeysAreBase64Of24To64Bytes) {
  const std::string of_24(32, 'A');
  EXPECT_TRUE(is_key("whsec_" + of_24));
  EXPECT_TRUE(is_key("whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"));
  EXPECT_TRUE(is_key("whsec_" + std::string(86, '/').replace(85, 1, "w") + "=="));  // 64
  EXPECT_FALSE(is_key("whsec_" + std::string(87, '/').replace(86, 1, "8") + "="));  // 65
  EXPECT_FALSE(is_key("whsec_" + std::string(86, '/') + "=="));                     // unused bits
  EXPECT_FALSE(is_key("whsec_" + std::string(31, 'A') + "="));                      // 23
  for (const std::string& key :
       {std::string(), std::string("whsec_"), of_24, "whsec_" + of_24 + "A",
        "whsec_" + of_24 + "====", "WHSEC_" + of_24, "whsec_" + std::string(31, 'A') + "-",
        "whsec_=" + std::string(31, 'A'), std::string(kRedactedWebhookKey)}) {
    EXPECT_FALSE(is_key(key)) << key;
  }
}

TEST(Webhook, AQueueHasAUrlAndUpToThreeKeys) {
  const std::string key = "whsec_" + std::string(32, 'A');
  QueueSettings settings{.webhook = QueueWebhook{.url = "https://a", .keys = {key, key, key}}};
  EXPECT_TRUE(validate(settings));
  settings.webhook->keys.push_back(key);
  EXPECT_EQ(validate(settings).error().field, "webhook");
  settings.webhook = QueueWebhook{.url = "", .keys = {}};
  EXPECT_EQ(validate(settings).error().field, "webhook");
  settings.webhook = QueueWebhook{.url = "sink:a-1_b.C"};
  EXPECT_TRUE(validate(settings));
  settings.webhook->keys.push_back(key);
  EXPECT_EQ(validate(settings).error().field, "sink");
  for (const std::string& name : {std::string(), std::string("a b"), std::string(65, 'a')}) {
    settings.webhook = QueueWebhook{.url = "sink:" + name};
    EXPECT_EQ(validate(settings).error().field, "sink") << name;
  }
  EXPECT_FALSE(validate_webhook_url("sink:a")) << "a task names none";
}

TEST(Webhook, RedactedRemovesTheKeys) {
  const std::string key = "whsec_" + std::string(32, 'A');
  const QueueWebhook shown = redacted({.url = "https://a/b", .keys = {key, key}});
  EXPECT_EQ(shown, (QueueWebhook{.url = "https://a/b", .keys = {"whsec_…", "whsec_…"}}));
}

TEST(Webhook, IsCheckedInARequestATaskAndAnEdit) {
  ScheduleRequest request{.queue = "q", .webhook = "http://a", .headers = {{"a", "b"}}};
  EXPECT_TRUE(validate(request));
  request.webhook = "mailto:a";
  EXPECT_EQ(validate(request).error().field, "webhook");
  request.webhook.clear();
  EXPECT_TRUE(validate(request));
  request.headers = {{"host", "b"}};
  EXPECT_EQ(validate(request).error().field, "headers");

  Task task{.id = TaskId{256}, .queue = "q"};
  EXPECT_TRUE(validate(task));
  task.webhook = "a";
  EXPECT_EQ(validate(task).error().field, "webhook");
  task.webhook = "http://a";
  task.headers = {{"", ""}};
  EXPECT_EQ(validate(task).error().field, "headers");

  EXPECT_TRUE(validate(TaskEdit{.webhook = "", .headers = TaskHeaders{}}));
  EXPECT_EQ(validate(TaskEdit{.webhook = "a"}).error().field, "webhook");
  EXPECT_EQ(validate(TaskEdit{.headers = TaskHeaders{{"te", ""}}}).error().field, "headers");
}

TEST(Webhook, TheContentHashCoversUrlAndHeaders) {
  const ScheduleRequest plain{.queue = "q"};
  ScheduleRequest with_url = plain;
  with_url.webhook = "http://a";
  ScheduleRequest with_header = plain;
  with_header.headers = {{"a", "b"}};
  ScheduleRequest with_other = plain;
  with_other.headers = {{"a", "bc"}};
  EXPECT_NE(content_hash(plain), content_hash(with_url));
  EXPECT_NE(content_hash(plain), content_hash(with_header));
  EXPECT_NE(content_hash(with_url), content_hash(with_header));
  EXPECT_NE(content_hash(with_header), content_hash(with_other));
  // A repeated request has a different trace.
  with_other.headers = {{"a", "b"}, {"Traceparent", "x"}, {"tracestate", "y"}};
  EXPECT_EQ(content_hash(with_header), content_hash(with_other));
}

constexpr const char* kTrace = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";

TEST(Webhook, ATraceparentHasTheFormOfTraceContext) {
  const std::string trace = kTrace;
  EXPECT_TRUE(is_traceparent(trace));
  EXPECT_TRUE(is_traceparent("01" + trace.substr(2)));
  EXPECT_TRUE(is_traceparent("cc" + trace.substr(2) + "-what-the-future-will-be"));
  for (const std::string& wrong :
       {std::string(), trace.substr(1), trace + "-a", "ff" + trace.substr(2),
        "cc" + trace.substr(2) + "a",
        "00-00000000000000000000000000000000-00f067aa0ba902b7-01" + std::string(),
        "00-4bf92f3577b34da6a3ce929d0e0e4736-0000000000000000-01" + std::string(),
        "00-4BF92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01" + std::string(),
        "00_4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01" + std::string(),
        "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-0x" + std::string()}) {
    EXPECT_FALSE(is_traceparent(wrong)) << wrong;
  }
}

TEST(Webhook, TheTraceOfARequestIsKeptUnlessTheTaskNamesOne) {
  TaskHeaders headers{{"a", "b"}};
  keep_trace(headers, "nonsense", "x=y");
  EXPECT_EQ(headers, (TaskHeaders{{"a", "b"}}));
  keep_trace(headers, kTrace, "");
  EXPECT_EQ(headers, (TaskHeaders{{"a", "b"}, {"traceparent", kTrace}}));
  headers = {};
  keep_trace(headers, kTrace, "x=y");
  EXPECT_EQ(headers, (TaskHeaders{{"traceparent", kTrace}, {"tracestate", "x=y"}}));
  headers = {{"TraceParent", "mine"}};
  keep_trace(headers, kTrace, "x=y");
  EXPECT_EQ(headers, (TaskHeaders{{"TraceParent", "mine"}}));
}

TEST(Webhook, ATraceIsLeftOutIfItExceedsTheLimits) {
  TaskHeaders full;
  for (char c = 'a'; c < 'a' + 15; ++c) full.push_back({std::string(1, c), ""});
  TaskHeaders headers = full;
  keep_trace(headers, kTrace, "x=y");
  EXPECT_EQ(headers.size(), 16u);
  full = headers;
  full.back() = {"z", ""};
  headers = full;
  keep_trace(headers, kTrace, "x=y");
  EXPECT_EQ(headers, full);
  headers = {};
  keep_trace(headers, kTrace, std::string(1'025, 'x'));
  EXPECT_EQ(headers.size(), 1u);
}

}  // namespace
}  // namespace detent

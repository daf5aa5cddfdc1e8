#include "delivery/verdict.h"

#include <gtest/gtest.h>

#include <string>

#include "task/limits.h"

namespace detent {
namespace {

using namespace std::chrono_literals;
using net::CallFailure;
using net::CallStep;

constexpr WallInstant kNow{std::chrono::seconds{1'700'000'000}};

Verdict judge_status(int status, std::string retry_after = "", std::string body = "") {
  net::HttpResponse answer{.status = status, .content_type = "", .body = std::move(body)};
  if (!retry_after.empty()) answer.headers = {{"retry-after", std::move(retry_after)}};
  return judge(answer, kNow);
}

TEST(Verdict, CompletesWith2xxOnly) {
  for (const int status : {200, 201, 202, 204, 299}) {
    EXPECT_EQ(judge_status(status).verb, Verdict::Verb::complete) << status;
  }
  for (const int status : {300, 301, 302, 307, 308, 400, 401, 404, 409, 429, 500, 502, 503, 599}) {
    const Verdict verdict = judge_status(status);
    EXPECT_EQ(verdict.verb, Verdict::Verb::fail) << status;
    EXPECT_TRUE(verdict.error.starts_with("HTTP " + std::to_string(status))) << verdict.error;
  }
}

TEST(Verdict, StopsWith410) {
  const Verdict verdict = judge_status(410);
  EXPECT_EQ(verdict.verb, Verdict::Verb::bury);
  EXPECT_EQ(verdict.end, DeliveryEnd::gone);
  EXPECT_TRUE(verdict.error.starts_with("410 Gone")) << verdict.error;
}

TEST(Verdict, RespectsRetryAfterOfOverloadedReceivers) {
  EXPECT_EQ(judge_status(429, "30").delay, 30s);
  EXPECT_EQ(judge_status(503, "0").delay, 1s);
  EXPECT_EQ(judge_status(503, "99999999").delay, 24h);
  EXPECT_EQ(judge_status(503, "soon").delay, std::nullopt);
  EXPECT_EQ(judge_status(503).delay, std::nullopt);
  EXPECT_EQ(judge_status(500, "30").delay, std::nullopt);
  EXPECT_EQ(judge_status(429).end, DeliveryEnd::overloaded);
}

TEST(Verdict, TheErrorHasTheBeginningOfTheBodyAsText) {
  const std::string error =
      judge_status(500, "", "a\r\n\x1b[31m\xff" + std::string(1000, 'x')).error;
  EXPECT_TRUE(error.starts_with("HTTP 500: a???[31m?xxx")) << error;
  EXPECT_LE(error.size(), kToldBodyBytes + 10);
  EXPECT_LE(judge_status(410, "", std::string(10'000, 'x')).error.size(), kMaxErrorBytes);
}

TEST(Verdict, TheCauseForALogHasNoBody) {
  EXPECT_EQ(cause_of(net::HttpResponse{.status = 500, .content_type = "", .body = "geheim"}),
            "HTTP 500");
  EXPECT_EQ(cause_of(CallFailure{.message = "connect: Connection refused"}),
            "connect: Connection refused");
}

TEST(Verdict, TheErrorHasWholeCharactersInAnyLanguage) {
  EXPECT_EQ(judge_status(500, "",
                         "库存不足: é\xc2\x9b"
                         "1m")
                .error,
            "HTTP 500: 库存不足: é?1m");
  std::string body = "x";
  while (body.size() < kToldBodyBytes) body += "足";  // the last character crosses the limit
  ASSERT_GT(body.size(), kToldBodyBytes);
  EXPECT_EQ(judge_status(500, "", body + "y").error,
            "HTTP 500: " + body.substr(0, body.size() - 3));
  EXPECT_EQ(judge_status(500, "", std::string(300, '\xbf')).error,
            "HTTP 500: " + std::string(kToldBodyBytes - 3, '?'))
      << "a part of a character at the end";
  EXPECT_EQ(refused_by_sink("主题 \xff").error, "主题 ?");
}

TEST(Verdict, FailsIfTheHostIsNotReached) {
  const Verdict refused =
      judge(CallFailure{CallStep::connect, CallFailure::Kind::failed, "connect: refused"}, kNow);
  EXPECT_EQ(refused.verb, Verdict::Verb::fail);
  EXPECT_EQ(refused.end, DeliveryEnd::not_reached);
  EXPECT_EQ(refused.error, "connect: refused");
  EXPECT_EQ(refused.delay, std::nullopt);
  EXPECT_EQ(judge(CallFailure{CallStep::exchange, CallFailure::Kind::timed_out, "x"}, kNow).end,
            DeliveryEnd::timed_out);
}

TEST(Verdict, BuriesIfTheAddressIsNotAllowed) {
  const Verdict verdict =
      judge(CallFailure{CallStep::filter, CallFailure::Kind::failed, "address: private"}, kNow);
  EXPECT_EQ(verdict.verb, Verdict::Verb::bury);
  EXPECT_EQ(verdict.end, DeliveryEnd::not_allowed);
  EXPECT_EQ(verdict.error, "the webhook may not be called: address: private");
}

}  // namespace
}  // namespace detent

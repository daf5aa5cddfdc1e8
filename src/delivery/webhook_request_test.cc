#include "delivery/webhook_request.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>

namespace detent {
namespace {

constexpr std::chrono::sys_seconds kNow{std::chrono::seconds{1'700'000'000}};

LeasedTask leased() {
  return {.task = {.id = {4'352},
                   .queue = "mail",
                   .payload = {.kind = Payload::Kind::json, .data = "{\"a\": 1}"},
                   .due_at = WallTime{std::chrono::milliseconds{1'699'999'999'500}}},
          .attempt = 3};
}

WebhookKeys keys() { return {WebhookKey::parse("whsec_" + std::string(32, 'A')).value()}; }

TEST(WebhookRequest, DescribesTheTask) {
  const net::HttpRequest request = make_webhook_request(leased(), keys(), kNow);
  EXPECT_EQ(request.method, "POST");
  EXPECT_EQ(request.body, "{\"a\": 1}");
  EXPECT_EQ(request.header("content-type"), "application/json");
  EXPECT_EQ(request.header("user-agent"), "Detent");
  EXPECT_EQ(request.header("webhook-id"), "task_4352");
  EXPECT_EQ(request.header("webhook-timestamp"), "1700000000");
  EXPECT_EQ(request.header("webhook-signature"),
            sign_webhook(keys(), {.id = "task_4352", .sent = kNow, .body = "{\"a\": 1}"}));
  EXPECT_EQ(request.header("detent-queue"), "mail");
  EXPECT_EQ(request.header("detent-attempt"), "3");
  EXPECT_EQ(request.header("detent-due-at"), "2023-11-14T22:13:19.500Z");
}

TEST(WebhookRequest, SendsBytesAsTheyAre) {
  LeasedTask task = leased();
  task.task.payload = {.kind = Payload::Kind::bytes, .data = std::string("\0\xff\r\n", 4)};
  const net::HttpRequest request = make_webhook_request(task, keys(), kNow);
  EXPECT_EQ(request.body, std::string("\0\xff\r\n", 4));
  EXPECT_EQ(request.header("content-type"), "application/octet-stream");
}

TEST(WebhookRequest, SendsTheTasksHeaders) {
  LeasedTask task = leased();
  task.task.headers = {{"Authorization", "Bearer x"}, {"X-A", "b"}};
  const net::HttpRequest request = make_webhook_request(task, keys(), kNow);
  EXPECT_EQ(request.header("Authorization"), "Bearer x");
  EXPECT_EQ(request.header("X-A"), "b");
}

TEST(WebhookRequest, ATaskCannotReplaceItsOwnHeaders) {
  LeasedTask task = leased();
  for (const char* name :
       {"Webhook-Id", "WEBHOOK-SIGNATURE", "webhook-timestamp", "Detent-Queue", "Host",
        "Content-Length", "Transfer-Encoding", "Connection", "Content-Type", "User-Agent"}) {
    task.task.headers.push_back({name, "forged"});
  }
  const net::HttpRequest request = make_webhook_request(task, keys(), kNow);
  EXPECT_TRUE(std::ranges::none_of(request.headers,
                                   [](const auto& header) { return header.second == "forged"; }));
}

}  // namespace
}  // namespace detent

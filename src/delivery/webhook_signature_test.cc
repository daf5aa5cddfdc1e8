#include "delivery/webhook_signature.h"

#include <gtest/gtest.h>

#include <string>
#include <string_view>

#include "base/base64.h"
#include "base/rng.h"
#include "base/test_seed.h"
#include "task/webhook.h"

namespace detent {
namespace {

using std::chrono::seconds;
using std::chrono::sys_seconds;

// The key and the message of the test vector that all Standard Webhooks libraries use.
constexpr const char* kKey = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw";
const SignedContent kContent{.id = "msg_p5jXN8AQM9LWM0D4loKWxJek",
                             .sent = sys_seconds{seconds{1'614'265'330}},
                             .body = "{\"test\": 2432232314}"};
constexpr const char* kSignature = "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=";

WebhookKey key(const std::string& text) { return WebhookKey::parse(text).value(); }

TEST(WebhookSignature, MatchesTheTestVectorOfTheStandard) {
  EXPECT_EQ(sign_webhook({key(kKey)}, kContent), kSignature);
}

TEST(WebhookSignature, HasOneForEachKey) {
  const WebhookKey other = WebhookKey::make().value();
  const std::string by_other = sign_webhook({other}, kContent);
  EXPECT_NE(by_other, kSignature);
  EXPECT_EQ(sign_webhook({key(kKey), other}, kContent), kSignature + (" " + by_other));
}

TEST(WebhookSignature, ChangesWithEachPart) {
  SignedContent content = kContent;
  content.id = "msg_p5jXN8AQM9LWM0D4loKWxJel";
  EXPECT_NE(sign_webhook({key(kKey)}, content), kSignature);
  content = kContent;
  content.sent += seconds{1};
  EXPECT_NE(sign_webhook({key(kKey)}, content), kSignature);
  content = kContent;
  content.body = "{\"test\": 2432232315}";
  EXPECT_NE(sign_webhook({key(kKey)}, content), kSignature);
}

TEST(WebhookKey, ReadsWhatItWrites) {
  EXPECT_EQ(key(kKey).text(), kKey);
  const WebhookKey made = WebhookKey::make().value();
  EXPECT_EQ(made.secret().size(), 32u);
  EXPECT_EQ(key(made.text()).secret(), made.secret());
  EXPECT_NE(WebhookKey::make()->text(), made.text());
}

TEST(WebhookKey, RefusesAWrongKeyWithoutRepeatingIt) {
  for (const char* text : {"", "whsec_", "MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw", "whsec_c2hvcnQ=",
                           "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaS", "WHSEC_MfKQ9r8GKYqrTwjU",
                           "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw ", "whpk_MfKQ9r8GKYqrTwjU"}) {
    const auto parsed = WebhookKey::parse(text);
    ASSERT_FALSE(parsed) << text;
    EXPECT_EQ(parsed.error().message.find("MfKQ"), std::string::npos);
  }
  EXPECT_FALSE(WebhookKey::parse("whsec_" + std::string(88, 'A')));  // 66 bytes
  EXPECT_TRUE(WebhookKey::parse("whsec_" + std::string(84, 'A') + "AA=="));
}

// The deliverer stops the process if it cannot read a key of a queue. The settings of queues are
// checked by other code, which must therefore accept exactly the same keys.
TEST(WebhookKey, IsAcceptedExactlyIfTheSettingsOfAQueueAcceptIt) {
  const std::uint64_t seed = test_seed();
  SCOPED_TRACE(replay_hint(seed));
  Rng rng(seed);
  constexpr std::string_view kEnds = "Awg8/=+-";
  int taken = 0;
  for (int i = 0; i < 20'000; ++i) {
    std::string text = "whsec_";
    append_base64(text, std::string(20 + rng.below(50), '\0'));
    for (std::uint32_t left = rng.below(3); left > 0; --left) {
      text[text.size() - 1 - rng.below(4)] = kEnds[rng.below(kEnds.size())];
    }
    if (rng.below(8) == 0) text.pop_back();
    const bool is_taken =
        validate(QueueWebhook{.url = "https://example.com", .keys = {text}}).has_value();
    ASSERT_EQ(WebhookKey::parse(text).has_value(), is_taken) << text;
    if (is_taken) ++taken;
  }
  EXPECT_GT(taken, 1'000);
}

TEST(WebhookKeys, ReadsOneKeyPerLine) {
  const std::string lines = "# old\n" + std::string(kKey) + "\r\n\n  \n" + kKey;
  EXPECT_EQ(parse_webhook_keys(lines)->size(), 2u);
}

TEST(WebhookKeys, NamesTheWrongLine) {
  const auto keys = parse_webhook_keys(std::string(kKey) + "\n\nsecret\n");
  ASSERT_FALSE(keys);
  EXPECT_TRUE(keys.error().message.starts_with("line 3: ")) << keys.error().message;
  EXPECT_EQ(keys.error().message.find("secret"), std::string::npos);
  EXPECT_FALSE(parse_webhook_keys(""));
  EXPECT_FALSE(parse_webhook_keys("# none\n"));
}

}  // namespace
}  // namespace detent

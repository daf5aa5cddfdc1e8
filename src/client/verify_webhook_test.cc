#include "detent/verify_webhook.h"

#include <gtest/gtest.h>

#include <vector>

namespace detent {
namespace {

using namespace std::chrono_literals;
using Code = ClientError::Code;
using Headers = std::vector<client::Header>;
using Keys = std::vector<std::string>;

// The test vector that the Standard Webhooks libraries share.
const Keys kKeys{"whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"};
constexpr const char* kOtherKey = "whsec_eHh4eHh4eHh4eHh4eHh4eHh4eHh4eHh4";
const Headers kHeaders{{"Webhook-Id", "msg_p5jXN8AQM9LWM0D4loKWxJek"},
                       {"webhook-timestamp", "1614265330"},
                       {"WEBHOOK-SIGNATURE", "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE="}};
constexpr const char* kBody = "{\"test\": 2432232314}";
const WallInstant kSent{std::chrono::seconds{1'614'265'330}};

/// The code of the error, or nullopt if the webhook is genuine.
std::optional<Code> refusal(const Headers& headers, std::string_view body = kBody,
                            const Keys& keys = kKeys, WallInstant now = kSent) {
  const auto id = verify_webhook(keys, headers, body, {.now = now});
  if (id.has_value()) return std::nullopt;
  return id.error().code;
}

Headers with(std::size_t index, std::string value) {
  Headers headers = kHeaders;
  headers[index].value = std::move(value);
  return headers;
}

TEST(VerifyWebhook, ReturnsTheIdOfTheStandardTestVector) {
  EXPECT_EQ(verify_webhook(kKeys, kHeaders, kBody, {.now = kSent}).value(),
            "msg_p5jXN8AQM9LWM0D4loKWxJek");
}

TEST(VerifyWebhook, RefusesAChangeInAnyPart) {
  EXPECT_EQ(refusal(kHeaders, "{\"test\": 2432232315}"), Code::forbidden);
  EXPECT_EQ(refusal(kHeaders, std::string(kBody) + " "), Code::forbidden);
  EXPECT_EQ(refusal(with(0, "msg_p5jXN8AQM9LWM0D4loKWxJel")), Code::forbidden);
  EXPECT_EQ(refusal(with(1, "1614265331")), Code::forbidden);
  EXPECT_EQ(refusal(kHeaders, kBody, {kOtherKey}), Code::forbidden);
  EXPECT_EQ(refusal(kHeaders, kBody, {}), Code::forbidden);
}

TEST(VerifyWebhook, RefusesIncompleteSignaturesAndOtherVersions) {
  const std::string genuine = kHeaders[2].value;
  for (const std::string& signature :
       {std::string(), std::string("v1,"), genuine.substr(0, genuine.size() - 1), genuine + "A",
        genuine.substr(3), "v2," + genuine.substr(3), "v1a," + genuine.substr(3)}) {
    EXPECT_EQ(refusal(with(2, signature)), Code::forbidden) << signature;
  }
}

TEST(VerifyWebhook, OneKeyAndOneSignatureOfManyAreEnough) {
  EXPECT_FALSE(refusal(with(2, "v1,AAAA " + kHeaders[2].value + " v1a,b")));
  EXPECT_FALSE(refusal(kHeaders, kBody, {kOtherKey, kKeys[0]}));
  EXPECT_FALSE(refusal(kHeaders, kBody, {kKeys[0], kOtherKey}));
}

TEST(VerifyWebhook, RefusesOldAndFutureTimestamps) {
  EXPECT_FALSE(refusal(kHeaders, kBody, kKeys, kSent + 300s));
  EXPECT_FALSE(refusal(kHeaders, kBody, kKeys, kSent - 300s));
  EXPECT_EQ(refusal(kHeaders, kBody, kKeys, kSent + 301s), Code::forbidden);
  EXPECT_EQ(refusal(kHeaders, kBody, kKeys, kSent - 301s), Code::forbidden);
  EXPECT_TRUE(verify_webhook(kKeys, kHeaders, kBody, {.tolerance = 1h, .now = kSent + 1h}));
  EXPECT_FALSE(verify_webhook(kKeys, kHeaders, kBody)) << "the system's clock is of today";
}

TEST(VerifyWebhook, RefusesMissingHeadersAndTimestampsThatAreNotNumbers) {
  for (std::size_t missing = 0; missing < kHeaders.size(); ++missing) {
    Headers headers = kHeaders;
    headers.erase(headers.begin() + static_cast<std::ptrdiff_t>(missing));
    EXPECT_EQ(refusal(headers), Code::forbidden);
  }
  for (const char* const sent : {"", "x", "-1614265330", "1614265330 ", "99999999999999999999"}) {
    EXPECT_EQ(refusal(with(1, sent)), Code::forbidden) << sent;
  }
}

TEST(VerifyWebhook, AnInvalidKeyIsTheCallersErrorAndIsNotShown) {
  for (const char* const key : {"", "whsec_", "MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw", "whsec_%"}) {
    const auto id = verify_webhook(Keys{key}, kHeaders, kBody, {.now = kSent});
    EXPECT_EQ(id.error().code, Code::invalid_argument) << key;
    EXPECT_EQ(id.error().message.find("MfKQ"), std::string::npos);
  }
}

}  // namespace
}  // namespace detent

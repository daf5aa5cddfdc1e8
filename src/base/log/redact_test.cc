#include "base/log/redact.h"

#include <gtest/gtest.h>

#include <string>

#include "base/log/log_line.h"
#include "base/test_seed.h"

namespace detent {
namespace {

using namespace std::string_literals;

TEST(Redact, TakesUserAndPasswordOutOfAddresses) {
  EXPECT_EQ(redact("no answer from redis://ada:pw@127.0.0.1:6379/2, again"),
            "no answer from redis://***@127.0.0.1:6379/2, again");
  EXPECT_EQ(redact("redis://:pw@host"), "redis://***@host");
  EXPECT_EQ(redact("'postgres://a:p@ss@host/db'"), "'postgres://***@host/db'");
  EXPECT_EQ(redact("http://a@b https://c:d@e"), "http://***@b https://***@e");
}

TEST(Redact, LeavesOtherAddressesAlone) {
  for (const char* text :
       {"http://127.0.0.1:7070/v1/tasks?to=ada@example.org", "ada@example.org", "http://host/a@b",
        "http://host#a@b", "redis+unix:///path/a@b", "://", "http://host 'ada@b'"}) {
    EXPECT_EQ(redact(text), text);
  }
}

TEST(Redact, TakesCredentialsOutOfHeaders) {
  EXPECT_EQ(redact("Authorization: Bearer abc.def-123 refused"),
            "Authorization: Bearer *** refused");
  EXPECT_EQ(redact("authorization: bEARER abc\r\nHost: h"), "authorization: bEARER ***\r\nHost: h");
  EXPECT_EQ(redact("{\"authorization\":\"Bearer YWRhOnB3\",\"n\":1}"),
            "{\"authorization\":\"Bearer ***\",\"n\":1}");
}

TEST(Redact, TakesOutKeysOfWebhooks) {
  EXPECT_EQ(redact("line 2: whsec_C2FVsBQIhrscChlQIMV+b5sSYspob7oD is no key"),
            "line 2: whsec_*** is no key");
  EXPECT_EQ(redact("whsec_a,whsec_b"), "whsec_***,whsec_***");
}

TEST(Redact, LeavesTextsThatExplainTheFormOfASecretUnchanged) {
  for (const char* text : {"a webhook key must be whsec_ and base64", "\"whsec_\"", "whsec_"}) {
    EXPECT_EQ(redact(text), text);
  }
}

TEST(Redact, LogLinesHaveNoSecretWhereverItStands) {
  const LogFields fields{{"url", "redis://u:canary@h"}, {"text", "Bearer canary"}};
  for (const LogFormat format : {LogFormat::text, LogFormat::json}) {
    const std::string line =
        render_log_line(format, {WallTime{}, LogLevel::error, "whsec_canary", fields});
    EXPECT_EQ(line.find("canary"), std::string::npos) << line;
    EXPECT_NE(line.find("redis://***@h"), std::string::npos) << line;
  }
}

// With any text around a secret, no byte of the secret is left. A text without a secret stays
// unchanged.
TEST(Redact, FindsASecretInAnyText) {
  const std::uint64_t seed = test_seed();
  SCOPED_TRACE(replay_hint(seed));
  Rng rng(seed);
  const auto noise = [&rng] {
    std::string text(rng.below(20), ' ');
    for (char& letter : text) letter = "abW:_/ .\n\"e"[rng.below(11)];
    return text;
  };
  for (int round = 0; round < 2'000; ++round) {
    const std::string before = noise();
    const std::string after = noise();
    for (const char* secret : {" redis://u:CANARY@h ", " Bearer CANARY ", " whsec_CANARY "}) {
      std::string text = before;
      text.append(secret).append(after);
      const std::string clean = redact(text);
      ASSERT_EQ(clean.find("CANARY"), std::string::npos) << text;
    }
    ASSERT_EQ(redact(before), before);
  }
}

}  // namespace
}  // namespace detent

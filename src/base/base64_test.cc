#include "base/base64.h"

#include <gtest/gtest.h>

#include <string>
#include <string_view>
#include <utility>

#include "base/test_seed.h"

namespace detent {
namespace {

std::string encode(std::string_view bytes) {
  std::string text;
  append_base64(text, bytes);
  return text;
}

TEST(Base64, MatchesTheVectorsOfTheRfc) {  // RFC 4648, section 10
  constexpr std::pair<const char*, const char*> kVectors[] = {{"", ""},
                                                              {"f", "Zg=="},
                                                              {"fo", "Zm8="},
                                                              {"foo", "Zm9v"},
                                                              {"foob", "Zm9vYg=="},
                                                              {"fooba", "Zm9vYmE="},
                                                              {"foobar", "Zm9vYmFy"}};
  for (const auto& [bytes, text] : kVectors) {
    EXPECT_EQ(encode(bytes), text);
    EXPECT_EQ(decode_base64(text), bytes);
  }
}

TEST(Base64, AnyBytesComeBack) {
  const std::uint64_t seed = test_seed();
  SCOPED_TRACE(replay_hint(seed));
  Rng rng(seed);
  for (int round = 0; round < 2000; ++round) {
    std::string bytes(rng.below(100), '\0');
    for (char& c : bytes) c = static_cast<char>(rng.below(256));
    ASSERT_EQ(decode_base64(encode(bytes)), bytes);
  }
}

TEST(Base64, RefusesOtherEncodingsOfTheSameBytes) {
  for (const char* text :
       {"Z", "Zg", "Zg=", "Zm9", "Zm9v\n", "Zm 9", "Zm9v====", "=", "====", "Zg=a", "Z===", "Zm=v",
        "Zh==", "Zm9=", "Zm9-", "Zm9_", "Zm9\xC3", "Zm9vZg==Zm9v"}) {
    EXPECT_EQ(decode_base64(text), std::nullopt) << text;
  }
  EXPECT_EQ(decode_base64(std::string_view("Zm9\0", 4)), std::nullopt);
}

}  // namespace
}  // namespace detent

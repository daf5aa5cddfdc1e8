#include "base/http_phrase.h"

#include <gtest/gtest.h>

namespace detent {
namespace {

TEST(HttpPhrase, IsThePhraseOfTheRegistryOrEmpty) {
  EXPECT_EQ(http_phrase(200), "OK");
  EXPECT_EQ(http_phrase(413), "Content Too Large");
  EXPECT_EQ(http_phrase(503), "Service Unavailable");
  EXPECT_EQ(http_phrase(299), "");
}

}  // namespace
}  // namespace detent

// Compares the hash with values from the test suite of its authors. Stored data depends on it.
#include "base/fnv.h"

#include <gtest/gtest.h>

namespace detent {
namespace {

TEST(Fnv1a, GivesTheValuesOfItsAuthors) {
  EXPECT_EQ(fnv1a(""), 0xCBF2'9CE4'8422'2325u);
  EXPECT_EQ(fnv1a("a"), 0xAF63'DC4C'8601'EC8Cu);
  EXPECT_EQ(fnv1a("foobar"), 0x8594'4171'F739'67E8u);
}

TEST(Fnv1a, TakesBytesOneByOneAsWell) {
  Fnv1a hash;
  hash.byte('f');
  hash.bytes("oobar");
  EXPECT_EQ(hash.value(), fnv1a("foobar"));
}

}  // namespace
}  // namespace detent

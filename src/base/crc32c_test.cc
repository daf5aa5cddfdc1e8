#include "base/crc32c.h"

#include <gtest/gtest.h>

#include <numeric>
#include <string>
#include <string_view>
#include <vector>

#include "base/test_seed.h"

namespace detent {
namespace {

struct Vector {
  std::string bytes;
  std::uint32_t crc;
};

// The vectors of RFC 3720, appendix B.4, and the usual check value of "123456789".
std::vector<Vector> known_vectors() {
  std::string rising(32, '\0');
  std::iota(rising.begin(), rising.end(), '\0');
  const std::string falling(rising.rbegin(), rising.rend());
  using namespace std::string_literals;
  const std::string read_command =  // an iSCSI READ (10) command, four bytes per line
      "\x01\xC0\x00\x00"
      "\x00\x00\x00\x00"
      "\x00\x00\x00\x00"
      "\x00\x00\x00\x00"
      "\x14\x00\x00\x00"
      "\x00\x00\x04\x00"
      "\x00\x00\x00\x14"
      "\x00\x00\x00\x18"
      "\x28\x00\x00\x00"
      "\x00\x00\x00\x00"
      "\x02\x00\x00\x00"
      "\x00\x00\x00\x00"s;
  return {{std::string(32, '\0'), 0x8a9136aau},
          {std::string(32, '\xff'), 0x62a8ab43u},
          {rising, 0x46dd794eu},
          {falling, 0x113fdb5cu},
          {read_command, 0xd9963a56u},
          {"123456789", 0xe3069283u},
          {"", 0u}};
}

TEST(Crc32c, MatchesTheVectorsOfTheRfc) {
  for (const Vector& vector : known_vectors()) EXPECT_EQ(crc32c(vector.bytes), vector.crc);
}

TEST(Crc32c, TheTableMethodMatchesTheVectorsOfTheRfc) {
  for (const Vector& vector : known_vectors()) {
    EXPECT_EQ(internal::crc32c_by_table(vector.bytes, 0), vector.crc);
  }
}

TEST(Crc32c, BothMethodsAgreeAtEveryLengthAndAlignment) {
  if (!internal::crc32c_has_instruction()) GTEST_SKIP() << "no SSE4.2 here";
  const std::uint64_t seed = test_seed();
  SCOPED_TRACE(replay_hint(seed));
  Rng rng(seed);
  std::string bytes(300, '\0');
  for (char& byte : bytes) byte = static_cast<char>(rng.next());
  for (std::size_t start = 0; start < 8; ++start) {
    for (std::size_t size = 0; size <= bytes.size() - start; ++size) {
      const auto part = std::string_view(bytes).substr(start, size);
      const auto before = static_cast<std::uint32_t>(rng.next());
      ASSERT_EQ(internal::crc32c_by_instruction(part, before),
                internal::crc32c_by_table(part, before));
    }
  }
}

TEST(Crc32c, ContinuesFromTheChecksumOfAPrefix) {
  const std::string bytes = "the quick brown fox jumps over the lazy dog";
  for (std::size_t cut = 0; cut <= bytes.size(); ++cut) {
    EXPECT_EQ(crc32c(bytes.substr(cut), crc32c(bytes.substr(0, cut))), crc32c(bytes));
  }
}

}  // namespace
}  // namespace detent

#include "base/bytes.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <string>
#include <tuple>
#include <vector>

#include "base/test_seed.h"

namespace detent {
namespace {

using namespace std::string_literals;

std::string random_bytes(Rng& rng, std::uint32_t longest) {
  std::string bytes(rng.below(longest + 1), '\0');
  // Few different bytes, so that zeros and common prefixes occur often.
  constexpr std::string_view kAlphabet(
      "\x00\x01\xFF"
      "a",
      4);
  for (char& byte : bytes) byte = kAlphabet[rng.below(4)];
  return bytes;
}

TEST(ByteWriter, WritesIntegersLittleEndian) {
  std::string out;
  ByteWriter writer(out);
  writer.u8(0x01);
  writer.u16(0x0302);
  writer.u32(0x07060504);
  writer.u64(0x0F0E0D0C0B0A0908);
  EXPECT_EQ(out, "\x01\x02\x03\x04\x05\x06\x07\x08\x09\x0A\x0B\x0C\x0D\x0E\x0F"s);
}

TEST(ByteWriter, WritesKeysBigEndian) {
  std::string out;
  ByteWriter writer(out);
  writer.key_u16(0x0102);
  writer.key_u32(0x03040506);
  writer.key_u64(0x0708090A0B0C0D0E);
  writer.key_i64(-1);
  writer.key_string("a\0b"s);
  EXPECT_EQ(out,
            "\x01\x02\x03\x04\x05\x06\x07\x08\x09\x0A\x0B\x0C\x0D\x0E"
            "\x7F\xFF\xFF\xFF\xFF\xFF\xFF\xFF"
            "a\0\xFF"
            "b\0\x01"s);
}

TEST(ByteReader, ReadsBackEveryBoundaryOfAVarint) {
  std::vector<std::uint64_t> values{0, std::numeric_limits<std::uint64_t>::max()};
  for (int bits = 1; bits < 64; ++bits) {
    const std::uint64_t power = std::uint64_t{1} << bits;
    values.insert(values.end(), {power - 1, power, power + 1});
  }
  for (const std::uint64_t value : values) {
    std::string out;
    ByteWriter(out).varint(value);
    ByteReader reader(out);
    EXPECT_EQ(reader.varint().value(), value);
    EXPECT_TRUE(reader.at_end());
  }
}

TEST(ByteReader, RefusesVarintsThatAreTooLongOrNotMinimal) {
  const std::string eleven_bytes = std::string(10, '\x80') + "\x01";
  const std::string bit_65 = std::string(9, '\x80') + "\x02";
  for (const std::string& bytes : {eleven_bytes, bit_65, "\x80\x00"s, "\x80"s, ""s}) {
    ByteReader reader(bytes);
    ASSERT_FALSE(reader.varint().has_value());
    EXPECT_EQ(reader.varint().error().code, ErrorCode::data_loss);
    EXPECT_EQ(reader.position(), 0u);
  }
}

// Truncates a record at every byte. The reader must stop with an error each time.
TEST(ByteReader, FailsOnBytesTruncatedAnywhere) {
  std::string whole;
  ByteWriter writer(whole);
  writer.u8(1), writer.u16(2), writer.u32(3), writer.u64(4), writer.i64(-5), writer.varint(300);
  writer.string("payload"), writer.key_u32(6), writer.key_i64(-7), writer.key_string("k\0"s);
  const auto read_all = [](std::string_view bytes) -> Result<void> {
    ByteReader reader(bytes);
    TRY(reader.u8());
    TRY(reader.u16());
    TRY(reader.u32());
    TRY(reader.u64());
    TRY(reader.i64());
    TRY(reader.varint());
    TRY(reader.string());
    TRY(reader.key_u32());
    TRY(reader.key_i64());
    TRY(reader.key_string());
    return reader.expect_end();
  };
  EXPECT_TRUE(read_all(whole).has_value());
  for (std::size_t size = 0; size < whole.size(); ++size) {
    // Copies exactly the truncated size, so that AddressSanitizer finds a read past the end.
    const std::vector<char> cut(whole.begin(), whole.begin() + static_cast<std::ptrdiff_t>(size));
    const auto result = read_all({cut.data(), cut.size()});
    ASSERT_FALSE(result.has_value()) << size;
    EXPECT_EQ(result.error().code, ErrorCode::data_loss);
  }
}

TEST(ByteReader, RefusesAStringLargerThanTheRemainingBytes) {
  std::string bytes;
  ByteWriter(bytes).varint(std::numeric_limits<std::uint64_t>::max());
  ByteReader reader(bytes);
  EXPECT_EQ(reader.string().error().code, ErrorCode::data_loss);
  EXPECT_EQ(reader.position(), 0u);
}

TEST(ByteReader, RefusesBytesLeftOver) {
  ByteReader reader("ab");
  ASSERT_TRUE(reader.u8().has_value());
  EXPECT_EQ(reader.expect_end().error().code, ErrorCode::data_loss);
  ASSERT_TRUE(reader.u8().has_value());
  EXPECT_TRUE(reader.expect_end().has_value());
}

TEST(ByteReader, RefusesAnUnknownEscapeInAKeyString) {
  const std::string bytes = "a\0\x02"s;
  ByteReader reader(bytes);
  EXPECT_EQ(reader.key_string().error().code, ErrorCode::data_loss);
}

// Keys of (string, signed, unsigned) sort like the tuples, and are read back completely.
TEST(ByteKeys, SortAsTheirValues) {
  const std::uint64_t seed = test_seed();
  SCOPED_TRACE(replay_hint(seed));
  Rng rng(seed);
  using Key = std::tuple<std::string, std::int64_t, std::uint32_t>;
  std::vector<std::pair<std::string, Key>> keys;
  for (int i = 0; i < 2000; ++i) {
    const Key key{random_bytes(rng, 4), static_cast<std::int64_t>(rng.next() >> rng.below(64)),
                  static_cast<std::uint32_t>(rng.next())};
    std::string bytes;
    ByteWriter writer(bytes);
    writer.key_string(std::get<0>(key));
    writer.key_i64(std::get<1>(key));
    writer.key_u32(std::get<2>(key));
    ByteReader reader(bytes);
    ASSERT_EQ(reader.key_string().value(), std::get<0>(key));
    ASSERT_EQ(reader.key_i64().value(), std::get<1>(key));
    ASSERT_EQ(reader.key_u32().value(), std::get<2>(key));
    ASSERT_TRUE(reader.at_end());
    keys.emplace_back(bytes, key);
  }
  std::sort(keys.begin(), keys.end());
  for (std::size_t i = 1; i < keys.size(); ++i) ASSERT_LE(keys[i - 1].second, keys[i].second);
}

TEST(ByteKeys, OrderSignedNumbersAcrossZero) {
  std::vector<std::string> keys;
  for (const std::int64_t value :
       {std::numeric_limits<std::int64_t>::min(), std::int64_t{-1}, std::int64_t{0},
        std::int64_t{1}, std::numeric_limits<std::int64_t>::max()}) {
    std::string bytes;
    ByteWriter(bytes).key_i64(value);
    keys.push_back(bytes);
  }
  EXPECT_TRUE(std::is_sorted(keys.begin(), keys.end()));
}

}  // namespace
}  // namespace detent

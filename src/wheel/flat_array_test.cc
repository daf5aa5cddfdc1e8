#include "detent/internal/flat_array.h"

#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>

namespace detent::internal {
namespace {

// Both kinds of memory, whatever the system is.
template <class Large>
class FlatArrayOver : public testing::Test {};
#if defined(__linux__)
using Kinds = testing::Types<HeapPages, MappedPages>;
#else
using Kinds = testing::Types<HeapPages>;
#endif
TYPED_TEST_SUITE(FlatArrayOver, Kinds);

TYPED_TEST(FlatArrayOver, KeepsWhatIsInItAndIsZeroBeyond) {
  FlatArray<std::uint32_t, TypeParam> array;
  EXPECT_EQ(array.size(), 0u);
  std::size_t written = 0;
  for (const std::size_t count : {1u, 100u, 5'000u, 16'384u, 16'385u, 600'000u, 3'000'000u}) {
    array.grow(count);
    ASSERT_GE(array.size(), count);
    for (std::size_t i = 0; i < written; ++i) ASSERT_EQ(array[i], i + 1);
    for (; written < array.size(); ++written) {
      ASSERT_EQ(array[written], 0u);
      array[written] = static_cast<std::uint32_t>(written + 1);
    }
  }
}

TYPED_TEST(FlatArrayOver, GrowsToTwiceItsSizeAndNeverShrinks) {
  FlatArray<std::uint64_t, TypeParam> array;
  array.grow(1'000);
  const std::size_t before = array.size();
  array.grow(10);
  EXPECT_EQ(array.size(), before);
  array.grow(before + 1);
  EXPECT_EQ(array.size(), 2 * before);
}

TYPED_TEST(FlatArrayOver, MayBeWrittenAgainAfterItWasGivenBack) {
  FlatArray<std::uint64_t, TypeParam> array;
  array.grow(1u << 20);  // 8 MiB
  for (std::size_t i = 0; i < array.size(); ++i) array[i] = i;
  array.give_back(1u << 18, 1u << 18);
  EXPECT_EQ(array[0], 0u);
  EXPECT_EQ(array[(1u << 18) - 1], (1u << 18) - 1);
  EXPECT_EQ(array[1u << 19], 1u << 19);
  array[1u << 18] = 7;
  EXPECT_EQ(array[1u << 18], 7u);
}

TYPED_TEST(FlatArrayOver, TouchingChangesNothing) {
  FlatArray<std::uint64_t, TypeParam> array;
  array.grow(100'000);
  for (std::size_t i = 0; i < 100'000; ++i) array[i] = i;
  array.touch(0, 100'000);
  for (std::size_t i = 0; i < 100'000; ++i) ASSERT_EQ(array[i], i);
}

#if defined(__linux__)
constexpr std::size_t kMebibyte = std::size_t{1} << 20;

void write(FlatArray<std::uint64_t>& array, std::size_t bytes) {
  for (std::size_t i = 0; i < bytes / 8; ++i) array[i] = i;
}

// The kernel says what it holds.
TEST(MappedPages, HoldsWhatIsWrittenUntilItIsGivenBack) {
  FlatArray<std::uint64_t> array;
  array.grow(kMebibyte / 8);
  EXPECT_EQ(array.mapped_bytes(), 0u) << "nothing was written yet";
  write(array, kMebibyte / 2);
  EXPECT_EQ(array.mapped_bytes(), kMebibyte / 2);
  array.give_back(0, kMebibyte / 32);
  EXPECT_EQ(array.mapped_bytes(), kMebibyte / 4);
}

TEST(MappedPages, GrowingMovesPagesAndTakesNoMore) {
  FlatArray<std::uint64_t> array;
  array.grow(kMebibyte / 8);
  write(array, kMebibyte);
  array.grow(2 * kMebibyte / 8);
  EXPECT_FALSE(array.is_huge());
  EXPECT_EQ(array.mapped_bytes(), kMebibyte);
  array.grow(64 * kMebibyte / 8);
  EXPECT_LE(array.mapped_bytes(), kHugePage);
}

TEST(MappedPages, LargeRowsStartWhereALargePageMay) {
  FlatArray<std::uint64_t> array;
  array.grow(4 * kMebibyte / 8);
  EXPECT_TRUE(array.is_huge());
  EXPECT_EQ(reinterpret_cast<std::uintptr_t>(&array[0]) % kHugePage, 0u);
  array[0] = 1;
  array.grow(16 * kMebibyte / 8);
  EXPECT_EQ(reinterpret_cast<std::uintptr_t>(&array[0]) % kHugePage, 0u);
  EXPECT_EQ(array[0], 1u);
  array.give_back(0, kHugePage / 8);
  EXPECT_EQ(array.mapped_bytes(), 0u);
}

TEST(FlatArray, SmallOnesAreTheHeaps) {
  FlatArray<std::uint64_t> array;
  array.grow(100);
  write(array, 800);
  EXPECT_EQ(array.mapped_bytes(), 0u);
}
#endif

}  // namespace
}  // namespace detent::internal

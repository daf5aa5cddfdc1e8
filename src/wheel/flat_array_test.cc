#include "detent/internal/flat_array.h"

#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <fstream>
#include <limits>
#include <sstream>
#include <string>

#include "wheel/test_no_pages.h"

namespace detent::internal {
namespace {

// Both kinds of memory, if the system has both.
template <class Large>
class FlatArrayOver : public testing::Test {};
#if defined(__linux__)
using Kinds = testing::Types<HeapPages, MappedPages>;
#else
using Kinds = testing::Types<HeapPages>;
#endif
TYPED_TEST_SUITE(FlatArrayOver, Kinds);

TYPED_TEST(FlatArrayOver, KeepsItsElementsAndIsZeroBeyondThem) {
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

TEST(FlatArray, IsUnchangedIfThereIsNoMemoryToGrow) {
  FlatArray<std::uint32_t, NoPages> array;
  array.grow(1'000);
  array[999] = 7;
  const std::size_t size = array.size();
  EXPECT_FALSE(array.try_grow(1'000'000));
  EXPECT_FALSE(array.try_grow(std::numeric_limits<std::size_t>::max()));
  EXPECT_EQ(array.size(), size);
  EXPECT_EQ(array[999], 7u);
  EXPECT_TRUE(array.try_grow(2'000)) << "from the heap";
  EXPECT_EQ(array[999], 7u);
}

TEST(FlatArrayDeathTest, RunningOutOfMemoryEndsTheProcess) {
  FlatArray<std::uint32_t, NoPages> array;
  EXPECT_DEATH(array.grow(1'000'000), "has_memory");
}

#if defined(__linux__)
constexpr std::size_t kMebibyte = std::size_t{1} << 20;

using Mapped = FlatArray<std::uint64_t, MappedPages>;

void write(auto& array, std::size_t bytes) {
  for (std::size_t i = 0; i < bytes / 8; ++i) array[i] = i;
}

// The number of mappings that contain a part of the array.
std::size_t mappings_of(const Mapped& array) {
  const auto first = reinterpret_cast<std::uintptr_t>(&array[0]);
  const std::uintptr_t end = first + array.size() * 8;
  std::ifstream maps("/proc/self/maps");
  std::size_t count = 0;
  for (std::string line; std::getline(maps, line);) {
    std::istringstream words(line);
    std::uintptr_t from = 0;
    std::uintptr_t to = 0;
    char dash = 0;
    words >> std::hex >> from >> dash >> to;
    if (from < end && to > first) ++count;
  }
  return count;
}

// mapped_bytes() is the kernel's own figure.
TEST(MappedPages, HoldsWrittenMemoryUntilItIsGivenBack) {
  Mapped array;
  array.grow(kMebibyte / 8);
  EXPECT_EQ(array.mapped_bytes(), 0u) << "nothing was written yet";
  write(array, kMebibyte / 2);
  EXPECT_EQ(array.mapped_bytes(), kMebibyte / 2);
  array.give_back(0, kMebibyte / 32);
  EXPECT_EQ(array.mapped_bytes(), kMebibyte / 4);
}

TEST(MappedPages, GrowingMovesPagesAndUsesNoFurtherPages) {
  Mapped array;
  array.grow(kMebibyte / 8);
  write(array, kMebibyte / 2);
  array.grow(2 * kMebibyte / 8);
  EXPECT_FALSE(array.is_huge());
  EXPECT_EQ(array.mapped_bytes(), kMebibyte / 2) << "a copy would have all of the old MiB";
  array.grow(64 * kMebibyte / 8);
  EXPECT_LE(array.mapped_bytes(), kHugePage);
}

// Linux before 6.17 cannot move two mappings in one call.
TEST(MappedPages, IsOneMappingHoweverOftenItGrew) {
  Mapped array;
  for (std::size_t bytes = kMebibyte / 16; bytes <= 16 * kMebibyte; bytes *= 2) {
    array.grow(bytes / 8);
    write(array, bytes);
    ASSERT_TRUE(bytes < kMebibyte / 8 || mappings_of(array) == 1) << bytes << " bytes";
  }
}

TEST(MappedPages, IsCopiedWhenItCannotBeMoved) {
  for (const std::size_t bytes : {kMebibyte / 8, kMebibyte, 2 * kMebibyte, 8 * kMebibyte}) {
    Mapped array;
    array.grow(bytes / 8);
    write(array, bytes);
    ASSERT_EQ(madvise(&array[bytes / 16], bytes / 2, MADV_DONTFORK), 0);
    ASSERT_EQ(mappings_of(array), 2u);
    array.grow(2 * bytes / 8);
    ASSERT_EQ(mappings_of(array), 1u);
    for (std::size_t i = 0; i < bytes / 8; ++i) ASSERT_EQ(array[i], i);
    ASSERT_EQ(array[bytes / 8], 0u);
    array[2 * bytes / 8 - 1] = 1;
  }
}

TEST(MappedPages, KeepsLockedPages) {
  constexpr std::size_t kLocked = std::size_t{64} << 10;
  Mapped array;
  array.grow(kMebibyte / 8);
  write(array, kMebibyte);
  if (mlock(&array[0], kLocked) != 0) GTEST_SKIP() << "may not lock 64 KiB";
  array.give_back(0, kLocked / 8);
  array.give_back(0, kMebibyte / 8);
  array[0] = 7;
  EXPECT_EQ(array[0], 7u);
}

TEST(MappedPages, UnknownPagesCountAsHeld) {
  void* const start = MappedPages::grow(nullptr, 0, kMebibyte);
  EXPECT_EQ(MappedPages::resident_bytes(start, kMebibyte), 0u);
  MappedPages::release(start, kMebibyte);
  EXPECT_EQ(MappedPages::resident_bytes(start, kMebibyte), kMebibyte);
}

TEST(MappedPages, LargeRowsStartWhereALargePageMay) {
  Mapped array;
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

TEST(FlatArray, SmallArraysAreOnTheHeap) {
  Mapped array;
  array.grow(64 * 1024 / 8);
  write(array, 64 * std::size_t{1024});
  EXPECT_EQ(array.mapped_bytes(), 0u);
  array.grow(64 * 1024 / 8 + 1);
  EXPECT_EQ(array.mapped_bytes(), 64u * 1024);
}

// These sanitizers look for leaks only in the heap, and for overruns only at the ends of heap
// blocks.
TEST(FlatArray, AllArraysAreOnTheHeapForSanitizers) {
#if defined(__SANITIZE_ADDRESS__)
  constexpr bool kSanitized = true;
#elif defined(__has_feature)
  constexpr bool kSanitized = __has_feature(address_sanitizer);
#else
  constexpr bool kSanitized = false;
#endif
  FlatArray<std::uint64_t> array;
  array.grow(8 * kMebibyte / 8);
  write(array, kMebibyte);
  EXPECT_EQ(array.mapped_bytes() == 0, kSanitized);
  EXPECT_EQ(array.is_huge(), !kSanitized);
}
#endif

}  // namespace
}  // namespace detent::internal

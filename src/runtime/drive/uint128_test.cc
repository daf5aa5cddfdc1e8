// Compares the numbers of 128 bits by halves with the type of the compiler. On a processor of 32
// bits only the fixed values are tested.
#include "detent/internal/uint128.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <limits>

#include "base/test_seed.h"

namespace detent::internal {
namespace {

using Halves = Uint128ByHalves;

constexpr std::uint64_t kMost = std::numeric_limits<std::uint64_t>::max();

TEST(Uint128ByHalves, ComputesKnownValues) {
  static_assert((Halves(kMost) * kMost >> 64) == kMost - 1);
  static_assert(Halves(kMost) + 1 == Halves(1) << 64);
  static_assert(Halves(0) - 1 == Halves(-1));
  static_assert(Halves(-7) + 9 == 2);
  static_assert(Halves(std::numeric_limits<std::int64_t>::min()) + (Halves(1) << 63) == 0);
  static_assert((Halves(7) << 100) / 7 == Halves(1) << 100);
  static_assert(Halves(-1) % (Halves(-1) - 1) == 1);
  static_assert((Halves(1) << 64) > kMost);
  static_assert(static_cast<std::uint64_t>((Halves(5) << 64) + 3) == 3);
}

#if defined(__SIZEOF_INT128__)
bool equal(Halves halves, Uint128 number) {
  return static_cast<std::uint64_t>(halves) == static_cast<std::uint64_t>(number) &&
         static_cast<std::uint64_t>(halves >> 64) == static_cast<std::uint64_t>(number >> 64);
}

TEST(Uint128ByHalves, BehavesLikeTheTypeOfTheCompiler) {
  const std::uint64_t seed = test_seed();
  SCOPED_TRACE(replay_hint(seed));
  Rng rng(seed);
  // Each number has a random length, so both halves are often 0 or small.
  const auto next = [&rng] {
    const Uint128 number = Uint128{rng.next()} << 64 | rng.next();
    return number >> rng.below(128);
  };
  const auto halves_of = [](Uint128 number) {
    return (Halves(static_cast<std::uint64_t>(number >> 64)) << 64) +
           static_cast<std::uint64_t>(number);
  };
  for (int i = 0; i < 100'000; ++i) {
    const Uint128 a = rng.below(2) ? next() : Uint128{0} - next();
    const Uint128 b = next();
    const Halves x = halves_of(a);
    const Halves y = halves_of(b);
    ASSERT_TRUE(equal(x, a));
    ASSERT_TRUE(equal(x + y, a + b));
    ASSERT_TRUE(equal(x - y, a - b));
    ASSERT_TRUE(equal(x * y, a * b));
    ASSERT_EQ(x < y, a < b);
    ASSERT_EQ(x == y, a == b);
    const int bits = static_cast<int>(rng.below(128));
    ASSERT_TRUE(equal(x << bits, a << bits));
    ASSERT_TRUE(equal(x >> bits, a >> bits));
    if (b != 0) {
      ASSERT_TRUE(equal(x / y, a / b));
      ASSERT_TRUE(equal(x % y, a % b));
    }
    const auto number = static_cast<std::int64_t>(rng.next());
    ASSERT_TRUE(equal(number, static_cast<Uint128>(number)));
  }
}
#endif

}  // namespace
}  // namespace detent::internal

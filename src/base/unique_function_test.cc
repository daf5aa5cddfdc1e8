#include "detent/unique_function.h"

#include <gtest/gtest.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <type_traits>
#include <utility>

namespace detent {
namespace {

TEST(UniqueFunction, HoldsMoveOnlyCallables) {
  UniqueFunction<int(int)> add = [base = std::make_unique<int>(40)](int more) {
    return *base + more;
  };
  EXPECT_EQ(add(2), 42);
}

TEST(UniqueFunction, IsEmptyWhenDefaultConstructedOrMovedFrom) {
  UniqueFunction<void()> empty;
  EXPECT_FALSE(empty);
  UniqueFunction<void()> full = [] {};
  EXPECT_TRUE(full);
  UniqueFunction<void()> taken = std::move(full);
  EXPECT_TRUE(taken);
  EXPECT_FALSE(full);  // NOLINT(bugprone-use-after-move): tests the state after a move
}

TEST(UniqueFunction, KeepsStateBetweenCalls) {
  UniqueFunction<int()> count = [n = 0]() mutable { return ++n; };
  EXPECT_EQ(count(), 1);
  EXPECT_EQ(count(), 2);
}

TEST(UniqueFunction, TakesAnLvalueByCopyAndArgumentsByReference) {
  int calls = 0;
  auto bump = [&calls](int& value) { ++value, ++calls; };
  UniqueFunction<void(int&)> function = bump;
  int value = 1;
  function(value);
  bump(value);
  EXPECT_EQ(value, 3);
  EXPECT_EQ(calls, 2);
}

// Like std::function, so that a lambda that returns a value can be a job.
TEST(UniqueFunction, DropsTheResultOfACallableIfTheSignatureHasNone) {
  int calls = 0;
  UniqueFunction<void()> small = [&calls] { return ++calls; };
  UniqueFunction<void()> allocated = [&calls, held = std::make_unique<int>(2)] {
    return calls += *held;
  };
  small();
  allocated();
  EXPECT_EQ(calls, 3);
}

TEST(UniqueFunction, DestroysItsCallableOnce) {
  auto alive = std::make_shared<int>(0);
  const std::weak_ptr<int> watch = alive;
  {
    UniqueFunction<void()> function = [held = std::move(alive)] {};
    UniqueFunction<void()> moved = std::move(function);
    EXPECT_FALSE(watch.expired());
  }
  EXPECT_TRUE(watch.expired());
}

/// A callable of `Size` bytes that counts its live instances.
template <std::size_t Size>
class Counted {
 public:
  explicit Counted(int& alive) : alive_(&alive) { ++alive; }
  Counted(Counted&& other) noexcept : alive_(other.alive_) { ++*alive_; }
  Counted& operator=(Counted&&) = delete;
  ~Counted() { --*alive_; }
  int operator()() const { return *alive_; }

 private:
  int* alive_;
  std::array<std::byte, Size - sizeof(int*)> padding_{};
};

// Moves, assigns and calls small and large callables.
TEST(UniqueFunction, HoldsCallablesOfEverySizeOnce) {
  const auto check = []<std::size_t Size>(std::integral_constant<std::size_t, Size>) {
    int alive = 0;
    {
      UniqueFunction<int()> first = Counted<Size>(alive);
      EXPECT_EQ(alive, 1) << Size;
      UniqueFunction<int()> second = std::move(first);
      EXPECT_EQ(second(), 1) << Size;
      UniqueFunction<int()> third = Counted<Size>(alive);
      EXPECT_EQ(alive, 2) << Size;
      third = std::move(second);
      EXPECT_EQ(third(), 1) << Size;
      EXPECT_FALSE(second);  // NOLINT(bugprone-use-after-move): the state after a move
      third = UniqueFunction<int()>();
      EXPECT_EQ(alive, 0) << Size;
      EXPECT_FALSE(third);
    }
    EXPECT_EQ(alive, 0) << Size;
  };
  check(std::integral_constant<std::size_t, 16>());
  check(std::integral_constant<std::size_t, UniqueFunction<int()>::kInlineSize>());
  check(std::integral_constant<std::size_t, UniqueFunction<int()>::kInlineSize + 8>());
  check(std::integral_constant<std::size_t, 1000>());
}

TEST(UniqueFunction, IsEmptyWhenMadeFromAnEmptyFunction) {
  EXPECT_FALSE(UniqueFunction<void()>(std::function<void()>()));
  void (*const none)() = nullptr;
  EXPECT_FALSE(UniqueFunction<void()>(none));
  EXPECT_TRUE(UniqueFunction<void()>(std::function<void()>([] {})));
}

struct alignas(64) Aligned {
  bool operator()() const { return reinterpret_cast<std::uintptr_t>(this) % 64 == 0; }
};

TEST(UniqueFunction, KeepsTheAlignmentOfItsCallable) {
  UniqueFunction<bool()> function = Aligned();
  EXPECT_TRUE(function());
  UniqueFunction<bool()> moved = std::move(function);
  EXPECT_TRUE(moved());
}

TEST(UniqueFunctionDeathTest, CallingAnEmptyOneStopsTheProcess) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  UniqueFunction<void()> empty;
  EXPECT_DEATH(empty(), "check failed: verbs_ != nullptr");
}

}  // namespace
}  // namespace detent

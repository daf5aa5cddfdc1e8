// How much memory TimerWheel and DenseWheel need, from the counts of the C library and the kernel.
// Under a sanitizer these counts mean something else, so the test then counts nothing.
#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "base/rng.h"
#include "detent/dense_wheel.h"
#include "detent/timer_wheel.h"

#if defined(__GLIBC__) && !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
#if defined(__has_feature)
#define DETENT_COUNTS_MEMORY !(__has_feature(address_sanitizer) || __has_feature(thread_sanitizer))
#else
#define DETENT_COUNTS_MEMORY 1
#endif
#else
#define DETENT_COUNTS_MEMORY 0
#endif

#if DETENT_COUNTS_MEMORY
#include <malloc.h>  // tidy-ok(third-party): glibc counts the bytes that the test is about

namespace detent {
namespace {

std::size_t bytes_on_heap() {
  const struct mallinfo2 info = mallinfo2();
  return info.uordblks + info.hblkhd;
}

Tick within_a_minute(Rng& random) { return 1 + random.below(60'000); }

struct TimerWheelMemory {
  static constexpr const char* kName = "TimerWheel";
  static constexpr std::size_t kObjectBytes = sizeof(Timer);
  explicit TimerWheelMemory(std::uint32_t count) : timers(count) {}
  void schedule(std::uint32_t number, Tick deadline) { wheel->schedule(timers[number], deadline); }
  void advance(Tick now) {
    wheel->advance(now, [](Timer&) {});
  }

  std::vector<Timer> timers;
  std::unique_ptr<TimerWheel> wheel;
};

struct DenseWheelMemory {
  static constexpr const char* kName = "DenseWheel";
  static constexpr std::size_t kObjectBytes = 0;
  explicit DenseWheelMemory(std::uint32_t) {}
  void schedule(std::uint32_t number, Tick deadline) { wheel->schedule(number, deadline); }
  void advance(Tick now) {
    wheel->advance(now, [](std::uint32_t) {});
  }

  std::unique_ptr<DenseWheel> wheel;
};

template <class Memory>
class WheelMemory : public testing::Test {
 public:
  // The bytes of a wheel with `count` timers that are due within a minute of 60 000 ticks, and the
  // bytes of the caller's timers.
  static std::size_t bytes_for(std::uint32_t count) {
    Rng random(1);
    Memory memory(count);
    const std::size_t before = bytes_on_heap();
    memory.wheel = std::make_unique<typename decltype(memory.wheel)::element_type>();
    for (std::uint32_t number = 0; number < count; ++number) {
      memory.schedule(number, within_a_minute(random));
    }
    return bytes_on_heap() - before + memory.wheel->mapped_bytes() + count * Memory::kObjectBytes;
  }
};

struct MemoryNames {
  template <class Memory>
  static std::string GetName(int) {
    return Memory::kName;
  }
};
using Wheels = testing::Types<TimerWheelMemory, DenseWheelMemory>;
TYPED_TEST_SUITE(WheelMemory, Wheels, MemoryNames);

TYPED_TEST(WheelMemory, AnEmptyWheelTakesLessThanThreeKilobytes) {
  EXPECT_LE(this->bytes_for(0), 3'000u);
}

// The C library also counts the memory that it keeps for the next allocations: a few hundred bytes.
TYPED_TEST(WheelMemory, AHundredTimersTakeTenKilobytesWithoutTheObjects) {
  EXPECT_LE(this->bytes_for(100) - 100 * TypeParam::kObjectBytes, 10'240u + 300);
}

TYPED_TEST(WheelMemory, AThousandTimersTakeAtMost80BytesEach) {
  EXPECT_LE(this->bytes_for(1'000), 80'000u);
}

TYPED_TEST(WheelMemory, TenThousandTimersTakeAtMost48BytesEach) {
  EXPECT_LE(this->bytes_for(10'000), 480'000u);
}

TYPED_TEST(WheelMemory, AMillionTimersTakeAtMost38BytesEach) {
  EXPECT_LE(this->bytes_for(1'000'000), 38'000'000u);
}

// A minute of ticks moves timers to every level that they reach.
TYPED_TEST(WheelMemory, TimeDoesNotMakeASmallWheelLarge) {
  Rng random(1);
  TypeParam memory(100);
  const std::size_t before = bytes_on_heap();
  memory.wheel = std::make_unique<typename decltype(memory.wheel)::element_type>();
  for (Tick now = 0; now < 300'000; now += 17) {
    memory.schedule(random.below(100), now + within_a_minute(random));
    memory.advance(now);
  }
  EXPECT_LE(bytes_on_heap() - before, 18'000u);
}

}  // namespace
}  // namespace detent
#endif

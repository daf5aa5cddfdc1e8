// Bugs of two wheels for long spans, and the correct results of Detent: the extended wheel (with a
// level for years) and the dynamic wheel (with levels on demand). cases.md lists all cases.
#include <gtest/gtest.h>

#include <cstdint>
#include <limits>
#include <optional>
#include <vector>

#include "detent/queues/hierarchical_wheel.h"
#include "tests/regress/classic/dynamic_wheel_port.h"
#include "tests/regress/classic/our_queues.h"
#include "tests/regress/classic/relative_wheel_port.h"

namespace detent::classic {
namespace {

// The levels below the hour do not matter here. The wheel divides delays by years of 365 days, but
// a turn of its months takes twelve times thirty days.
TEST(ExtendedWheelPort, EW_360_365) {
  constexpr std::int64_t kDay = 24;
  constexpr std::int64_t kFiveYears = 5 * 365 * kDay;
  RelativeWheelPort port({{1, 24}, {kDay, 30}, {30 * kDay, 12}, {365 * kDay, 100}});
  std::int64_t fired = 0;
  port.add(kFiveYears, [&] { fired = port.now(); });
  port.run_until(2 * kFiveYears);
  EXPECT_EQ(kFiveYears - fired, 25 * kDay);

  expect_on_time(0, {Tick{kFiveYears}});
  expect_on_time<LevelsUnderBothDrives<24, 30, 12, 100>>(0, {Tick{kFiveYears}});
  // In seconds. The last level of SixLevels has years of twelve months of thirty days.
  using SixLevels = LevelsCase<HierarchicalWheel::Drive::tickless, 60, 60, 24, 30, 12, 100>;
  expect_on_time(0, {Tick{kFiveYears} * 3'600});
  expect_on_time<testing::Types<SixLevels>>(0, {Tick{kFiveYears} * 3'600});
}

TEST(DynamicWheelPort, DW_LEVEL_OVERFLOW) {
  constexpr std::int64_t kHuge = std::numeric_limits<std::int64_t>::max();
  const DynamicWheelPort port(64);
  EXPECT_EQ(port.level_for(63), 0u);
  EXPECT_EQ(port.level_for(64), 1u);
  EXPECT_EQ(port.level_for(kHuge), std::nullopt)
      << "bug of the port: it searches for a level forever";

  expect_on_time(0, {63, 64});
  expect_on_time(0, {Tick{kHuge}});
  expect_on_time(0, {kLastTick});
  using OnDemand = testing::Types<LevelsOnDemandCase<HierarchicalWheel::Drive::tickless, 64>>;
  expect_on_time<OnDemand>(0, {63, 64, Tick{kHuge}, kLastTick});
}

TEST(DynamicWheelPort, DW_UNDRIVEN) {
  const auto port_fires_at = [](std::int64_t delay, bool made_before_start) {
    DynamicWheelPort port(10);
    std::optional<std::int64_t> fired;
    if (!made_before_start) port.start();
    port.add(delay, [&] { fired = port.now(); });
    if (made_before_start) port.start();
    port.run_until(100'000);
    return fired;
  };
  EXPECT_EQ(port_fires_at(7, false), 7);
  EXPECT_EQ(port_fires_at(123, true), 123);
  EXPECT_EQ(port_fires_at(123, false), std::nullopt) << "bug of the port: its level stands still";

  expect_on_time(0, {7, 123, 1'234, 7'999});
  expect_on_time<OnDemandUnderBothDrives<10>>(0, {7, 123, 1'234, 7'999, 99'999});
}

}  // namespace
}  // namespace detent::classic

// The special properties of HierarchicalWheel: level boundaries, and levels made on demand.
// hierarchical_wheel_drive_test.cc tests its drives.
#include "detent/queues/hierarchical_wheel.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/rng.h"
#include "base/test_seed.h"
#include "wheel/queues/test_wakeups.h"
#include "wheel/test_queues.h"
#include "wheel/timer_queue_rig.h"

namespace detent {
namespace {

using Drive = HierarchicalWheel::Drive;
using Options = HierarchicalWheel::Options;
using Timer = HierarchicalWheel::Timer;

constexpr std::array kDrives{Drive::tickless, Drive::tick_by_tick};
constexpr Tick kOneMinute = 60;
constexpr Tick kOneHour = 60 * kOneMinute;
constexpr Tick kOneDay = 24 * kOneHour;

std::optional<HierarchicalWheel> clock_wheel(Drive drive, Tick now) {
  return HierarchicalWheel::make({.level_sizes = {60, 60, 24}, .drive = drive, .now = now});
}

std::string error_of(const Options& options) {
  std::string error;
  EXPECT_FALSE(HierarchicalWheel::make(options, &error).has_value());
  EXPECT_FALSE(HierarchicalWheel::make(options).has_value()) << "and without asking why";
  return error;
}

// The place of the only timer of a wheel: its level, and the first tick of its slot.
std::pair<std::size_t, Tick> only_place(const HierarchicalWheel& wheel) {
  std::vector<std::pair<std::size_t, Tick>> places;
  wheel.for_each_slot([&](const HierarchicalWheel::Slot& slot, std::size_t timer_count) {
    EXPECT_EQ(timer_count, 1u);
    places.emplace_back(slot.level, slot.start);
  });
  EXPECT_EQ(places.size(), 1u);
  return places.empty() ? std::pair<std::size_t, Tick>{99, 0} : places.front();
}

// Advances to the tick before `due`, and then to `due`.
void expect_fires_at(HierarchicalWheel& wheel, Tick due) {
  if (due > wheel.now() + 1) {
    ASSERT_EQ(wheel.advance(due - 1, kIgnore).fired, 0u) << "early, due at " << due;
    wheel.check_invariants();
  }
  ASSERT_EQ(wheel.advance(due, kIgnore).fired, 1u) << "not at " << due;
  ASSERT_TRUE(wheel.empty());
}

TEST(HierarchicalWheel, RefusesImpossibleSizesAndNamesThem) {
  EXPECT_EQ(error_of({}),
            "neither level_sizes nor slots_per_level is given: a wheel has at least one level");
  EXPECT_EQ(error_of({.level_sizes = {60}, .slots_per_level = 20}),
            "both level_sizes and slots_per_level are given: levels are listed or made on demand");
  EXPECT_EQ(error_of({.slot_width = 0, .level_sizes = {60}}),
            "slot_width is 0: a slot is at least one tick wide");
  EXPECT_EQ(error_of({.level_sizes = {60, 0, 24}}),
            "level_sizes[1] is 0: a level has at least 2 slots");
  EXPECT_EQ(error_of({.level_sizes = {60, 60, 1}}),
            "level_sizes[2] is 1: a level has at least 2 slots");
  EXPECT_EQ(error_of({.slots_per_level = 1}), "slots_per_level is 1: a level has at least 2 slots");
  EXPECT_EQ(error_of({.level_sizes = {4'000'000'000, 4'000'000'000}}),
            "there are 8000000000 slots: a wheel has at most 268435456");
  EXPECT_EQ(error_of({.slots_per_level = 300'000'000}),
            "there are 300000000 slots: a wheel has at most 268435456");
}

TEST(HierarchicalWheel, RefusesASpanOfMoreThan64Bits) {
  constexpr const char* kTooLong = "slot_width × level_sizes is more ticks than 64 bits hold";
  EXPECT_EQ(error_of({.level_sizes = std::vector<unsigned>(64, 2)}), kTooLong);
  EXPECT_EQ(error_of({.slot_width = Tick{1} << 63, .level_sizes = {2}}), kTooLong);
  EXPECT_EQ(error_of({.slot_width = 6'148'914'691'236'517'206, .level_sizes = {3}}), kTooLong);

  const auto wheel =
      HierarchicalWheel::make({.slot_width = 6'148'914'691'236'517'205, .level_sizes = {3}});
  ASSERT_TRUE(wheel.has_value());
  EXPECT_EQ(wheel->span(), kLastTick);
  EXPECT_EQ(HierarchicalWheel::make({.level_sizes = std::vector<unsigned>(63, 2)})->span(),
            Tick{1} << 63);
}

// A timer goes to the finest level that reaches its deadline. From there it fires at its exact
// tick.
TEST(HierarchicalWheel, OverflowsUpToTheFirstLevelThatReachesTheDeadline) {
  struct Row {
    Tick start;
    Tick deadline;
    std::size_t level;
    Tick slot_start;
  };
  constexpr std::array kRows{
      Row{0, 1, 0, 1},
      Row{0, 59, 0, 59},
      Row{0, 60, 0, 60},  // a whole round ahead: the slot at the hand, which is empty
      Row{0, 61, 1, 60},
      Row{0, 119, 1, 60},
      Row{0, 120, 1, 120},
      Row{0, kOneHour - 1, 1, kOneHour - 60},
      Row{0, kOneHour, 1, kOneHour},
      Row{0, kOneHour + 59, 1, kOneHour},
      Row{0, kOneHour + 60, 2, kOneHour},
      Row{0, kOneDay - 1, 2, kOneDay - kOneHour},
      Row{0, kOneDay, 2, kOneDay},
      Row{58, 117, 0, 117},
      Row{58, 118, 0, 118},
      Row{58, 119, 1, 60},
      Row{59, 60, 0, 60},
      Row{59, kOneHour, 1, kOneHour},
      Row{59, kOneHour + 60, 2, kOneHour},
      Row{60, kOneHour + 60, 1, kOneHour + 60},
      Row{kOneHour - 1, kOneHour, 0, kOneHour},
      Row{kOneHour - 1, 2 * kOneHour - 1, 1, 2 * kOneHour - 60},
      Row{kOneDay - 1, kOneDay, 0, kOneDay},
      Row{kOneDay - 1, 2 * kOneDay - 1, 2, 2 * kOneDay - kOneHour},
  };
  for (const Drive drive : kDrives) {
    for (const Row& row : kRows) {
      SCOPED_TRACE(testing::Message() << row.start << " to " << row.deadline);
      auto wheel = clock_wheel(drive, row.start);
      Timer timer;
      ASSERT_TRUE(wheel->schedule(timer, row.deadline));
      EXPECT_EQ(only_place(*wheel), std::pair(row.level, row.slot_start));
      expect_fires_at(*wheel, row.deadline);
    }
  }
}

// Delays just below, at and just above each boundary. The hand is just before, at or just after it.
TEST(HierarchicalWheel, IsExactAtEachLevelBoundary) {
  constexpr std::array<Tick, 4> kBoundaries{kOneMinute, 2 * kOneMinute, kOneHour, kOneDay};
  for (const Drive drive : kDrives) {
    for (const Tick hand : kBoundaries) {
      for (const Tick start : {hand - 1, hand, hand + 1}) {
        for (const Tick boundary : kBoundaries) {
          for (const Tick delay : {boundary - 1, boundary, boundary + 1}) {
            SCOPED_TRACE(testing::Message() << delay << " from " << start);
            auto wheel = clock_wheel(drive, start);
            Timer timer;
            ASSERT_EQ(wheel->schedule(timer, start + delay), delay <= kOneDay);
            if (delay <= kOneDay) expect_fires_at(*wheel, start + delay);
          }
        }
      }
    }
  }
}

TEST(HierarchicalWheel, MovesAndCancelsAcrossLevelBoundaries) {
  constexpr std::array<Tick, 9> kDelays{1,        59,           60,          61,     kOneHour - 1,
                                        kOneHour, kOneHour + 1, kOneDay - 1, kOneDay};
  constexpr std::array<Tick, 4> kPauses{0, 1, 58, kOneHour};
  for (const Drive drive : kDrives) {
    for (const Tick first : kDelays) {
      for (const Tick pause : kPauses) {
        for (const Tick second : kDelays) {
          if (pause >= first) continue;
          SCOPED_TRACE(testing::Message() << first << ", after " << pause << ' ' << second);
          auto wheel = clock_wheel(drive, 7);
          Timer moved;
          Timer cancelled;
          ASSERT_TRUE(wheel->schedule(moved, 7 + first));
          ASSERT_TRUE(wheel->schedule(cancelled, 7 + first));
          ASSERT_EQ(wheel->advance(7 + pause, kIgnore).fired, 0u);
          ASSERT_TRUE(wheel->postpone(moved, 7 + pause + second));
          ASSERT_TRUE(wheel->cancel(cancelled));
          wheel->check_invariants();
          expect_fires_at(*wheel, 7 + pause + second);
        }
      }
    }
  }
}

// Every small wheel, start and delay. The wheel must accept a delay exactly if its span holds it.
// The timer must then fire at the first slot that is not before its deadline, by steps and by one
// jump.
TEST(HierarchicalWheel, AcceptsTheWholeSpanFromAnyTickAndFiresAtTheNextSlot) {
  const std::vector<std::vector<unsigned>> shapes{{2}, {5}, {2, 2}, {3, 2}, {2, 3, 2}};
  for (const auto& sizes : shapes) {
    for (Tick width = 1; width <= 3; ++width) {
      for (const Drive drive : kDrives) {
        const Tick span = *Options{.slot_width = width, .level_sizes = sizes}.span();
        for (Tick start = 0; start <= span + 1; ++start) {
          for (Tick delay = 0; delay <= span + 2; ++delay) {
            const Options options{
                .slot_width = width, .level_sizes = sizes, .drive = drive, .now = start};
            auto steps = HierarchicalWheel::make(options);
            auto jump = HierarchicalWheel::make(options);
            ASSERT_EQ(steps->span(), span);
            Timer timer;
            Timer jumped;
            ASSERT_EQ(steps->schedule(timer, start + delay), delay <= span);
            ASSERT_EQ(jump->postpone(jumped, start + delay), delay <= span);
            ASSERT_EQ(timer.is_pending(), delay <= span);
            if (delay > span) continue;
            const Tick due = (start + delay + width - 1) / width * width;
            for (Tick now = start + 1; now < due; ++now) {
              ASSERT_EQ(steps->advance(now, kIgnore).fired, 0u);
              steps->check_invariants();
            }
            ASSERT_EQ(steps->advance(due, kIgnore).fired, 1u);
            ASSERT_EQ(jump->advance(due + 3 * span, kIgnore).fired, 1u);
            jump->check_invariants();
          }
        }
      }
    }
  }
}

TEST(HierarchicalWheel, CascadesDownLevelByLevel) {
  for (const Drive drive : kDrives) {
    auto wheel = HierarchicalWheel::make({.level_sizes = {4, 4, 4}, .drive = drive});
    Timer timer;
    wheel->schedule(timer, 39);
    EXPECT_EQ(only_place(*wheel), std::pair(std::size_t{2}, Tick{32}));
    wheel->advance(31, kIgnore);
    EXPECT_EQ(only_place(*wheel), std::pair(std::size_t{2}, Tick{32}));
    wheel->advance(32, kIgnore);
    EXPECT_EQ(only_place(*wheel), std::pair(std::size_t{1}, Tick{36}));
    wheel->advance(36, kIgnore);
    EXPECT_EQ(only_place(*wheel), std::pair(std::size_t{0}, Tick{39}));
    EXPECT_EQ(std::pair(wheel->hand(0), wheel->hand(1)), std::pair(std::size_t{0}, std::size_t{1}));
    EXPECT_EQ(wheel->hand(2), 2u);
    expect_fires_at(*wheel, 39);
  }
}

// Seconds, minutes, hours, days, months of 30 days and years of 12 such months, for a century.
TEST(HierarchicalWheel, SixLevelsReachAHundredYears) {
  constexpr Tick kYear = 12 * 30 * kOneDay;
  auto wheel = HierarchicalWheel::make({.level_sizes = {60, 60, 24, 30, 12, 100}, .now = 1'234});
  EXPECT_EQ(wheel->span(), 100 * kYear);
  for (const Tick delay : {kOneDay, 30 * kOneDay, kYear - 1, kYear, 5 * kYear + 1, 100 * kYear}) {
    Timer timer;
    const Tick deadline = wheel->now() + delay;
    ASSERT_TRUE(wheel->schedule(timer, deadline));
    EXPECT_FALSE(wheel->schedule(timer, wheel->now() + 100 * kYear + 1));
    EXPECT_EQ(timer.deadline(), deadline) << "a refused timer is unchanged";
    EXPECT_LE(count_wakeups(*wheel, deadline - 1), 5u);
    expect_fires_at(*wheel, deadline);
  }
}

TEST(HierarchicalWheel, MakesALevelWhenATimerNeedsIt) {
  auto wheel = HierarchicalWheel::make({.slot_width = 5, .slots_per_level = 20});
  Timer timer;
  const std::vector<std::pair<Tick, std::size_t>> rows{{100, 1},    {101, 2},    {2'000, 2},
                                                       {2'095, 2},  {2'096, 3},  {40'000, 3},
                                                       {41'995, 3}, {41'996, 4}, {44'000, 4}};
  for (const auto& [delay, level_count] : rows) {
    ASSERT_TRUE(wheel->schedule(timer, delay));
    EXPECT_EQ(wheel->level_count(), level_count) << delay;
    wheel->check_invariants();
  }
  for (std::size_t level = 0; level < 4; ++level) EXPECT_EQ(wheel->slot_count(level), 20u);
  expect_fires_at(*wheel, 44'000);
  EXPECT_EQ(wheel->level_count(), 4u) << "they stay";
}

// A common bug of wheels that make levels in a loop: the unit wraps to 0, and no level ever reaches
// the deadline.
TEST(HierarchicalWheel, LevelsOnDemandReachEveryTickAndNoFurther) {
  for (const auto& [size, level_count] : std::vector<std::pair<unsigned, std::size_t>>{
           {2, 64}, {3, 41}, {20, 15}, {256, 8}, {1u << 16, 4}, {1u << 18, 4}}) {
    for (const Tick start : {Tick{0}, Tick{12'345}, kLastTick / 2, kLastTick - 1}) {
      SCOPED_TRACE(testing::Message() << size << " from " << start);
      auto wheel = HierarchicalWheel::make({.slots_per_level = size, .now = start});
      EXPECT_EQ(wheel->span(), kLastTick);
      Timer timer;
      Timer before;
      ASSERT_TRUE(wheel->schedule(timer, kLastTick));
      ASSERT_TRUE(wheel->schedule(before, kLastTick - 1));
      if (start == 0) {
        ASSERT_EQ(wheel->level_count(), level_count);
        Tick unit = 1;
        for (std::size_t level = 1; level < level_count; ++level) unit *= size;
        EXPECT_EQ(wheel->slot_count(level_count - 1), kLastTick / unit + 1)
            << "the last level has only slots that ticks need";
      }
      EXPECT_LE(wheel->level_count(), level_count);
      wheel->check_invariants();
      EXPECT_LE(count_wakeups(*wheel, kLastTick - 1), level_count + 1);
      ASSERT_EQ(wheel->size(), 1u);
      expect_fires_at(*wheel, kLastTick);
    }
  }
}

TEST(HierarchicalWheel, IsExactAtTheEndOfTime) {
  for (const Drive drive : kDrives) {
    for (const Tick width : {1u, 7u, 1'000u}) {
      const Tick start = kLastTick - 100;
      for (Tick deadline = start + 1; deadline != 0; ++deadline) {
        auto listed = HierarchicalWheel::make(
            {.slot_width = width, .level_sizes = {3, 4, 9}, .drive = drive, .now = start});
        auto demanded = HierarchicalWheel::make(
            {.slot_width = width, .slots_per_level = 3, .drive = drive, .now = start});
        const Tick late = (width - deadline % width) % width;
        const Tick due = deadline + std::min(late, kLastTick - deadline);
        for (HierarchicalWheel* wheel : {&*listed, &*demanded}) {
          Timer timer;
          ASSERT_TRUE(wheel->schedule(timer, deadline));
          wheel->check_invariants();
          expect_fires_at(*wheel, due);
          ASSERT_TRUE(wheel->schedule(timer, deadline)) << "for the next call";
          EXPECT_EQ(wheel->advance(due, kIgnore).fired, 1u);
        }
      }
    }
  }
}

// At tick 2, a delay of 399 leads to a slot whose place on the ring belonged to the ticks 1 to 19.
// The timer must not fire with the timers of these ticks.
TEST(HierarchicalWheel, DoesNotMixTwoTurns) {
  for (const Drive drive : kDrives) {
    auto wheel = HierarchicalWheel::make({.slots_per_level = 20, .drive = drive});
    std::vector<Timer> soon(19);
    for (std::size_t i = 0; i < soon.size(); ++i) wheel->schedule(soon[i], i + 1);
    wheel->advance(2, kIgnore);
    Timer timer;
    wheel->schedule(timer, 401);
    EXPECT_EQ(wheel->advance(19, kIgnore).fired, 17u);
    expect_fires_at(*wheel, 401);
  }
}

// Inside a callback, now() is the target tick of the pass, and the span counts from this tick, even
// though the hands are still behind.
TEST(HierarchicalWheel, SpanCountsFromNowInsideACallbackOfALongJump) {
  for (const Drive drive : kDrives) {
    auto wheel = HierarchicalWheel::make({.level_sizes = {4, 2}, .drive = drive});
    std::vector<Timer> timers(2);
    std::vector<Timer> again(8);
    wheel->schedule(timers[0], 3);
    wheel->schedule(timers[1], 8);
    const AdvanceResult result = wheel->advance(1'000, [&](Timer& timer) {
      if (&timer != &timers[0]) return;
      for (std::size_t i = 0; i < again.size(); ++i) {
        EXPECT_TRUE(wheel->schedule(again[i], 1'001 + i));
      }
      EXPECT_FALSE(wheel->schedule(again[7], 1'009));
      EXPECT_TRUE(wheel->cancel(again[5]));
      wheel->check_invariants();
    });
    EXPECT_EQ(result.fired, 2u);
    wheel->check_invariants();
    for (Tick now = 1'001; now <= 1'008; ++now) {
      EXPECT_EQ(wheel->advance(now, kIgnore).fired, now == 1'006 ? 0u : 1u);
    }
  }
}

// ---- Random sizes against the model of all queues. Tick-by-tick wheels have small spans, so that
// the test can step through them.

Options random_options(Rng& random) {
  Options options;
  options.drive = kDrives[random.below(2)];
  const unsigned shift = random.below(64);
  options.slot_width = random.below(2) == 0 ? 1 : 1 + random.below(9);
  if (options.drive == Drive::tickless && random.below(2) == 0) {
    options.slots_per_level = 2 + (random.below(200) >> random.below(8));
    options.slot_width += random.next() >> shift;
    return options;
  }
  Tick product = 1;
  do {
    options.level_sizes.push_back(2 + (random.below(60) >> random.below(6)));
    product *= options.level_sizes.back();
  } while (random.below(4) != 0 && product < 200);
  return options;
}

TEST(HierarchicalWheel, AgreesWithSortedSetsForAllSizes) {
  constexpr std::size_t kEpisodes = 120;
  const std::uint64_t seed = test_seed();
  SCOPED_TRACE(replay_hint(seed));
  Rng random(seed);
  Episode all;
  for (std::size_t i = 0; i < kEpisodes; ++i) {
    Options options = random_options(random);
    const std::vector<std::uint8_t> bytes = random_bytes(random, 4'096);
    OperationReader input(bytes);
    const EpisodeStart start = input.start();
    options.now = start.tick;
    auto wheel = HierarchicalWheel::make(options);
    ASSERT_TRUE(wheel.has_value());
    const QueueNature nature{.span = wheel->span(), .slot_width = options.slot_width};
    const Episode episode = TimerQueueRig(*wheel, nature, start).run(input);
    ASSERT_EQ(episode.mismatch, std::nullopt)
        << "in episode " << i << ", width " << options.slot_width << ", "
        << options.level_sizes.size() << " levels, " << options.slots_per_level << " on demand";
    all.fired += episode.fired;
    all.refused += episode.refused;
    all.resumed += episode.resumed;
  }
  EXPECT_GT(all.fired, kEpisodes) << "too few timers fired for a useful test";
  EXPECT_GT(all.refused, kEpisodes);
  EXPECT_GT(all.resumed, kEpisodes);
}

}  // namespace
}  // namespace detent

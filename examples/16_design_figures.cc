// Draws the figures of docs/designs: one timer, in each design. The time is 117, and the timer is
// due at tick 350. Each figure shows the real queue at some ticks, so it cannot be wrong about the
// code. If a caption says where a timer is, the program checks it. The folder zh/ gets the figures
// in Chinese. ctest draws the figures again and compares them with the files in docs.
//
//     example_16_design_figures docs/designs/figures
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <optional>
#include <string>
#include <vector>

#include "design_chinese.h"
#include "design_example.h"
#include "design_levels.h"
#include "design_picture.h"
#include "design_stores.h"
#include "detent/dense_wheel.h"
#include "detent/queues/hashed_wheel.h"
#include "detent/queues/hierarchical_wheel.h"
#include "detent/queues/simple_wheel.h"

namespace design {
namespace {

using detent::DenseWheel;
using detent::HashedWheel;
using detent::HierarchicalWheel;
using detent::SimpleWheel;

// ---- One ring.

Figure simple_wheel() {
  constexpr std::size_t kSlots = 256;
  auto wheel = SimpleWheel::make({.slot_count = kSlots, .now = kNow});
  Example<SimpleWheel> example(*wheel);
  for (const Tick deadline : {Tick{200}, kOurs}) example.schedule(deadline);
  SimpleWheel::Timer alias;
  require(!wheel->schedule(alias, kOurs + kSlots), "refuses a deadline beyond the span");

  Figure figure{"A simple wheel of 256 slots",
                "One ring. The timer for tick 350 is in slot 94 until the hand comes there.",
                kOurs};
  const auto add = [&](Tick now, const std::string& caption) {
    const std::vector<Tick> fired = example.advance(now);
    Levels levels = ring_levels(example.pending(), *wheel, kSlots);
    require(now == kOurs || is_in(levels, 0, 94, kOurs), "350 is in slot 94");
    levels[0].name = "256 slots of 1 tick";
    if (now == kOurs) show_fired(levels[0], fired);
    figure.moments.push_back({at_tick(now), {Dials{levels}}, caption});
  };
  add(kNow,
      "350 is 233 ticks ahead, which is within the span of 256. Its slot is 350 mod 256 = 94. "
      "A timer for tick 606 has the same slot, and the wheel refuses it.");
  add(256,
      "The hand begins its second round at slot 0. The timer stays in slot 94. The timer for "
      "tick 200 has fired.");
  add(349, "The hand is at slot 93, one slot before the timer.");
  add(kOurs, "The hand reaches slot 94, and the timer fires at its exact tick.");
  return figure;
}

Figure hashed_wheel() {
  constexpr std::size_t kSlots = 64;
  auto wheel = HashedWheel::make({.slot_count = kSlots, .now = kNow});
  Example<HashedWheel> example(*wheel);
  for (const Tick deadline : {Tick{158}, Tick{200}, kOurs, Tick{414}}) example.schedule(deadline);

  Figure figure{"A hashed wheel of 64 slots",
                "One ring. Timers of different rounds share slot 30: 158, 350 and 414.", kOurs};
  const auto add = [&](Tick now, const std::string& caption) {
    const std::vector<Tick> fired = example.advance(now);
    Levels levels = ring_levels(example.pending(), *wheel, kSlots);
    require(now == kOurs || is_in(levels, 0, 30, kOurs), "350 is in slot 30");
    require(is_in(levels, 0, 30, 414), "414 is in slot 30");
    levels[0].name = "64 slots of 1 tick";
    if (now == kOurs) show_fired(levels[0], fired);
    figure.moments.push_back({at_tick(now), {Dials{levels}}, caption});
  };
  add(kNow,
      "350 mod 64 = 30. The hand comes to slot 30 at ticks 158, 222, 286 and 350, so the "
      "timer has 3 rounds left. Three timers share the slot.");
  add(158,
      "The hand is at slot 30. The timer for tick 158 fires. The timers for 350 and 414 belong "
      "to later rounds and stay.");
  add(256,
      "The hand is at slot 0. The timer for tick 350 has 1 round left: the hand passes its "
      "slot once more, at tick 286.");
  add(kOurs, "The hand is at slot 30 in the right round. The timer fires, and 414 stays.");
  return figure;
}

// ---- Levels.

Levels named(Levels levels, const std::vector<std::string>& names) {
  for (std::size_t i = 0; i < levels.size(); ++i) levels[i].name = names.at(i);
  return levels;
}

Figure hierarchical_wheel() {
  auto wheel = HierarchicalWheel::make({.level_sizes = {60, 60, 24}, .now = kNow});
  Example<HierarchicalWheel> example(*wheel);
  for (const Tick deadline : {Tick{130}, kOurs, Tick{7'300}}) example.schedule(deadline);
  const std::vector<std::string> names{"seconds", "minutes", "hours"};

  Figure figure{"A hierarchical wheel of 60 seconds, 60 minutes and 24 hours",
                "Three rings, like the hands of a clock. A tick is a second.", kOurs};
  const auto add = [&](Tick now, const std::string& time, std::size_t level, std::size_t slot,
                       const std::string& caption) {
    const std::vector<Tick> fired = example.advance(now);
    Levels levels = named(wheel_levels(*wheel), names);
    require(now == kOurs || is_in(levels, level, slot, kOurs), "where 350 is at " + number(now));
    if (now == kOurs) show_fired(levels[0], fired);
    figure.moments.push_back({at_tick(now) + ", " + time, {Dials{levels}}, caption});
  };
  add(kNow, "00:01:57", 1, 5,
      "350 is 00:05:50. The seconds reach only 60 ticks ahead, so the timer overflows to the "
      "minutes: slot 350 / 60 = 5. The next wake-up for it is tick 300.");
  add(256, "00:04:16", 1, 5, "The minute hand is at slot 4. The timer stays in slot 5.");
  add(300, "00:05:00", 0, 50,
      "The minute hand reaches slot 5, and the slot cascades: the timer moves to slot 50 of the "
      "seconds.");
  add(kOurs, "00:05:50", 0, 50, "The second hand reaches slot 50, and the timer fires.");
  return figure;
}

// The calls of a program, with the result of each call and its effect on the queue.
Figure calls() {
  auto wheel = HierarchicalWheel::make({.level_sizes = {60, 60, 24}, .now = kNow});
  HierarchicalWheel::Timer other;
  HierarchicalWheel::Timer ours;
  std::vector<Tick> fired;
  const auto advance = [&](Tick now) {
    wheel->advance(now, [&](auto& timer) noexcept { fired.push_back(timer.deadline()); });
  };

  Figure figure{"schedule, advance and cancel on a hierarchical wheel",
                "Each moment is a call. Only schedule and advance move timers.", kOurs};
  const auto add = [&](const std::string& call, const std::string& answer,
                       std::optional<Tick> wakeup, const std::string& caption) {
    require(wheel->next_wakeup() == wakeup, "the wake-up after " + call);
    Levels levels = named(wheel_levels(*wheel), {"seconds", "minutes", "hours"});
    require(levels[2].slots.empty(), "no timer is in the hours");
    levels.pop_back();
    show_fired(levels[0], fired);
    std::vector<PictureRow> rows = as_strips(levels);
    rows.emplace_back(Boxes{
        "answer, and next_wakeup()",
        {{.text = answer}, {.text = "next_wakeup() = " + (wakeup ? number(*wakeup) : "none")}}});
    figure.moments.push_back({call, rows, caption});
  };
  require(wheel->schedule(other, 320) && wheel->schedule(ours, kOurs), "takes both");
  add("schedule(320) and schedule(350) at tick 117", "true, true", 300,
      "Both timers are more than 60 ticks ahead, so they overflow to slot 5 of the minutes. The "
      "program can sleep until this slot begins.");
  advance(300);
  require(fired.empty(), "no timer is due at 300");
  add("advance(300)", "no timer fires", 320,
      "The minute hand reaches slot 5. Both timers cascade to the seconds: to slots 20 and 50.");
  require(wheel->cancel(other), "320 was pending");
  add("cancel(320)", "true", kOurs,
      "The timer leaves its list, and the slot is empty. No hand moves. The next wake-up is "
      "later.");
  advance(kOurs);
  require(fired == std::vector<Tick>{kOurs}, "only 350 fires");
  add("advance(350)", "350 fires", std::nullopt,
      "The second hand reaches slot 50, and the timer fires. The wheel is empty and needs no "
      "wake-up.");
  return figure;
}

Figure kafka_wheel() {
  auto wheel = HierarchicalWheel::make({.slots_per_level = 20, .now = kNow});
  Example<HierarchicalWheel> example(*wheel);
  for (const Tick deadline : {Tick{125}, kOurs, Tick{1'000}}) example.schedule(deadline);
  const std::vector<std::string> names{"level 0 (1)", "level 1 (20)", "level 2 (400)"};

  Figure figure{"Levels of 20 buckets, and a delay queue of buckets",
                "Three levels, and the queue of the buckets that are not empty.", kOurs};
  const auto add = [&](Tick now, std::size_t level, std::size_t slot, const std::string& caption) {
    const std::vector<Tick> fired = example.advance(now);
    Levels levels = named(wheel_levels(*wheel), names);
    require(now == kOurs || is_in(levels, level, slot, kOurs), "where 350 is at " + number(now));
    if (now == kOurs) show_fired(levels[0], fired);
    std::vector<PictureRow> rows = as_strips(levels);
    rows.emplace_back(delay_queue(*wheel, kOurs));
    figure.moments.push_back({at_tick(now), rows, caption});
  };
  add(kNow, 1, 17,
      "350 is 233 ticks ahead: beyond the interval of 20, within the overflow wheel's interval of "
      "400. Its bucket is 350 / 20 = 17, with the expiration 17 · 20 = 340.");
  add(256, 1, 17,
      "The bucket of tick 125 has expired. The thread sleeps in the delay queue until "
      "340. Tick 256 is an ordinary moment, without a wake-up.");
  add(340, 0, 10,
      "The bucket expires. Its timer is reinserted: 10 ticks are left, so it goes to "
      "level 0, slot 350 mod 20 = 10, with the expiration 350.");
  add(kOurs, 0, 10, "The bucket of level 0 expires, and the timer fires.");
  return figure;
}

Figure dynamic_wheel() {
  auto wheel = HierarchicalWheel::make({.slots_per_level = 10, .now = kNow});
  Example<HierarchicalWheel> example(*wheel);
  const std::vector<std::string> names{"level 0 (1)", "level 1 (10)", "level 2 (100)",
                                       "level 3 (1\u00a0000)", "level 4 (10\u00a0000)"};
  example.schedule(125);

  Figure figure{"A wheel that makes its levels on demand, with 10 slots per level",
                "The wheel begins with one level and makes further levels for far timers.", kOurs};
  const auto add = [&](const std::string& title, Tick now, std::size_t level_count,
                       const std::string& caption) {
    const std::vector<Tick> fired = example.advance(now);
    Levels levels = named(wheel_levels(*wheel), names);
    require(levels.size() == level_count, "the number of levels at " + number(now));
    if (now == kOurs) show_fired(levels[0], fired);
    figure.moments.push_back({title, as_strips(levels), caption});
    return levels;
  };
  add("Tick 117, before", kNow, 1, "One level reaches 10 ticks ahead.");
  example.schedule(kOurs);
  require(
      is_in(
          add("Tick 117, after", kNow, 3,
              "350 is 233 ticks ahead. Two levels are made: level 2 reaches 1\u00a0000 ticks. The "
              "timer goes to its slot 350 / 100 = 3."),
          2, 3, kOurs),
      "level 2, slot 3");
  require(is_in(add(at_tick(256), 256, 3, "The timer stays. Its slot begins at tick 300."), 2, 3,
                kOurs),
          "still in level 2, slot 3");
  require(is_in(add(at_tick(300), 300, 3,
                    "The slot cascades. 50 ticks are left, so the timer moves to level 1, slot "
                    "350 / 10 mod 10 = 5."),
                1, 5, kOurs),
          "level 1, slot 5");
  example.schedule(12'345);
  require(is_in(add("Tick 300, a timer for 12\u00a0345", 300, 5,
                    "Two more levels are made for one far timer. The existing timers do not move."),
                1, 5, kOurs),
          "350 does not move");
  add(at_tick(kOurs), kOurs, 5,
      "The slot of level 1 begins at tick 350. The timer moves to level 0 and fires at this tick. "
      "The wheel keeps its five levels.");
  return figure;
}

Figure century_wheel() {
  constexpr Tick kDay = 86'400;
  constexpr Tick kFar = 830 * kDay + 10 * 3'600 + 20 * 60 + 30;
  auto wheel = HierarchicalWheel::make({.level_sizes = {60, 60, 24, 30, 12, 100}, .now = kNow});
  Example<HierarchicalWheel> example(*wheel);
  for (const Tick deadline : {kOurs, kFar}) example.schedule(deadline);
  const std::vector<std::string> names{"seconds", "minutes", "hours", "days", "months", "years"};

  Figure figure{"A wheel of seconds, minutes, hours, days, months and years",
                "Six levels with 286 slots reach 100 years of 360 days.", kOurs};
  const auto add = [&](Tick now, std::size_t level, std::size_t slot, const std::string& caption) {
    example.advance(now);
    const Levels levels = named(wheel_levels(*wheel), names);
    require(is_in(levels, level, slot, now < kOurs ? kOurs : kFar),
            "where it is at " + number(now));
    figure.moments.push_back({at_tick(now), as_strips(levels), caption});
  };
  require(kFar == 71'749'230, "830 days, 10:20:30");
  add(kNow, 1, 5,
      "350 goes to minute 5, as on a wheel of three levels. 830 days, 10:20:30 from the start is "
      "tick 71\u00a0749\u00a0230: it goes to year 2.");
  add(256, 1, 5,
      "Only a slot of seconds begins at tick 256. The timer for 350 stays in minute 5 until tick "
      "300.");
  add(2 * 360 * kDay, 4, 3,
      "Tick 62\u00a0208\u00a0000: year 2 begins, and its slot cascades. The far timer moves to "
      "month 27 of "
      "the wheel's count, which is slot 27 mod 12 = 3.");
  add(810 * kDay, 3, 20,
      "Tick 69\u00a0984\u00a0000: the month begins. The timer moves to slot 830 mod 30 = "
      "20 of the days.");
  add(830 * kDay, 2, 10, "The day begins. The timer moves to hour 10.");
  add(830 * kDay + 10 * 3'600 + 20 * 60, 0, 30,
      "At 10:00:00 the timer moved to minute 20, and now it moves to second 30. It has moved five "
      "times in 27 months, and fires at its exact second.");
  return figure;
}

Figure detent_wheel() {
  const std::vector<Tick> deadlines{130, kOurs, 400, 70'000};
  DenseWheel wheel(kNow);
  for (std::uint32_t i = 0; i < deadlines.size(); ++i) wheel.schedule(i, deadlines[i]);

  Figure figure{"Levels by digits: three of the eight levels of a TimerWheel",
                "Levels of 256 slots. The level is the highest digit in which the deadline differs "
                "from now.",
                kOurs};
  const auto add = [&](Tick now, std::size_t level, std::size_t slot, const std::string& caption) {
    std::vector<Tick> fired;
    while (wheel.now() < now) {
      wheel.advance(std::min(now, wheel.next_wakeup().value_or(now)),
                    [&](std::uint32_t i) noexcept { fired.push_back(deadlines[i]); });
    }
    Levels levels = detent_levels(wheel, deadlines, 3);
    require(now == kOurs || is_in(levels, level, slot, kOurs), "where 350 is at " + number(now));
    if (now == kOurs) show_fired(levels[0], fired);
    figure.moments.push_back(
        {at_tick(now) + " = digits " + number(now >> 8) + " · " + number(now & 255),
         as_strips(levels), caption});
  };
  add(kNow, 1, 1,
      "350 = digits 1 · 94. The highest digit that differs from 0 · 117 is digit 1, so the level "
      "is 1 and the slot is 1: it stands for the ticks 256 to 511.");
  add(255, 1, 1,
      "The timer for tick 130 has fired. Level and slot of 350 are still right, although "
      "time has moved.");
  add(256, 0, 94,
      "Time enters slot 1 of level 1, and the slot cascades: digit 1 is equal now, so 350 goes to "
      "level 0, slot 94, and 400 to slot 144.");
  add(kOurs, 0, 94, "The bit of slot 94 is the next bit that is set: the timer fires. 400 stays.");
  return figure;
}

struct NamedFigure {
  const char* name;
  Figure (*make)();
};
constexpr NamedFigure kFigures[]{
    {"simple-wheel", simple_wheel},
    {"hashed-wheel", hashed_wheel},
    {"hierarchical-wheel", hierarchical_wheel},
    {"calls", calls},
    {"kafka-wheel", kafka_wheel},
    {"century-wheel", century_wheel},
    {"persistent-wheel", persistent_wheel},
    {"external-scheduler", external_scheduler},
    {"dynamic-wheel", dynamic_wheel},
    {"detent-wheel", detent_wheel},
    {"queues", queues},
    {"linux-wheel", linux_wheel},
};

bool write(const std::filesystem::path& path, const std::string& content) {
  std::ofstream file(path, std::ios::binary);
  file << content;
  file.close();
  return static_cast<bool>(file);
}

}  // namespace
}  // namespace design

int main(int argument_count, char** arguments) {
  const std::filesystem::path folder = argument_count > 1 ? arguments[1] : "design-figures";
  std::filesystem::create_directories(folder / "zh");
  for (const auto& [name, make] : design::kFigures) {
    const std::string file = std::string(name) + ".svg";
    const Figure figure = make();
    const std::string chinese = draw(design::in_chinese(figure), Language::chinese);
    if (!design::write(folder / file, draw(figure, Language::english)) ||
        !design::write(folder / "zh" / file, chinese)) {
      std::fprintf(stderr, "example_16_design_figures: cannot write %s in %s\n", file.c_str(),
                   folder.c_str());
      return EXIT_FAILURE;
    }
  }
  std::printf("%zu figures in two languages in %s\n", std::size(design::kFigures), folder.c_str());
  return EXIT_SUCCESS;
}

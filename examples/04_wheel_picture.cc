// Draws a picture of a hierarchical wheel at work. A wheel of three levels with eight slots runs
// for 80 ticks, and its movements become an animated SVG, docs/concepts/wheel-turning.svg. The
// picture comes from the real code, so it cannot be wrong about the code. ctest draws it again and
// compares.
//
//     example_04_wheel_picture docs/concepts/wheel-turning.svg
#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <optional>
#include <string>
#include <vector>

#include "detent/queues/hierarchical_wheel.h"
#include "wheel_picture.h"

namespace {

using detent::HierarchicalWheel;
using detent::Tick;

struct Plan {
  Tick scheduled_at;
  Tick deadline;
};
constexpr Tick kLastTick = 80;
constexpr std::array kPlans{
    Plan{0, 3},   Plan{0, 6},   Plan{0, 12},  Plan{0, 21},  Plan{0, 66},  Plan{0, 73},
    Plan{0, 75},  Plan{0, 76},  Plan{20, 23}, Plan{20, 45}, Plan{28, 31}, Plan{28, 33},
    Plan{36, 42}, Plan{36, 47}, Plan{36, 59}, Plan{50, 78},
};

struct NumberedTimer : HierarchicalWheel::Timer {
  std::size_t id = 0;
};

// The seat of each timer. A timer that stays in its slot keeps its seat. A new timer gets the first
// free seat.
std::vector<std::optional<Seat>> find_seats(const HierarchicalWheel& wheel,
                                            const std::vector<std::optional<Seat>>& before) {
  std::vector<std::optional<Seat>> seats(kPlans.size());
  std::vector<Seat> taken;
  const auto visit = [&](bool was_there) {
    wheel.for_each_timer([&](const HierarchicalWheel::Slot& slot, const auto& timer) {
      const std::size_t id = static_cast<const NumberedTimer&>(timer).id;
      const auto& old = before[id];
      if ((old && old->level == slot.level && old->index == slot.index) != was_there) return;
      Seat seat = was_there ? *old : Seat{slot.level, slot.index, 0};
      while (std::find(taken.begin(), taken.end(), seat) != taken.end()) ++seat.number;
      taken.push_back(seat);
      seats[id] = seat;
    });
  };
  visit(true);
  visit(false);
  return seats;
}

Frame make_frame(const HierarchicalWheel& wheel, const Recording& recording) {
  Frame frame;
  frame.seats =
      find_seats(wheel, recording.frames.empty() ? std::vector<std::optional<Seat>>(kPlans.size())
                                                 : recording.frames.back().seats);
  for (std::size_t level = 0; level < wheel.level_count(); ++level) {
    frame.hands.push_back(wheel.hand(level));
    frame.fill.emplace_back(wheel.slot_count(level));
  }
  wheel.for_each_slot([&frame](const HierarchicalWheel::Slot& slot, std::size_t timer_count) {
    frame.fill[slot.level][slot.index] = timer_count;
  });
  return frame;
}

// Returns the movements of the wheel; empty if a timer did not fire at its exact tick.
std::optional<Recording> record() {
  auto wheel = HierarchicalWheel::make({.level_sizes = {8, 8, 8}});
  std::vector<NumberedTimer> timers(kPlans.size());
  Recording recording;
  for (std::size_t id = 0; id < timers.size(); ++id) {
    timers[id].id = id;
    recording.deadlines.push_back(kPlans[id].deadline);
  }
  std::size_t exact = 0;
  for (Tick now = 0; now <= kLastTick; ++now) {
    wheel->advance(now, [&exact, now](HierarchicalWheel::Timer& timer) noexcept {
      if (timer.deadline() == now) ++exact;
    });
    for (std::size_t id = 0; id < timers.size(); ++id) {
      if (kPlans[id].scheduled_at == now) wheel->schedule(timers[id], kPlans[id].deadline);
    }
    recording.frames.push_back(make_frame(*wheel, recording));
  }
  return exact == timers.size() ? std::optional(recording) : std::nullopt;
}

}  // namespace

int main(int argument_count, char** arguments) {
  const std::optional<Recording> recording = record();
  if (!recording) {
    std::fputs("example_04_wheel_picture: a timer did not fire at its exact tick\n", stderr);
    return EXIT_FAILURE;
  }
  const char* const path = argument_count > 1 ? arguments[1] : "wheel-turning.svg";
  std::ofstream file(path, std::ios::binary);
  file << draw(*recording);
  file.close();
  if (!file) {
    std::fprintf(stderr, "example_04_wheel_picture: cannot write %s\n", path);
    return EXIT_FAILURE;
  }
  std::printf("%zu timers fired at their exact ticks; see %s\n", kPlans.size(), path);
  return EXIT_SUCCESS;
}

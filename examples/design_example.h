// The example of the figures in docs/designs: the time is 117, and a timer is due at tick 350. An
// Example puts timers into a real queue, moves time forward, and checks that each timer fires at
// its exact tick.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <deque>
#include <string>
#include <vector>

#include "design_picture.h"
#include "detent/tick.h"

namespace design {

using detent::Tick;
using Levels = std::vector<LevelPicture>;

inline constexpr Tick kNow = 117;
inline constexpr Tick kOurs = 350;

// Ends the program if a sentence of a figure is not true.
inline void require(bool holds, const std::string& sentence) {
  if (holds) return;
  std::fprintf(stderr, "example_16_design_figures: not true: %s\n", sentence.c_str());
  std::exit(EXIT_FAILURE);
}

// "350", or "71 749 230" with spaces that do not break a line.
inline std::string number(Tick value) {
  std::string digits = std::to_string(value);
  if (value < 10'000) return digits;
  for (std::size_t at = digits.size(); at > 3; at -= 3) digits.insert(at - 3, "\u00a0");
  return digits;
}

// ---- Levels, as the queues show them.

inline SlotPicture& slot_of(LevelPicture& level, std::size_t index) {
  const auto place = std::find_if(level.slots.begin(), level.slots.end(),
                                  [index](const auto& slot) { return slot.index >= index; });
  if (place != level.slots.end() && place->index == index) return *place;
  return *level.slots.insert(place, {index, {}, {}});
}

inline void put(LevelPicture& level, std::size_t index, Tick deadline) {
  std::vector<Tick>& deadlines = slot_of(level, index).deadlines;
  deadlines.insert(std::upper_bound(deadlines.begin(), deadlines.end(), deadline), deadline);
}

inline bool is_in(const Levels& levels, std::size_t level, std::size_t index, Tick deadline) {
  return level < levels.size() &&
         std::any_of(levels[level].slots.begin(), levels[level].slots.end(), [&](const auto& slot) {
           return slot.index == index &&
                  std::count(slot.deadlines.begin(), slot.deadlines.end(), deadline) == 1;
         });
}

// A queue with timers at some deadlines.
template <class Queue>
class Example {
 public:
  explicit Example(Queue& queue) : queue_(queue) {}

  Queue& queue() { return queue_; }
  void schedule(Tick deadline) {
    require(queue_.schedule(timers_.emplace_back(), deadline), "takes " + number(deadline));
  }
  // Moves time forward and returns the deadlines that fired. Each must fire at its exact tick, so
  // time goes from wake-up to wake-up.
  std::vector<Tick> advance(Tick now) {
    std::vector<Tick> fired;
    while (queue_.now() < now) {
      const Tick step = std::min(now, queue_.next_wakeup().value_or(now));
      queue_.advance(step, [&](auto& timer) noexcept {
        require(timer.deadline() == step, number(timer.deadline()) + " fires at its tick");
        fired.push_back(timer.deadline());
      });
    }
    return fired;
  }
  std::vector<Tick> pending() const {
    std::vector<Tick> deadlines;
    for (const auto& timer : timers_) {
      if (timer.is_pending()) deadlines.push_back(timer.deadline());
    }
    return deadlines;
  }

 private:
  Queue& queue_;
  std::deque<typename Queue::Timer> timers_;
};

// A ring does not show its slots. check_invariants() ends the program if a timer is in another slot
// than deadline modulo slot_count.
template <class Ring>
Levels ring_levels(const Example<Ring>& example, const Ring& ring, std::size_t slot_count) {
  ring.check_invariants();
  LevelPicture level{"", slot_count, ring.now() % slot_count, {}};
  for (const Tick deadline : example.pending()) put(level, deadline % slot_count, deadline);
  return {level};
}

inline void show_fired(LevelPicture& finest, const std::vector<Tick>& fired) {
  for (const Tick deadline : fired) {
    slot_of(finest, deadline % finest.slot_count).fired.push_back(deadline);
  }
}

inline std::vector<PictureRow> as_strips(const Levels& levels) {
  std::vector<PictureRow> rows;
  for (const LevelPicture& level : levels) rows.emplace_back(Strip{level});
  std::reverse(rows.begin(), rows.end());  // the coarsest level is on top
  return rows;
}

inline std::string at_tick(Tick tick) { return "Tick " + number(tick); }

}  // namespace design

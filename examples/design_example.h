// The example of the figures in docs/designs: the time is 117, and a timer is due at tick 350. An
// Example puts timers into a real queue, moves time forward, and checks that each timer fires at
// its exact tick.
#pragma once

#include <algorithm>
#include <cstddef>
#include <deque>
#include <string>
#include <vector>

#include "design_levels.h"
#include "design_picture.h"
#include "detent/tick.h"

namespace design {

inline constexpr Tick kNow = 117;
inline constexpr Tick kOurs = 350;

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

// Counts the wake-ups of an event loop that sleeps until a queue has work. Tests only.
#pragma once

#include <cstddef>
#include <optional>

#include "detent/queues/timer_queue.h"
#include "detent/tick.h"
#include "wheel/test_queues.h"

namespace detent {

/// Advances from wake-up to wake-up until `end`, and then to `end`. Returns the number of wake-ups.
template <TimerQueue Queue>
std::size_t count_wakeups(Queue& queue, Tick end) {
  std::size_t wakeups = 0;
  for (std::optional<Tick> next = queue.next_wakeup(); next && *next <= end; ++wakeups) {
    queue.advance(*next, kIgnore);
    next = queue.next_wakeup();
  }
  queue.advance(end, kIgnore);
  return wakeups;
}

}  // namespace detent

// The scheduler: give it a delay and a job. This program uses a clock that it moves itself, so an
// hour passes at once. Without `.clock`, the scheduler uses the system clock.
#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <memory>

#include "detent/scheduler.h"

using namespace std::chrono_literals;

int main() {
  detent::ManualClock clock;
  detent::Scheduler scheduler({.clock = &clock});

  std::atomic<int> reminders = 0;  // written by the scheduler's thread, read at the end
  std::atomic<int> beats = 0;
  auto message = std::make_unique<int>(42);  // jobs may own objects that cannot be copied
  auto reminder = scheduler.schedule_after(30min, [&reminders, m = std::move(message)] {
    std::printf("after 30 minutes: reminder %d\n", *m);
    ++reminders;
  });
  auto cancelled = scheduler.schedule_after(40min, [] { std::puts("never printed"); });
  auto beat = scheduler.schedule_every({.period = 10min}, [&beats] { ++beats; });
  std::atomic<int> polls = 0;
  auto poll = scheduler.schedule_every({.period = 1min}, [&polls](detent::TimerContext& timer) {
    if (++polls == 3) timer.stop();  // a periodic job ends its own timer
  });

  cancelled.cancel();
  for (int minute = 0; minute < 60; ++minute) {
    clock.await_waiters(1);  // the scheduler sleeps: all due jobs have run
    clock.advance(1min);
  }
  clock.await_waiters(1);
  scheduler.stop();
  std::printf("%d reminder, %d beats and %d polls in an hour\n", reminders.load(), beats.load(),
              polls.load());
  return reminders == 1 && beats == 6 && polls == 3 ? EXIT_SUCCESS : EXIT_FAILURE;
}

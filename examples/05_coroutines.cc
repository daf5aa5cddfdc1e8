// Coroutines: sleeping without a thread, stopping, and a time limit. The program moves the clock
// itself, so minutes pass at once. Without `.clock`, the scheduler uses the system clock.
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <optional>
#include <stop_token>
#include <utility>

#include "detent/coroutine.h"

using namespace std::chrono_literals;

namespace {

/// Checks once a minute whether a file has arrived. Ends when it is stopped.
detent::Task<int> await_file(detent::Scheduler& scheduler, int minutes, std::stop_token stop) {
  for (int minute = 1; co_await detent::sleep_for(scheduler, 1min, stop); ++minute) {
    if (minute == minutes) co_return minute;
  }
  co_return 0;
}

detent::Task<void> import_file(detent::Scheduler& scheduler, int minutes, bool& in_time) {
  // A lambda with captures needs a name before its use in a co_await expression
  // (detent/coroutine.h).
  auto work = [&scheduler, minutes](std::stop_token stop) {
    return await_file(scheduler, minutes, std::move(stop));
  };
  const std::optional<int> minute = co_await detent::timeout_after(scheduler, 10min, work);
  in_time = minute.has_value();
  if (minute) std::printf("the file came in minute %d\n", *minute);
  if (!minute) std::puts("no file within ten minutes");
}

}  // namespace

int main() {
  detent::ManualClock clock;
  detent::Scheduler scheduler({.clock = &clock});

  const auto fail = [](const std::exception_ptr& error) {
    if (error) std::terminate();
  };
  bool soon = false;
  bool late = true;
  spawn(import_file(scheduler, 3, soon), fail);
  spawn(import_file(scheduler, 30, late), fail);
  for (int minute = 0; minute < 10; ++minute) {
    clock.await_waiters(1);  // the scheduler sleeps: all due jobs have run
    clock.advance(1min);
  }
  clock.await_waiters(1);
  return soon && !late && scheduler.stats().pending == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}

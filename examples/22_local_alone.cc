// A LocalScheduler in a loop of your own that sleeps with ppoll, linked without a thread library.
// It works with every loop that can sleep for a given time.
#include <poll.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <stdexcept>

#include "detent/local_scheduler.h"

using namespace std::chrono_literals;

static void sleep_for(std::chrono::nanoseconds wait) {
  const auto seconds = std::chrono::floor<std::chrono::seconds>(wait);
  const timespec spec{seconds.count(), (wait - seconds).count()};
  ppoll(nullptr, 0, &spec, nullptr);
}

int main() {
  int runs = 0;
  int errors = 0;
  detent::LocalScheduler timers({.error_handler = [&errors](const auto&) { ++errors; }});
  timers
      .schedule_every({.period = 1ms},
                      [&] {
                        if (++runs == 10) timers.stop();
                      })
      .release();
  timers.schedule_after(2ms, [] { throw std::runtime_error("from a job"); }).release();
  const detent::TimerHandle dropped = timers.schedule_after(24h, [&runs] { runs = 100; });
  while (const auto wait = timers.time_to_next()) {
    sleep_for(*wait);
    timers.run_ready();
  }
  std::printf("%d runs, %d exceptions\n", runs, errors);
  return runs == 10 && errors == 1 ? EXIT_SUCCESS : EXIT_FAILURE;
}

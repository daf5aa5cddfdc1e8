// A reminder 7 days before a one-year membership ends. The timer has a date, so it follows the wall
// clock. It stays correct if the machine sleeps for a week or somebody sets its clock.
#include <cstdio>
#include <cstdlib>

#include "detent/simulation.h"

using namespace std::chrono_literals;
using namespace std::chrono;

/// The same day one year later. February 29 becomes February 28.
sys_days year_after(sys_days day) {
  year_month_day date(day);
  date += years{1};
  return date.ok() ? sys_days(date) : sys_days(date.year() / date.month() / last);
}

int main() {
  const sys_days joined = 2024y / February / 29;
  detent::Simulation simulation(1, {.start = joined});
  const detent::WallTime ends = year_after(joined);
  detent::WallTime reminded{};
  const auto reminder = simulation.scheduler().schedule_at(
      ends - 24h * 7, [&] { reminded = floor<milliseconds>(simulation.clock().wall_now()); });

  simulation.run_for(24h * 100);
  simulation.suspend(24h * 7);  // the machine sleeps for a week
  simulation.step_wall(3min);   // somebody set the clock
  simulation.run_for(24h * 300);

  const year_month_day day(floor<days>(reminded));
  std::printf("reminded on %d-%02u-%02u\n", int(day.year()), unsigned(day.month()),
              unsigned(day.day()));
  return reminded == sys_days(2025y / February / 21) ? EXIT_SUCCESS : EXIT_FAILURE;
}

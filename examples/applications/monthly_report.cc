// A report at 09:00 in Shanghai on the last working day of each month. The machine sleeps through
// one of these days. The report is then made once, after the wake-up, and names its month.
#include <cstdio>
#include <cstdlib>
#include <string>

#include "detent/cron.h"
#include "detent/simulation.h"

using namespace std::chrono_literals;
using namespace std::chrono;

/// "2024-05-31 09:00", in local time of Shanghai.
std::string in_shanghai(detent::WallTime time) {
  const auto local = time + 8h;
  const year_month_day date(floor<days>(local));
  const hh_mm_ss clock(local - floor<days>(local));
  char text[32];
  std::snprintf(text, sizeof text, "%d-%02u-%02u %02ld:%02ld", int(date.year()),
                unsigned(date.month()), unsigned(date.day()), long(clock.hours().count()),
                long(clock.minutes().count()));
  return text;
}

int main() {
  detent::Simulation simulation(1, {.start = sys_days(2024y / January / 1)});
  std::string days;
  const auto report = [&](detent::WallTime due) {
    const auto now = floor<milliseconds>(simulation.clock().wall_now());
    std::printf("report of %s, made %s\n", in_shanghai(due).c_str(), in_shanghai(now).c_str());
    days += in_shanghai(due).substr(8, 3);
  };

  const auto last_working_day = detent::Cron::parse("0 9 LW * *", "Asia/Shanghai").value();
  const detent::TimerHandle timer = simulation.scheduler().schedule_on(
      last_working_day, report, {.missed = detent::MissedOccurrence::once, .grace = 72h});

  simulation.run_for(24h * 150);  // to 30 May
  simulation.suspend(24h * 3);    // over Friday, the 31st
  simulation.run_for(24h * 213);  // to the end of the year
  std::printf("on day: %s\n", days.c_str());
  return days == "31 29 29 30 31 28 31 30 30 31 29 31 " ? EXIT_SUCCESS : EXIT_FAILURE;
}

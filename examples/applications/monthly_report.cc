// A report on the last day of each month at 18:00 UTC: months differ in length, so each run
// computes the date of the next one from the calendar, never from "30 days".
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

#include "detent/simulation.h"

using namespace std::chrono_literals;
using namespace std::chrono;

class MonthlyReport {
 public:
  MonthlyReport(detent::Simulation& simulation, year_month month)
      : simulation_(simulation), month_(month) {
    schedule();
  }
  const std::vector<year_month_day>& sent() const { return sent_; }

 private:
  void schedule() {
    const detent::WallTime due = sys_days(month_ / last) + 18h;
    timer_ = simulation_.scheduler().schedule_at(due, [this] { run(); });
  }
  void run() {
    sent_.emplace_back(floor<days>(simulation_.clock().wall_now()));
    month_ += months{1};  // arithmetic on months: Jan 31 is followed by Feb 28 or 29
    schedule();
  }

  detent::Simulation& simulation_;
  year_month month_;
  std::vector<year_month_day> sent_;
  detent::TimerHandle timer_;
};

int main() {
  detent::Simulation simulation(1, {.start = sys_days(2024y / January / 1)});
  MonthlyReport report(simulation, 2024y / January);
  simulation.run_for(24h * 366);
  std::string days;
  for (const year_month_day day : report.sent()) {
    days += std::to_string(unsigned(day.day())) + " ";
  }
  std::printf("sent on day: %s\n", days.c_str());
  return days == "31 29 31 30 31 30 31 31 30 31 30 31 " ? EXIT_SUCCESS : EXIT_FAILURE;
}

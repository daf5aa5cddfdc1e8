// Cron: a report at 09:00 in Shanghai on the first day of each month. The program also prints the
// meaning of the expression in words, and the error of a wrong expression.
#include <cstdio>
#include <cstdlib>

#include "detent/cron.h"
#include "detent/simulation.h"

using namespace std::chrono_literals;

int main() {
  const auto wrong = detent::Cron::parse("0 9 32 * *");
  std::printf("column %zu: %s\n", wrong.error().column, wrong.error().message.c_str());

  const auto cron = detent::Cron::parse("0 9 1 * *", "Asia/Shanghai");
  std::printf("%s\n", cron.value().explain().c_str());
  detent::Simulation simulation(1);
  int reports = 0;
  const auto timer = simulation.scheduler().schedule_on(cron.value(), [&] { ++reports; });
  simulation.run_for(24h * 366);  // 2020 is a leap year
  std::printf("%d reports in a year\n", reports);
  return !wrong.has_value() && reports == 12 ? EXIT_SUCCESS : EXIT_FAILURE;
}

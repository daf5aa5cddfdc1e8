// Cron: a report at 09:00 in Shanghai on the first of each month, scheduled by its next date each
// time it has run; and what an expression means, in words.
#include <cstdio>
#include <cstdlib>

#include "detent/cron.h"
#include "detent/simulation.h"

using namespace std::chrono_literals;

class MonthlyReport {
 public:
  MonthlyReport(detent::Simulation& simulation, detent::Cron cron)
      : simulation_(simulation), cron_(std::move(cron)) {
    schedule();
  }
  int runs() const { return runs_; }

 private:
  void schedule() {
    const auto now = std::chrono::floor<std::chrono::milliseconds>(simulation_.clock().wall_now());
    if (const auto due = cron_.next_after(now)) {
      timer_ = simulation_.scheduler().schedule_at(*due, [this] { run(); });
    }
  }
  void run() {
    ++runs_;
    schedule();
  }

  detent::Simulation& simulation_;
  const detent::Cron cron_;
  int runs_ = 0;
  detent::TimerHandle timer_;
};

int main() {
  const auto wrong = detent::Cron::parse("0 9 32 * *");
  std::printf("column %zu: %s\n", wrong.error().column, wrong.error().message.c_str());

  const auto cron = detent::Cron::parse("0 9 1 * *", "Asia/Shanghai");
  std::printf("%s\n", cron.value().explain().c_str());
  detent::Simulation simulation(1);
  MonthlyReport report(simulation, cron.value());
  simulation.run_for(24h * 366);  // 2020 is a leap year
  std::printf("%d reports in a year\n", report.runs());
  return !wrong.has_value() && report.runs() == 12 ? EXIT_SUCCESS : EXIT_FAILURE;
}

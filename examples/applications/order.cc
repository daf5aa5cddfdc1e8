// Orders are cancelled after 30 days unless they are paid. The timers have keys: every part of the
// program that knows the number of an order can stop its cancellation. (If orders must survive a
// restart, see examples/orders.)
#include <cstdio>
#include <cstdlib>
#include <set>
#include <string>
#include <string_view>

#include "detent/simulation.h"

using namespace std::chrono_literals;

int main() {
  detent::Simulation simulation(1);
  detent::Scheduler& scheduler = simulation.scheduler();
  std::set<std::string, std::less<>> open;

  const auto place = [&](const std::string& order) {
    open.insert(order);
    scheduler.schedule_keyed(order, 24h * 30, [&](std::string_view key) {
      std::printf("%.*s: not paid in 30 days, cancelled\n", int(key.size()), key.data());
      open.erase(open.find(key));
    });
  };
  const auto pay = [&](const std::string& order) {
    return scheduler.cancel_key(order) == detent::CancelResult::cancelled;
  };

  place("o-1001");
  simulation.run_for(24h);
  place("o-1002");
  simulation.run_for(24h * 28);
  const bool in_time = pay("o-1002");
  simulation.run_for(24h * 30);
  const bool too_late = !pay("o-1001");

  std::printf("open and paid: %zu\n", open.size());
  return in_time && too_late && open.count("o-1002") == 1 ? EXIT_SUCCESS : EXIT_FAILURE;
}

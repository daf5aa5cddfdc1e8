// Devices are inspected three times after each change, once a minute. The minutes count from the
// creation of the device, so a restart neither repeats nor skips an inspection.
#include <cstdio>
#include <cstdlib>
#include <map>
#include <string>
#include <string_view>

#include "detent/simulation.h"

using namespace std::chrono_literals;

int main() {
  std::map<std::string, int, std::less<>> inspections;
  detent::SchedulerOptions options;
  options.default_job = [&](std::string_view device) { ++inspections[std::string(device)]; };
  detent::Simulation simulation(1, {.scheduler = options});
  detent::Scheduler& scheduler = simulation.scheduler();
  const auto made =
      std::chrono::floor<std::chrono::milliseconds>(simulation.clock().wall_now()) - 40s;

  const auto on_change = [&](const std::string& device) {
    return scheduler.schedule_keyed(device, {.period = 1min, .count = 3, .created = made},
                                    detent::SameKey::replace);
  };
  on_change("pump-1");
  on_change("pump-2");
  simulation.run_for(20s);  // one minute after its creation
  const bool in_rhythm = inspections["pump-1"] == 1;
  const bool again = on_change("pump-1") == detent::KeyedResult::replaced;
  simulation.run_for(10min);

  std::printf("pump-1: %d inspections, pump-2: %d\n", inspections["pump-1"], inspections["pump-2"]);
  const bool right = inspections["pump-1"] == 4 && inspections["pump-2"] == 3;
  return in_rhythm && again && right ? EXIT_SUCCESS : EXIT_FAILURE;
}

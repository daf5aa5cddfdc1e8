// Clean-up with a limited rate: one batch of old files per second. If the machine is busy for half
// a minute, the missed batches run later, but never more than five per second.
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <vector>

#include "detent/simulation.h"

using namespace std::chrono_literals;

int main() {
  detent::Simulation simulation(1);
  std::vector<detent::MonotonicTime> batches;
  const auto cleanup = simulation.scheduler().schedule_every(
      {.period = 1s, .missed = detent::MissedTick::spread, .catch_up = 200ms},
      [&] { batches.push_back(simulation.clock().now()); });

  simulation.run_for(10s);
  simulation.clock().advance(30s);  // no batch runs during this time
  simulation.run_for(60s);

  auto closest = std::chrono::nanoseconds::max();
  for (std::size_t i = 1; i < batches.size(); ++i) {
    closest = std::min(closest, batches[i] - batches[i - 1]);
  }
  std::printf("%zu batches in 100 s, never closer than %td ms\n", batches.size(),
              std::ptrdiff_t(closest / 1ms));
  return batches.size() == 100 && closest == 200ms ? EXIT_SUCCESS : EXIT_FAILURE;
}

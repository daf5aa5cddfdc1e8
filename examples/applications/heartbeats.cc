// Heartbeats: each node sends one every 30 s. The node's name decides the second within the 30 s.
// So a thousand nodes do not send together, and a restart keeps the second. A node that misses
// three heartbeats is gone.
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

#include "detent/simulation.h"

using namespace std::chrono_literals;

struct Node {
  std::string name;
  detent::TimerHandle beat;
  detent::TimerHandle watch;
  bool is_gone = false;
};

int main() {
  detent::Simulation simulation(1);
  detent::Scheduler& scheduler = simulation.scheduler();
  std::vector<Node> nodes(1000);
  std::vector<int> beats_in_second(30);
  for (std::size_t i = 0; i < nodes.size(); ++i) {
    Node& node = nodes[i];
    node.name = "node-" + std::to_string(i);
    node.watch = scheduler.schedule_after(90s, [&node] { node.is_gone = true; });
    node.beat = scheduler.schedule_every({.period = 30s, .phase_key = node.name}, [&] {
      node.watch.expires_after(90s);
      const auto now = simulation.clock().now().time_since_epoch();
      ++beats_in_second[static_cast<std::size_t>(now / 1s % 30)];
    });
  }

  simulation.run_for(10min);
  const int fullest = *std::max_element(beats_in_second.begin(), beats_in_second.end());
  std::printf("most beats in one second of 30: %d of %d\n", fullest, 20 * 1000);

  nodes[7].beat.cancel();  // its process died
  simulation.run_for(2min);
  const auto is_gone = [](const Node& node) { return node.is_gone; };
  const auto gone = std::count_if(nodes.begin(), nodes.end(), is_gone);
  std::printf("gone: %td, node-7: %s\n", gone, nodes[7].is_gone ? "yes" : "no");
  return gone == 1 && nodes[7].is_gone && fullest < 1200 ? EXIT_SUCCESS : EXIT_FAILURE;
}

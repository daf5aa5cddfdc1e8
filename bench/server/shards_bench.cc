// shards_bench: how 100 nodes divide 1 024 shards among them, in simulated time.
//
//     shards_bench [--nodes 100] [--shards 1024] [--lease 5] [--seed 1]
//
// The nodes run the shard keeper (cluster/shard_keeper.h) on one lease table in memory. The clock
// moves from step to step, so the output does not depend on the machine. For each event the output
// has the time until every shard is served and all nodes have equal shares. It also has the number
// of calls to the table in the busiest second and at rest. Closing a shard takes 200 ms, and
// opening takes no time; on a real store, add the time to open.
#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

#include "bench/arguments.h"
#include "cluster/testing/keeper_simulation.h"

namespace detent::bench {
namespace {

using std::chrono::milliseconds;

struct Settings {
  std::uint32_t nodes = 100;
  std::uint32_t shards = 1024;
  std::uint32_t lease_seconds = 5;
  std::uint64_t seed = 1;
};

Settings parse(const std::vector<std::string>& arguments) {
  Settings settings;
  const bool understood = read_arguments(arguments, {},
                                         {{"--nodes", repetitions_into(settings.nodes)},
                                          {"--shards", repetitions_into(settings.shards)},
                                          {"--lease", repetitions_into(settings.lease_seconds)},
                                          {"--seed", into(settings.seed)}});
  if (understood) return settings;
  std::fprintf(stderr,
               "usage: shards_bench [--nodes 100] [--shards 1024] [--lease 5] [--seed 1]\n");
  std::exit(2);
}

/// Runs until the cluster is at rest, and prints how it came there.
void settle(const char* event, KeeperSimulation& cluster) {
  constexpr milliseconds kLook{50};
  constexpr milliseconds kLongest{120'000};
  constexpr milliseconds kSecond{1'000};
  milliseconds served{0};
  milliseconds equal{0};
  std::uint64_t busiest = 0;
  std::uint64_t calls = cluster.table().calls();
  const std::uint64_t taken = cluster.times_taken();
  std::size_t most_orphans = 0;
  for (milliseconds at{0}; at < kLongest; at += kLook) {
    if (at % kSecond == milliseconds{0}) {
      busiest = std::max(busiest, cluster.table().calls() - calls);
      calls = cluster.table().calls();
    }
    const std::size_t orphans = cluster.orphans();
    most_orphans = std::max(most_orphans, orphans);
    const auto loads = cluster.loads();
    if (orphans > 0) served = at + kLook;
    if (*loads.rbegin() - *loads.begin() > 1) equal = at + kLook;
    cluster.run_for(kLook);
  }
  std::printf("  %-34s %6.1f s %8.1f s %10zu %8llu %14llu\n", event,
              static_cast<double>(served.count()) / 1'000,
              static_cast<double>(equal.count()) / 1'000, most_orphans,
              static_cast<unsigned long long>(cluster.times_taken() - taken),
              static_cast<unsigned long long>(busiest));
}

int run(const Settings& settings) {
  const std::chrono::seconds lease{settings.lease_seconds};
  KeeperSimulation cluster(settings.seed, settings.shards, lease);
  std::printf("%u nodes, %u shards, leases of %u s\n", settings.nodes, settings.shards,
              settings.lease_seconds);
  std::printf("  %-34s %8s %10s %10s %8s %14s\n", "", "served", "equal", "orphans", "taken",
              "calls a second");

  for (std::size_t i = 0; i < settings.nodes; ++i) cluster.add_node();
  settle("all start at once", cluster);
  cluster.kill(settings.nodes / 2);
  settle("one dies", cluster);
  for (std::size_t i = 0; i < settings.nodes / 10; ++i) cluster.kill(i);
  settle("a tenth dies at once", cluster);
  for (std::size_t i = 0; i < settings.nodes / 10 + 1; ++i) cluster.add_node();
  settle("as many come", cluster);
  for (std::size_t i = settings.nodes / 10; i < settings.nodes / 2; ++i) cluster.kill(i);
  settle("two in five die at once", cluster);
  const std::uint64_t before = cluster.table().calls();
  cluster.run_for(std::chrono::seconds{100});
  std::printf("  at rest: %.0f calls a second\n",
              static_cast<double>(cluster.table().calls() - before) / 100);
  return 0;
}

}  // namespace
}  // namespace detent::bench

int main(int argc, char** argv) {
  using namespace detent::bench;
  return run(parse({argv + 1, argv + argc}));
}

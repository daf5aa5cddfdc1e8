// Runs the simulated cluster with many seeds, and checks that planted faults are found.
#include "tests/simulation/cluster_simulation.h"

#include <gtest/gtest.h>

#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <set>
#include <string>

#include "base/rng.h"
#include "base/test_seed.h"

namespace detent {
namespace {

/// The number of seeds, from the environment variable DETENT_CLUSTER_RUNS. CI has time for 20.
std::uint64_t runs() {
  const char* const text = std::getenv("DETENT_CLUSTER_RUNS");
  return text != nullptr ? std::strtoull(text, nullptr, 10) : 20;
}

/// The first seed of the run. If DETENT_CLUSTER_SEED is set, this seed, to replay it. Otherwise a
/// random number, so that different test seeds give different runs.
std::uint64_t first_seed() {
  const char* const text = std::getenv("DETENT_CLUSTER_SEED");
  return text != nullptr ? std::strtoull(text, nullptr, 10) : Rng(test_seed()).next();
}

TEST(ClusterSimulation, TheContractHoldsUnderAllFaults) {
  const std::uint64_t first = first_seed();
  SimulationReport all;
  for (std::uint64_t i = 0; i < runs(); ++i) {
    SCOPED_TRACE("replay with DETENT_CLUSTER_RUNS=1 DETENT_CLUSTER_SEED=" +
                 std::to_string(first + i));
    const SimulationReport report = simulate_cluster({.seed = first + i});
    ASSERT_TRUE(report.violations.empty())
        << report.violations.front() << " and " << report.violations.size() - 1 << " more";
    EXPECT_GT(report.scheduled, 100u);
    all.scheduled += report.scheduled;
    all.handed_out += report.handed_out;
    all.duplicates += report.duplicates;
    all.late_writes += report.late_writes;
    all.faults += report.faults;
  }
  RecordProperty("scheduled", static_cast<int>(all.scheduled));
  std::printf("%llu tasks, %llu hand-outs, %llu duplicates, %llu faults, %llu late writes\n",
              static_cast<unsigned long long>(all.scheduled),
              static_cast<unsigned long long>(all.handed_out),
              static_cast<unsigned long long>(all.duplicates),
              static_cast<unsigned long long>(all.faults),
              static_cast<unsigned long long>(all.late_writes));
  EXPECT_GT(all.faults, 0u);
}

/// The number of seeds that run twice, from the environment variable DETENT_CLUSTER_TWICE.
std::uint64_t seeds_run_twice() {
  const char* const text = std::getenv("DETENT_CLUSTER_TWICE");
  return text != nullptr ? std::strtoull(text, nullptr, 10) : 1;
}

TEST(ClusterSimulation, ASeedDeterminesTheRun) {
  const std::uint64_t first = Rng(test_seed()).next();
  std::set<std::uint64_t> traces;
  for (std::uint64_t i = 0; i < seeds_run_twice(); ++i) {
    SCOPED_TRACE("seed " + std::to_string(first + i));
    const SimulationReport once = simulate_cluster({.seed = first + i});
    const SimulationReport again = simulate_cluster({.seed = first + i});
    ASSERT_EQ(once.trace, again.trace);
    EXPECT_TRUE(traces.insert(once.trace).second) << "two seeds gave the same run";
  }
  EXPECT_FALSE(traces.contains(simulate_cluster({.seed = first - 1}).trace));
}

// The checks of the simulation are useful only if they find real faults.
std::size_t violations(SimulationOptions options) {
  for (options.seed = 1; options.seed <= 20; ++options.seed) {
    const SimulationReport report = simulate_cluster(options);
    if (!report.violations.empty()) return report.violations.size();
  }
  return 0;
}

TEST(ClusterSimulation, FindsANodeThatAcknowledgesBeforeItIsDurable) {
  EXPECT_GT(violations({.answers_before_commit = true}), 0u);
}

TEST(ClusterSimulation, FindsANodeThatForgetsItsLeases) {
  EXPECT_GT(violations({.forgets_leases = true}), 0u);
}

}  // namespace
}  // namespace detent

// A simulated cluster: real engines and real shard keepers, a simulated database and simulated
// clients. Everything runs in one thread, on clocks that only the simulation moves. The seed
// determines everything that happens.
//
// Messages between clients and nodes are delayed. They may overtake each other, get lost or arrive
// twice. Nodes crash and start again with empty memory, pause and continue, lose the connection to
// the database, and have clocks that differ and drift. A client schedules each task under a key
// until it gets an answer. It leases from any node, and then completes, fails or forgets the task.
// Every answer is checked against the delivery contract. (One thread, one seed and all faults: the
// idea comes from FoundationDB's simulation, Zhou et al., SIGMOD 2021.)
#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <vector>

#include "store/lease_table.h"

namespace detent {

struct SimulationOptions {
  std::uint64_t seed = 0;
  std::size_t nodes = 3;
  ShardNumber shards = 6;
  std::size_t clients = 8;
  std::chrono::milliseconds lease = std::chrono::seconds{5};
  std::chrono::milliseconds wall_skew = std::chrono::seconds{2};  // largest skew, both directions
  std::chrono::seconds faults_for = std::chrono::minutes{10};

  // Planted faults in the cluster, which the simulation must find.
  bool answers_before_commit = false;  // acknowledges a change before it is durable
  bool forgets_leases = false;         // gives up a shard without storing its leases
};

/// The result of a run.
struct SimulationReport {
  std::vector<std::string> violations;  // of the delivery contract; empty if there are none
  std::uint64_t scheduled = 0;          // acknowledged
  std::uint64_t completed = 0;
  std::uint64_t handed_out = 0;
  std::uint64_t duplicates = 0;   // handed out again after a fault had ended an open lease
  std::uint64_t late_writes = 0;  // writes of former owners, without effect
  std::uint64_t faults = 0;
  std::uint64_t trace = 0;  // a hash of all events
};

/// Runs the cluster with faults for a while, then without faults until all tasks have ended.
SimulationReport simulate_cluster(const SimulationOptions& options);

}  // namespace detent

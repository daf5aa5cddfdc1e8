// Nodes of a cluster with the real engines and the real keepers, their database and their clients,
// in one thread on clocks that only the simulation moves: a seed says all that happens.
//
// Messages between clients and nodes are delayed, so they overtake each other, and may be lost or
// come twice. Nodes die and come back with nothing in memory, stand still and go on as if nothing
// had been, lose the database, and have clocks that differ and drift. Clients schedule under keys
// until they are answered, lease from any node, then complete, fail, extend or forget; what they
// were told is held against the delivery contract as it happens. (The idea of one thread, one seed,
// all faults: FoundationDB's simulation, Zhou et al., SIGMOD 2021.)
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
  std::chrono::milliseconds wall_skew = std::chrono::seconds{2};  // at most, either way
  std::chrono::seconds faults_for = std::chrono::minutes{10};

  // Faults in the cluster itself, which must be found.
  bool answers_before_commit = false;  // what was asked for is acknowledged before it is durable
  bool forgets_leases = false;         // a shard is given up without its leases being written out
};

/// What a run came to.
struct SimulationReport {
  std::vector<std::string> violations;  // of the contract; empty when all is well
  std::uint64_t scheduled = 0;          // acknowledged
  std::uint64_t completed = 0;
  std::uint64_t handed_out = 0;
  std::uint64_t duplicates = 0;   // handed out while a lease was open that a fault had ended
  std::uint64_t late_writes = 0;  // of owners that were none any more; without effect
  std::uint64_t faults = 0;
  std::uint64_t trace = 0;  // a hash of all that happened
};

/// Faults for a while, then none until everything is done.
SimulationReport simulate_cluster(const SimulationOptions& options);

}  // namespace detent

// The workloads of server_bench for one server. The head of server_bench.cc describes them.
//
// Each workload starts the server in an empty folder, does the work over loopback, and compares the
// server's count of tasks with the acknowledged tasks. So each figure comes from completed work;
// otherwise the workload throws ServerError.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include "bench/server/server_peer.h"

namespace detent::bench {

struct ServerSizes {
  double box_seconds = 1.5;           ///< the time to measure a rate
  std::uint32_t waiting = 1'000'000;  ///< tasks that wait in `waiting`
  std::uint32_t firing = 100'000;     ///< tasks that become due there, 10 000 a second
  std::uint32_t backlog = 300'000;    ///< overdue tasks in `drain`
  std::filesystem::path folder;       ///< where servers keep their folders
};

/// Values by measure, in the order of the table's rows.
using ServerFigures = std::vector<std::pair<std::string, double>>;

/// Starts and stops the server. Throws ServerError with its output if it cannot take part.
void try_server(ServerPeer& peer, const ServerSizes& sizes);

ServerFigures measure_accept(ServerPeer& peer, const ServerSizes& sizes);
ServerFigures measure_life(ServerPeer& peer, const ServerSizes& sizes);
ServerFigures measure_drain(ServerPeer& peer, const ServerSizes& sizes);
ServerFigures measure_waiting(ServerPeer& peer, const ServerSizes& sizes);

}  // namespace detent::bench

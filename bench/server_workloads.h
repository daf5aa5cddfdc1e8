// What server_bench measures of each server; see the head of server_bench.cc for the workloads.
//
// Every one starts the server in an empty folder, does the work over loopback, and compares what
// the server counts with what it acknowledged: a figure comes from work that was really done, or
// there is a ServerError instead.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include "bench/server_peer.h"

namespace detent::bench {

struct ServerSizes {
  double box_seconds = 1.5;           ///< how long a rate is measured
  std::uint32_t waiting = 1'000'000;  ///< tasks that wait in `waiting`
  std::uint32_t firing = 100'000;     ///< tasks that become due there, 10 000 a second
  std::uint32_t backlog = 300'000;    ///< overdue tasks in `drain`
  std::filesystem::path folder;       ///< where servers keep their folders
};

/// Values by measure, in the order of the table's rows.
using ServerFigures = std::vector<std::pair<std::string, double>>;

/// Starts and stops it. Throws ServerError with what it said when it cannot take part.
void try_server(ServerPeer& peer, const ServerSizes& sizes);

ServerFigures measure_accept(ServerPeer& peer, const ServerSizes& sizes);
ServerFigures measure_life(ServerPeer& peer, const ServerSizes& sizes);
ServerFigures measure_drain(ServerPeer& peer, const ServerSizes& sizes);
ServerFigures measure_waiting(ServerPeer& peer, const ServerSizes& sizes);

}  // namespace detent::bench

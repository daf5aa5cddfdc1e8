// The operating system's figures of this process, and of the disk that it writes to.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>

namespace detent::server {

/// The number of nodes of the cluster, as this node knows them.
struct NodeCounts {
  std::uint64_t alive = 0;
  std::uint64_t missing = 0;  // see MissingMember
};

struct ProcessFigures {
  std::optional<std::uint64_t> resident_bytes = {};   // memory; where the system tells it
  std::optional<std::uint64_t> data_free_bytes = {};  // for this user, on the disk of the data
  std::optional<NodeCounts> nodes = {};               // of a node
  /// False: the database of the cluster does not answer.
  bool is_store_reached = true;
};

/// Reads the figures. `data` is the data folder; empty if the server has no data folder. Costs a
/// few microseconds.
ProcessFigures read_process_figures(const std::filesystem::path& data);

}  // namespace detent::server

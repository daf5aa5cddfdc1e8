// The operating system's figures of this process, and of the disk that it writes to.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <optional>

#include "detent/clock.h"
#include "tracing/span.h"

namespace detent::server {

/// The number of nodes of the cluster, as this node knows them.
struct NodeCounts {
  std::uint64_t alive = 0;
  std::uint64_t missing = 0;  // see MissingMember
};

/// The disk of the data folder.
struct DiskFigures {
  std::uint64_t free_bytes = 0;      // for this user
  std::uint64_t min_free_bytes = 0;  // with less, new tasks are refused
};

/// The memory that the operator gave this server.
struct MemoryBudget {
  std::uint64_t bytes = 0;  // --memory
  std::uint64_t tasks = 0;  // the most tasks in memory
};

/// The last complete backup.
struct BackupFigures {
  WallTime made_at{};              // its state is of this instant
  std::uint64_t bytes = 0;         // of its files
  std::uint64_t copied_bytes = 0;  // that no earlier backup had
};

struct ProcessFigures {
  // Each is empty if the operating system does not report it.
  std::optional<std::uint64_t> resident_bytes = {};  // memory
  std::optional<double> cpu_seconds = {};            // of all threads, user and system
  std::optional<double> start_seconds = {};          // start of the process, since 1970
  std::optional<std::uint64_t> open_fds = {};
  std::optional<std::uint64_t> max_fds = {};
  std::optional<MemoryBudget> memory = {};
  std::optional<DiskFigures> disk = {};      // of the data folder
  std::optional<BackupFigures> backup = {};  // empty: there was none
  std::optional<NodeCounts> nodes = {};      // of a node
  std::optional<SpanCounts> spans = {};      // with tracing
  /// False: the database of the cluster does not answer.
  bool is_store_reached = true;
};

/// Reads the figures of the process. Costs tens of microseconds. Before Linux 6.2 it also reads a
/// folder with an entry for each open file descriptor.
ProcessFigures read_process_figures(std::size_t memory_bytes);
/// The free bytes for this user on the disk of `data`. Empty if the system does not report them.
std::optional<std::uint64_t> free_bytes(const std::filesystem::path& data);

}  // namespace detent::server

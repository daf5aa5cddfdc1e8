// A running server for one workload: its folder, its process, and the threads of its clients.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "bench/server/server_peer.h"
#include "bench/stopwatch.h"

namespace detent::bench {

/// Confined to one thread, except connect(). The destructor ends the process and removes the
/// folder.
class RunningServer {
 public:
  /// Starts it in a new folder under `parent` and waits until it is ready.
  RunningServer(ServerPeer& peer, const std::filesystem::path& parent,
                Loading loading = Loading::as_promised);
  ~RunningServer();
  RunningServer(const RunningServer&) = delete;
  RunningServer& operator=(const RunningServer&) = delete;

  /// Thread-safe.
  std::unique_ptr<ServerClient> connect() const { return peer_.connect(place_.port); }
  ServerPeer& peer() const { return peer_; }

  /// Kills the server with kill -9 and restarts it. Returns the seconds from the restart until it
  /// has accepted a task.
  double crash_and_restart();

  /// Throws ServerError unless the server has this number of tasks.
  void expect_count(std::uint64_t count) const;

  /// Waits until the background work of the server is done: it uses less than 1 % of a core for 0.2
  /// s. Gives up after a minute.
  void let_rest() const;

  std::uint16_t port() const { return place_.port; }
  ProcessCost cost() const { return process_->cost(); }
  std::uint64_t memory_bytes() const { return process_->memory_bytes(); }
  std::uint64_t disk_bytes() const { return bench::disk_bytes(place_.folder); }

 private:
  void start(Loading loading);
  std::unique_ptr<ServerClient> connect_when_ready();

  ServerPeer& peer_;
  ServerPlace place_;
  std::optional<ServerProcess> process_;
};

/// The shared state of the threads of a workload. Synchronises itself. The counters are relaxed,
/// because each is only compared with a number.
struct Progress {
  std::atomic<std::uint64_t> accepted{0};
  std::atomic<std::uint64_t> finished{0};
  std::atomic<bool> has_all{false};  ///< no more tasks will be accepted
  std::atomic<bool> has_failed{false};
  Stopwatch watch;

  /// Returns true if a worker has no more work. Throws ServerError after `limit_seconds`.
  bool is_over(double limit_seconds) const;
};

/// Runs each in a separate thread and returns when all have ended. Throws the first exception
/// again.
void run_threads(const std::vector<std::function<void()>>& bodies, Progress& progress);

}  // namespace detent::bench

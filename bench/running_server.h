// One server at work for one workload: its folder, its process, and the threads of its clients.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "bench/server_peer.h"
#include "bench/stopwatch.h"

namespace detent::bench {

/// Confined to one thread, but for connect(). Ends the process and removes the folder.
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

  /// kill -9, and starts it again. Returns: seconds from there until it has accepted a task.
  double crash_and_restart();

  /// Throws ServerError unless the server holds so many tasks.
  void expect_count(std::uint64_t count) const;

  /// Waits until what the server does behind its answers is done, by its own use of the processor:
  /// below 1 % of a core for 0.2 s. Gives up after a minute.
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

/// What the threads of a workload tell each other. Synchronises itself; relaxed counters, since
/// each is only compared with a number.
struct Progress {
  std::atomic<std::uint64_t> accepted{0};
  std::atomic<std::uint64_t> finished{0};
  std::atomic<bool> has_all{false};  ///< no more will be accepted
  std::atomic<bool> has_failed{false};
  Stopwatch watch;

  /// Whether a worker has nothing more to do. Throws ServerError after `limit_seconds`.
  bool is_over(double limit_seconds) const;
};

/// Runs each in a thread of its own and returns when all have ended; throws what the first threw.
void run_threads(const std::vector<std::function<void()>>& bodies, Progress& progress);

}  // namespace detent::bench

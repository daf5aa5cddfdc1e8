// A timer runtime that takes part in runtime_bench. It has its own threads, in this process or in
// another process, and runs one workload at a time. runtime_bench.cc describes the workloads.
//
// A runtime of this process is a class that InProcess (runtime_workloads.h) drives. Each peer has a
// separate file. runtime_peers.cc lists the peers that this build has.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "bench/server/process_cost.h"

namespace detent::bench {

/// The size of one run of a workload.
struct RuntimeLoad {
  std::uint32_t pending = 100'000;  ///< other pending timers, spread over an hour
  std::uint32_t threads = 1;        ///< threads that schedule and cancel
  std::uint32_t window = 64;        ///< timers of each thread that will be cancelled
  std::chrono::microseconds shortest{1};
  std::chrono::microseconds longest{1};  ///< delays are uniform from `shortest` to this
  double seconds = 0.3;                  ///< the time to measure
  std::uint32_t samples = 1'000;         ///< of lateness
  std::uint64_t seed = 1;
};

/// Nanoseconds per cancel, by the thread that scheduled the timer and by another thread.
struct CancelCost {
  double own_thread = 0;
  double other_thread = 0;
};

/// If the runtime has no operation for a workload, the result is empty. Confined to one thread.
class RuntimePeer {
 public:
  virtual ~RuntimePeer() = default;
  virtual std::string name() const = 0;
  /// How it is driven.
  virtual std::string note() const = 0;

  /// Schedules timers, and moves and cancels some of them. Returns the number of errors: timers
  /// that wrongly fired, wrongly did not fire, or fired earlier than the runtime's own unit of time
  /// explains.
  virtual std::uint64_t count_wrong() = 0;

  // Nanoseconds of wall time per operation. Each ends the process if the runtime's own counts show
  // that it did not do all requests.
  virtual std::optional<double> schedule_and_cancel(const RuntimeLoad& load) = 0;
  virtual std::optional<CancelCost> cancel(const RuntimeLoad& load) = 0;
  virtual std::optional<double> refresh(const RuntimeLoad& load) = 0;

  /// Nanoseconds from the deadline of each timer to the start of its callback, for `samples` timers
  /// in sequence. Empty: the runtime does not take part.
  virtual std::vector<double> lateness(const RuntimeLoad& load) = 0;

  /// The cost of the runtime while no timer is due for an hour.
  virtual std::optional<ProcessCost> idle(const RuntimeLoad& load) = 0;
};

using RuntimePeers = std::vector<std::unique_ptr<RuntimePeer>>;

std::unique_ptr<RuntimePeer> detent_runtime();
std::unique_ptr<RuntimePeer> detent_runtime_that_spins();
std::unique_ptr<RuntimePeer> local_runtime();
std::unique_ptr<RuntimePeer> local_runtime_that_spins();
std::unique_ptr<RuntimePeer> dense_wheel_runtime();
std::unique_ptr<RuntimePeer> timerfd_runtime();
std::unique_ptr<RuntimePeer> asio_runtime();
std::unique_ptr<RuntimePeer> asio_runtime_from_outside();
std::unique_ptr<RuntimePeer> libuv_runtime();
std::unique_ptr<RuntimePeer> libevent_runtime();
/// Null if its program was not built.
std::unique_ptr<RuntimePeer> go_runtime();
std::unique_ptr<RuntimePeer> netty_runtime();

/// The Scheduler, the LocalScheduler, a bare DenseWheel, a bare timerfd, and the peers of this
/// build. Starts the programs.
RuntimePeers runtime_peers();

/// The names of the missing peers.
std::string missing_runtime_peers(const RuntimePeers& peers);

}  // namespace detent::bench

// What takes part in runtime_bench: a timer runtime with threads of its own, in this process or in
// another, asked for one workload at a time. runtime_bench.cc says what each workload measures.
//
// A runtime of this process is a class that InProcess (runtime_workloads.h) drives. Each peer has a
// file of its own; runtime_peers.cc lists those that are here.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "bench/process_cost.h"

namespace detent::bench {

/// How large one run of a workload is.
struct RuntimeLoad {
  std::uint32_t pending = 100'000;  ///< timers that lie there besides, spread over an hour
  std::uint32_t threads = 1;        ///< that schedule and cancel
  std::uint32_t window = 64;        ///< timers of each thread that wait for their cancel
  std::chrono::microseconds shortest{1};
  std::chrono::microseconds longest{1};  ///< delays are uniform from `shortest` to this
  double seconds = 0.3;                  ///< for how long to measure
  std::uint32_t samples = 1'000;         ///< of lateness
  std::uint64_t seed = 1;
};

/// Nanoseconds a cancel, by the thread that scheduled the timer and by another.
struct CancelCost {
  double own_thread = 0;
  double other_thread = 0;
};

/// Nothing is answered to a workload that the runtime has no operation for. Confined to one thread.
class RuntimePeer {
 public:
  virtual ~RuntimePeer() = default;
  virtual std::string name() const = 0;
  /// How it is driven.
  virtual std::string note() const = 0;

  /// Schedules timers, moves and cancels some. Returns: how many fired that must not, did not fire
  /// that must, or fired earlier than the runtime's own unit of time explains.
  virtual std::uint64_t count_wrong() = 0;

  // Nanoseconds of wall time an operation. Each ends the process when the runtime's own counts say
  // that it did not do what it was asked.
  virtual std::optional<double> schedule_and_cancel(const RuntimeLoad& load) = 0;
  virtual std::optional<CancelCost> cancel(const RuntimeLoad& load) = 0;
  virtual std::optional<double> refresh(const RuntimeLoad& load) = 0;

  /// Nanoseconds from each timer's deadline to the start of its callback, for `samples` timers that
  /// follow one another. Empty: takes no part.
  virtual std::vector<double> lateness(const RuntimeLoad& load) = 0;

  /// What the runtime costs while nothing is due for an hour.
  virtual std::optional<ProcessCost> idle(const RuntimeLoad& load) = 0;
};

using RuntimePeers = std::vector<std::unique_ptr<RuntimePeer>>;

std::unique_ptr<RuntimePeer> detent_runtime();
std::unique_ptr<RuntimePeer> timerfd_runtime();
std::unique_ptr<RuntimePeer> asio_runtime();
std::unique_ptr<RuntimePeer> asio_runtime_from_outside();
std::unique_ptr<RuntimePeer> libuv_runtime();
std::unique_ptr<RuntimePeer> libevent_runtime();
/// Null when its program was not built.
std::unique_ptr<RuntimePeer> go_runtime();
std::unique_ptr<RuntimePeer> netty_runtime();

/// Ours, a bare timerfd, and those that were there when this was built; the programs are started.
RuntimePeers runtime_peers();

/// The names of the others; empty when none is missing.
std::string missing_runtime_peers(const RuntimePeers& peers);

}  // namespace detent::bench

// The workers that wait for a task. Each waits for one or several queues, for a limited time.
//
// A wait is in the list of each of its queues (Queue::waits), in order of arrival. It leaves the
// lists when it is answered: with tasks, or without tasks when its time is over.
// Thread-compatible.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <unordered_map>
#include <vector>

#include "base/result.h"
#include "base/slab.h"
#include "detent/dense_wheel.h"
#include "detent/tick.h"
#include "detent/unique_function.h"
#include "engine/queues/queue.h"
#include "task/request.h"

namespace detent {

/// A worker that waits for a task.
struct WorkerWait {
  std::uint32_t index = 0;  // in the slab, and of its timer in the wheel
  WaitId id = 0;
  std::vector<Queue*> queues = {};
  LeaseRequest request = {};
  UniqueFunction<void(Result<std::vector<LeasedTask>>)> done = {};
};

class WaitingWorkers {
 public:
  explicit WaitingWorkers(Tick now) : wheel_(now) {}

  /// New waits get ids above `after`, so that they differ from the ids of earlier waits.
  void begin_names(WaitId after) noexcept { last_id_ = after; }
  WaitId next_name() noexcept { return ++last_id_; }
  /// Adds a wait to the lists of its queues, until `until`. If the request names a queue several
  /// times, its list still has the wait once.
  void add(WorkerWait wait, Tick until);
  /// Null if the wait is over.
  WorkerWait* find(WaitId id) const noexcept;
  /// Ends a wait: removes it from the lists of its queues, and returns it.
  WorkerWait take(WorkerWait& wait);

  /// The ids of expired waits, at most `limit`.
  std::vector<WaitId> expired(Tick now, std::size_t limit);
  std::optional<Tick> next_wakeup() const { return wheel_.next_wakeup(); }
  /// The ids of all waits.
  std::vector<WaitId> all() const;
  std::size_t size() const noexcept { return waits_.size(); }

  /// Call this at a stop: no new wait may begin after it.
  void end() noexcept { have_ended_ = true; }
  bool have_ended() const noexcept { return have_ended_; }

  /// Stops the process if slab, wheel and names do not agree.
  void check_invariants() const;

 private:
  Slab<WorkerWait> waits_;  // its indices are the timers of the wheel
  DenseWheel wheel_;        // the ends of the waits
  std::unordered_map<WaitId, WorkerWait*> by_id_;
  WaitId last_id_ = 0;
  bool have_ended_ = false;
};

}  // namespace detent

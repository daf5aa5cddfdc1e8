// The limit on the number of timers of a scheduler, and the callers that wait for room.
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <vector>

#include "base/mutex.h"
#include "detent/clock.h"

namespace detent::internal {

/// Counts timers against a limit. If there is no limit and the count is not watched, it does not
/// count and takes no lock. Thread-safe. A caller may hold the lock of a shard while it calls.
class Admission {
 public:
  enum class Watch : std::uint8_t { no, yes };

  /// Requires: capacity >= 1.
  Admission(std::size_t capacity, Watch watch);

  /// Whether timers are counted. If false, every timer is admitted without a call of this object.
  bool counts() const noexcept { return counts_; }

  /// Takes room for one timer. Returns the number of timers, including this timer; empty if there
  /// is no room. This function and await_room require counts().
  std::optional<std::size_t> try_admit() noexcept;
  /// Like try_admit, but waits for room. Empty only after `close`.
  std::optional<std::size_t> await_room() noexcept;
  /// Gives back the room of `count` timers. Does nothing if timers are not counted.
  void release(std::size_t count) noexcept {
    if (counts_ && count != 0) give_back(count);
  }

  /// Waits until `due` by `clock`. Returns false if `close` was called before that. If it returns
  /// true, the caller runs its job and then calls `leave_caller`.
  bool wait_in_caller(Clock& clock, MonotonicTime due) noexcept;
  /// Ends the run of a caller for which `wait_in_caller` returned true.
  void leave_caller() noexcept;

  /// Wakes all waiting callers. After this call, every request for room fails.
  void close() noexcept;
  bool is_closed() const noexcept;
  /// After `close`: waits until no caller is between wait_in_caller and leave_caller.
  void await_callers() noexcept;

 private:
  void give_back(std::size_t count) noexcept;

  // Constant after construction.
  const std::size_t capacity_;
  const bool counts_;

  mutable Mutex mu_;
  CondVar changed_;
  std::size_t count_ DETENT_GUARDED_BY(mu_) = 0;
  std::size_t callers_ DETENT_GUARDED_BY(mu_) = 0;
  std::vector<Doorbell*> bells_ DETENT_GUARDED_BY(mu_);  // of the threads in wait_in_caller
  bool closed_ DETENT_GUARDED_BY(mu_) = false;
};

}  // namespace detent::internal

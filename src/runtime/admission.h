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

/// Counts timers against a limit. Without a limit, and if the count is not watched, it does not
/// count and takes no lock. Thread-safe; its lock may be taken inside the lock of a shard.
class Admission {
 public:
  enum class Watch : std::uint8_t { no, yes };

  /// Requires: capacity >= 1.
  Admission(std::size_t capacity, Watch watch);

  /// Whether there is anything to ask: without, all are admitted.
  bool counts() const noexcept { return counts_; }

  /// Takes room for one timer. Returns the number of timers including this; empty if there is no
  /// room. Requires, as await_room: counts().
  std::optional<std::size_t> try_admit() noexcept;
  /// The same, but waits for room; empty only after `close`.
  std::optional<std::size_t> await_room() noexcept;
  /// Gives room back, if that is counted.
  void release(std::size_t count) noexcept {
    if (counts_ && count != 0) give_back(count);
  }

  /// Waits until `due` by the clock. Returns: false when it was closed before.
  bool wait_in_caller(Clock& clock, MonotonicTime due) noexcept;
  /// Ends a caller's run that `wait_in_caller` began by answering true.
  void leave_caller() noexcept;

  /// Wakes all waiting callers. From now on every request for room fails.
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
  std::vector<Doorbell*> bells_ DETENT_GUARDED_BY(mu_);  // of callers that wait
  bool closed_ DETENT_GUARDED_BY(mu_) = false;
};

}  // namespace detent::internal

// How many timers a scheduler may have, and who waits for room.
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <vector>

#include "base/mutex.h"
#include "detent/clock.h"

namespace detent::internal {

/// Counts timers against a limit. When there is no limit and nobody watches the count, nothing is
/// counted and no lock is taken. Thread-safe; its lock may be taken inside a shard's.
class Admission {
 public:
  enum class Watch : std::uint8_t { no, yes };

  /// Requires: capacity >= 1.
  Admission(std::size_t capacity, Watch watch);

  /// Takes room for one. Returns: how many there are with it (0 when nothing is counted); nothing
  /// when there is no room.
  std::optional<std::size_t> try_admit() noexcept;
  /// The same, waiting for room; nothing only after `close`.
  std::optional<std::size_t> await_room() noexcept;
  /// Gives room back.
  void release(std::size_t count) noexcept;

  /// Waits until `due` by the clock. Returns: false when it was closed before.
  bool wait_in_caller(Clock& clock, MonotonicTime due) noexcept;
  /// Ends a caller's run that `wait_in_caller` began by answering true.
  void leave_caller() noexcept;

  /// Wakes all who wait; from now on nobody gets room.
  void close() noexcept;
  /// After `close`: waits until nobody is between wait_in_caller and leave_caller.
  void await_callers() noexcept;

 private:
  // Constant after construction.
  const std::size_t capacity_;
  const bool counts_;

  Mutex mu_;
  CondVar changed_;
  std::size_t count_ DETENT_GUARDED_BY(mu_) = 0;
  std::size_t callers_ DETENT_GUARDED_BY(mu_) = 0;
  std::vector<Doorbell*> bells_ DETENT_GUARDED_BY(mu_);  // of callers that wait
  bool closed_ DETENT_GUARDED_BY(mu_) = false;
};

}  // namespace detent::internal

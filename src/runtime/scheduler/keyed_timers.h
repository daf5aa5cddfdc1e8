// Timers with keys: one timer per key, owned by the scheduler.
//
// Each key has a slot. A generation number connects the slot with its timer. A run first checks
// whether the slot still belongs to its timer, and marks the slot as running. `cancel` removes the
// slot under the lock, so it decides whether the job runs (again), in every state of the timer. An
// old timer cannot change the slot of a newer timer with the same key. When the job is destroyed,
// it removes its slot.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>

#include "base/mutex.h"
#include "detent/scheduler.h"
#include "runtime/scheduler/scheduler_core.h"

namespace detent::internal {

/// Thread-safe. Owned by its scheduler and by the jobs of its timers. Jobs that `stop` hands back
/// may outlive the scheduler.
class KeyedTimers final : public std::enable_shared_from_this<KeyedTimers> {
 public:
  KeyedResult schedule(SchedulerCore& core, std::string_view key, KeyedJob job, NewTimer timer,
                       SameKey same_key);
  CancelResult cancel(std::string_view key);
  std::optional<TimerInfo> find(std::string_view key) const;

 private:
  class Run;
  struct Slot {
    std::uint64_t generation = 0;
    bool running = false;
    TimerHandle timer = {};  // empty while it is being scheduled
  };
  struct Hash : std::hash<std::string_view> {
    using is_transparent = void;
  };
  using Slots = std::unordered_map<std::string, Slot, Hash, std::equal_to<>>;

  static bool is_handed_back(const Slot& slot);
  bool begin_run(std::string_view key, std::uint64_t generation);
  void end_run(std::string_view key, std::uint64_t generation);
  void release(std::string_view key, std::uint64_t generation);
  Slots::iterator find_slot(std::string_view key, std::uint64_t generation) DETENT_REQUIRES(mu_);

  mutable Mutex mu_;
  Slots slots_ DETENT_GUARDED_BY(mu_);
  std::uint64_t generations_ DETENT_GUARDED_BY(mu_) = 0;  // the last generation that was given out
};

}  // namespace detent::internal

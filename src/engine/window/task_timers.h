// The timers of the tasks in memory: until a task is due, and then until its lease expires.
//
// A wheel does all work of a tick together. It fires the due timers. At the beginning of a coarse
// slot, it first moves the timers of the slot to finer levels. For a million tasks due in one
// second this takes milliseconds, in which no other queue's tasks would fire. So a **crowd**, a
// queue with many tasks in memory, has its own wheel apart from the common wheel. (If there are
// many crowds, several share a wheel.) The caller fires the wheels in rotation: the common wheel
// first, then the wheels with the fewest timers. So a task waits for a bounded part of the work of
// the larger wheels.
//
// If a timer was set before its queue became a crowd, it stays in the common wheel. When it fires,
// it moves to the wheel of its queue, which comes later in the rotation. So the tasks of one queue
// that are due at one tick become ready together. A queue stops being a crowd when it has at most
// one task.
// Thread-compatible. Memory: 22 bytes a task, and up to 4 more for each wheel that crowds use; 17
// KB a wheel, made when it is needed.
#pragma once

#include <bitset>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <optional>
#include <vector>

#include "detent/check.h"
#include "detent/dense_wheel.h"
#include "detent/tick.h"
#include "engine/queues/loaded_task.h"

namespace detent {

class TaskTimers {
 public:
  /// The number of a wheel.
  using Wheel = std::uint8_t;
  static constexpr Wheel kCommon = 0;
  static constexpr Wheel kWheels = 8;
  using Wheels = std::bitset<kWheels>;

  /// A queue with `crowd` tasks in memory is a crowd.
  TaskTimers(Tick now, std::size_t crowd) : crowd_(crowd) { wheels_.emplace_back(now); }

  /// Sets the timer of the task to `tick`, and removes its earlier timer.
  void set(LoadedTask& task, Tick tick);
  void cancel(const LoadedTask& task) noexcept { wheels_[task.wheel].cancel(task.index); }
  bool is_pending(const LoadedTask& task) const noexcept {
    return wheels_[task.wheel].is_pending(task.index);
  }
  /// Requires: is_pending(task).
  Tick tick_of(const LoadedTask& task) const noexcept {
    DETENT_CHECK(is_pending(task));
    return wheels_[task.wheel].deadline_of(task.index);
  }

  /// Moves the wheels that have no work until `now` to this tick. Returns the other wheels, in the
  /// order in which they should fire.
  std::vector<Wheel> go_to(Tick now);
  /// Calls on_fire(index) for the due tasks of this wheel, until it has looked at `limit` timers.
  /// `on_fire` may set timers. Returns whether more tasks are due.
  template <class OnFire>
  bool fire(Wheel wheel, Tick now, std::size_t limit, OnFire on_fire) {
    return wheels_[wheel].advance(now, on_fire, limit).more;
  }
  /// The tick until which no wheel has work; empty without timers.
  std::optional<Tick> next_wakeup() const noexcept;
  std::size_t size() const noexcept;

  /// The slots that have timers, earliest first. The same slot of several wheels is shown once. For
  /// people to look at. O(slots log slots + timers / 56).
  std::vector<WheelSlot> slots() const;
  /// For tests: O(timers + slots).
  void check_invariants() const noexcept;

 private:
  Wheel wheel_for(Queue& queue);

  const std::size_t crowd_;
  std::deque<DenseWheel> wheels_;  // kWheels at most
};

inline constexpr TaskTimers::Wheels kAllWheels{(1U << TaskTimers::kWheels) - 1};

}  // namespace detent

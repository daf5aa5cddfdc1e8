// The timers of the tasks in memory: until a task is due, then until its lease runs out.
//
// What a wheel has to do at a tick it does in one go: it fires what is due, and where a coarse slot
// begins it moves that slot's timers to finer ones before any of them fires. With a million tasks
// due in one second this is milliseconds in which no other queue's tasks would fire. So a queue
// with many tasks in memory, a **crowd**, has its timers in a wheel beside the common one, apart
// from all others while crowds are few. Who has to fire what is due goes over the wheels in turns,
// the common one first, then those with fewest timers: a task waits for a bounded piece of the
// larger ones' work, however much there is.
//
// A timer that was set before its queue became a crowd stays in the common wheel. When it fires it
// moves to the wheel of its queue, which is later in the round: the tasks of one queue that are due
// at one tick become ready together. A crowd is one until it has no more than one task.
// Thread-compatible. Memory: 22 bytes a task, and up to 4 more for each wheel that crowds use; 17
// KB a wheel, made when it is needed.
#pragma once

#include <bitset>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <optional>
#include <vector>

#include "detent/dense_wheel.h"
#include "detent/tick.h"
#include "engine/loaded_task.h"

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

  /// The task's timer, the only one it has, is at `tick`.
  void set(LoadedTask& task, Tick tick);
  void cancel(const LoadedTask& task) noexcept { wheels_[task.wheel].cancel(task.index); }
  bool is_pending(const LoadedTask& task) const noexcept {
    return wheels_[task.wheel].is_pending(task.index);
  }
  /// Requires: is_pending(task).
  Tick tick_of(const LoadedTask& task) const noexcept {
    return wheels_[task.wheel].deadline_of(task.index);
  }

  /// Goes to `now` with the wheels that have nothing to do until then; returns the others, in the
  /// order in which they are to fire.
  std::vector<Wheel> go_to(Tick now);
  /// Calls on_fire(index) with tasks of this wheel that are due, for as long as it takes to look at
  /// `limit` timers. It may set timers. Answers whether there are more.
  template <class OnFire>
  bool fire(Wheel wheel, Tick now, std::size_t limit, OnFire on_fire) {
    return wheels_[wheel].advance(now, on_fire, limit).more;
  }
  /// The tick until which nothing needs doing; none without timers.
  std::optional<Tick> next_wakeup() const noexcept;
  std::size_t size() const noexcept;

  /// The slots that hold timers, the same slot of several wheels as one; earliest first, for people
  /// to see. O(slots log slots + timers / 56).
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

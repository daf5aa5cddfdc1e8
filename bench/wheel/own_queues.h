// Every queue of the library with the interface of the benchmark. Timers are in an array, and the
// index is the number of the timer. DenseWheel uses numbers itself and needs no array.
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <span>
#include <utility>

#include "bench/wheel/bench_queue.h"
#include "detent/dense_wheel.h"
#include "detent/fifo_timer_wheel.h"
#include "detent/queues/hashed_wheel.h"
#include "detent/queues/heap_queue.h"
#include "detent/queues/hierarchical_wheel.h"
#include "detent/queues/list_queue.h"
#include "detent/queues/simple_wheel.h"
#include "detent/queues/timer_queue.h"
#include "detent/queues/tree_queue.h"
#include "detent/timer_wheel.h"

namespace detent::bench {

template <TimerQueue Queue>
std::optional<Queue> make_queue() {
  return std::optional<Queue>(std::in_place);
}

/// `kMake` makes the queue. `kSpan` is the longest delay of this queue.
template <TimerQueue Queue, auto kMake = &make_queue<Queue>,
          Tick kSpan = std::numeric_limits<Tick>::max()>
class OwnQueue {
 public:
  using Timer = typename Queue::Timer;
  static constexpr QueueLimits kLimits{.span = kSpan};
  static constexpr std::size_t kObjectBytes = sizeof(Timer);

  explicit OwnQueue(const Capacity& capacity)
      : queue_(kMake()), timers_(capacity.timers, capacity.pages) {
    DETENT_CHECK(queue_.has_value());
    if constexpr (requires { queue_->reserve(capacity.timers); }) {
      if (capacity.reserve) queue_->reserve(capacity.timers);
    }
  }

  void schedule(std::uint32_t id, Tick deadline) { queue_->schedule(timers_[id], deadline); }
  void cancel(std::uint32_t id) { queue_->cancel(timers_[id]); }
  void postpone(std::uint32_t id, Tick deadline) { queue_->postpone(timers_[id], deadline); }
  void advance(Tick now, Fired& fired) {
    queue_->advance(now, [&](Timer& timer) noexcept {
      fired(static_cast<std::uint32_t>(timers_.index_of(timer)));
    });
  }
  std::optional<Tick> next() const { return queue_->next_wakeup(); }
  std::size_t mapped_bytes() const {
    if constexpr (requires { queue_->mapped_bytes(); }) return queue_->mapped_bytes();
    return 0;
  }

 private:
  std::optional<Queue> queue_;
  PageArray<Timer> timers_;  // destroyed first, which cancels pending timers
};

/// One turn of 65 536 slots covers every U60k delay, but not LU36.
inline std::optional<SimpleWheel> make_simple_wheel() {
  return SimpleWheel::make({.slot_count = 65'536});
}
using SimpleWheelQueue = OwnQueue<SimpleWheel, &make_simple_wheel, 65'536>;

/// Netty's default of 512 slots is for thousands of timers and ticks of 100 ms. This queue has as
/// many slots as the queue above.
inline std::optional<HashedWheel> make_hashed_wheel() {
  return HashedWheel::make({.slot_count = 65'536});
}
using HashedWheelQueue = OwnQueue<HashedWheel, &make_hashed_wheel>;

/// Levels are made on demand, with either drive.
template <HierarchicalWheel::Drive kDrive>
std::optional<HierarchicalWheel> make_hierarchical_wheel() {
  return HierarchicalWheel::make({.slots_per_level = 64, .drive = kDrive});
}
template <HierarchicalWheel::Drive kDrive>
using HierarchicalWheelQueue = OwnQueue<HierarchicalWheel, &make_hierarchical_wheel<kDrive>>;

class DenseWheelQueue {
 public:
  static constexpr QueueLimits kLimits{};
  static constexpr std::size_t kObjectBytes = 0;

  explicit DenseWheelQueue(const Capacity& capacity) {
    if (capacity.reserve) wheel_.reserve(capacity.timers);
  }
  void schedule(std::uint32_t id, Tick deadline) { wheel_.schedule(id, deadline); }
  void cancel(std::uint32_t id) { wheel_.cancel(id); }
  void postpone(std::uint32_t id, Tick deadline) { wheel_.postpone(id, deadline); }
  void cancel_all(std::span<const std::uint32_t> ids) { wheel_.cancel(ids); }
  void schedule_all(std::span<const Armed> timers) { wheel_.schedule(timers); }
  void advance(Tick now, Fired& fired) {
    wheel_.advance(now, [&](std::uint32_t id) noexcept { fired(id); });
  }
  std::optional<Tick> next() const { return wheel_.next_wakeup(); }
  std::size_t mapped_bytes() const { return wheel_.mapped_bytes(); }

 private:
  DenseWheel wheel_;
};

}  // namespace detent::bench

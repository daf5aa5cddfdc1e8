// The common interface of all queues in timers_bench.
//
// Timers have the numbers 0 … n − 1. Each queue has schedule, cancel, postpone (to a later
// deadline), advance, which calls on_fire(id), and next. All calls go through Outlined. So the
// compiler treats each call like a call to another source file, and does not optimize it together
// with the loop of the benchmark. The queues are in own_queues.h, baseline_queues.h, and one file
// for each peer, peer_*.cc.
#pragma once

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <span>
#include <vector>

#include "bench/machine.h"
#include "detent/dense_wheel.h"
#include "detent/tick.h"

namespace detent::bench {

/// The number of timers of a queue, and the pages for the objects of its user. `reserve` says
/// whether the queue may reserve memory for them.
struct Capacity {
  std::uint32_t timers = 0;
  Pages pages = Pages::small;
  bool reserve = true;
};

/// The timers that fired since the last clear. The callback of every queue does this work.
struct Fired {
  explicit Fired(std::uint32_t capacity) : ids(capacity) {}

  void operator()(std::uint32_t id) noexcept {
    sum += id;
    ids[count++] = id;
  }

  std::vector<std::uint32_t> ids;
  std::size_t count = 0;
  std::uint64_t sum = 0;
};

/// The limits of a queue. Workloads that need more leave the queue out.
struct QueueLimits {
  bool fires = true;                             ///< false: its timers never fire (the empty queue)
  bool has_next = true;                          ///< it knows its next wake-up
  Tick span = std::numeric_limits<Tick>::max();  ///< the longest delay
};

/// A queue whose timers have numbers. kObjectBytes is the size of the timer object that its user
/// stores. The memory that the queue itself allocates is measured.
template <class Q>
concept BenchQueue = std::constructible_from<Q, const Capacity&> &&
    requires(Q& queue, const Q& unchanged, std::uint32_t id, Tick tick, Fired& fired) {
  { Q::kLimits } -> std::convertible_to<QueueLimits>;
  { Q::kObjectBytes } -> std::convertible_to<std::size_t>;
  queue.schedule(id, tick);
  queue.cancel(id);
  queue.postpone(id, tick);
  queue.advance(tick, fired);
  { unchanged.next() } -> std::same_as<std::optional<Tick>>;
};

/// A timer and its deadline.
using Armed = DenseWheel::Timer;

/// A queue that takes many operations in one call, so their cache misses can overlap.
template <class Q>
concept BatchQueue = requires(Q& queue, std::span<const std::uint32_t> ids,
                              std::span<const Armed> timers) {
  queue.cancel_all(ids);
  queue.schedule_all(timers);
};

/// A queue whose operations are never inlined, and never removed by the compiler.
template <BenchQueue Queue>
class Outlined {
 public:
  static constexpr QueueLimits kLimits = Queue::kLimits;
  static constexpr std::size_t kObjectBytes = Queue::kObjectBytes;

  explicit Outlined(const Capacity& capacity) : queue_(capacity) {}

  [[gnu::noinline]] void schedule(std::uint32_t id, Tick deadline) {
    keep_call();
    queue_.schedule(id, deadline);
  }
  [[gnu::noinline]] void cancel(std::uint32_t id) {
    keep_call();
    queue_.cancel(id);
  }
  [[gnu::noinline]] void postpone(std::uint32_t id, Tick deadline) {
    keep_call();
    queue_.postpone(id, deadline);
  }
  [[gnu::noinline]] void advance(Tick now, Fired& fired) {
    keep_call();
    queue_.advance(now, fired);
  }
  // A plain Tick, 0 if there are no timers. If the call is not inlined, g++ needs several times the
  // measured time to return an optional.
  [[gnu::noinline]] Tick next() const {
    keep_call();
    return queue_.next().value_or(0);
  }

  /// Bytes of pages that the queue maps itself, without malloc.
  std::size_t mapped_bytes() const {
    if constexpr (requires { queue_.mapped_bytes(); }) return queue_.mapped_bytes();
    return 0;
  }

  /// Uses one call for all if the queue has such a call.
  void cancel_all(std::span<const std::uint32_t> ids) {
    if constexpr (BatchQueue<Queue>) {
      queue_.cancel_all(ids);
    } else {
      for (const std::uint32_t id : ids) cancel(id);
    }
  }
  void schedule_all(std::span<const Armed> timers) {
    if constexpr (BatchQueue<Queue>) {
      queue_.schedule_all(timers);
    } else {
      for (const Armed& timer : timers) schedule(timer.index, timer.deadline);
    }
  }

 private:
  static void keep_call() { asm volatile("" ::: "memory"); }

  Queue queue_;
};

}  // namespace detent::bench

// The one shape behind which timers_bench compares queues.
//
// Timers are named 0 … n − 1. Each queue has schedule, cancel, postpone (to later), advance, which
// calls on_fire(id), and next. All are called through Outlined, so that the compiler treats each as
// a program does whose calls lie in another file, and none is optimised into the loop around it.
// The queues: own_queues.h, baseline_queues.h, and one file for each peer, peer_*.cc.
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

/// For how many timers a queue is made, and on what pages its user's objects lie.
struct Capacity {
  std::uint32_t timers = 0;
  Pages pages = Pages::small;
};

/// What fired since it was cleared. The callback of every queue does this much work.
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

/// What a queue cannot do; the workloads that need it leave the queue out.
struct QueueLimits {
  bool fires = true;     ///< false: it only takes what it is given (the empty driver)
  bool has_next = true;  ///< it can say when it next wants to be advanced
  Tick span = std::numeric_limits<Tick>::max();  ///< the longest delay it takes
};

/// A queue of timers that are named by numbers. kObjectBytes is what its user keeps for a timer
/// (the timer object); what the queue allocates besides is measured.
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

/// A queue that takes many operations in one call, and so can hide the misses of one behind others.
template <class Q>
concept BatchQueue = requires(Q& queue, std::span<const std::uint32_t> ids,
                              std::span<const Armed> timers) {
  queue.cancel_all(ids);
  queue.schedule_all(timers);
};

/// A queue whose operations are not inlined, nor left out when they do nothing.
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
  // A plain Tick, 0 when there is none: how g++ returns an optional from a call that is not inlined
  // costs several times what is measured here.
  [[gnu::noinline]] Tick next() const {
    keep_call();
    return queue_.next().value_or(0);
  }

  /// Bytes of its own pages, which malloc does not know of.
  std::size_t mapped_bytes() const {
    if constexpr (requires { queue_.mapped_bytes(); }) return queue_.mapped_bytes();
    return 0;
  }

  /// In one call where the queue has one, else one by one.
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

// TimerQueue: the common interface of all timer queues, however they keep their timers in order.
//
// Code for this concept runs on every queue: SimpleWheel, HashedWheel, HierarchicalWheel,
// TimerWheel, FifoTimerWheel, HeapQueue, TreeQueue and ListQueue. The tests, the fuzz input and the
// benchmarks use it. docs/guides/choosing-a-queue.md helps you to choose a queue.
//
//     template <detent::TimerQueue Queue>
//     void close_idle_connections(Queue& queue, detent::Tick now) {
//       queue.advance(now, [](typename Queue::Timer& timer) noexcept {
//         close(static_cast<Connection<Queue>&>(timer).socket);
//       });
//     }
//
// The contract is that of TimerWheel (detent/timer_wheel.h). Timers never fire early, and fire in
// the order of deadlines. A timer that a callback schedules at or before now() waits for the next
// call. `limit` bounds one call. Queues differ in the cost of an operation, in the memory per
// timer, in the order of equal deadlines, and in two more points:
//
// - A queue with a bounded span refuses deadlines beyond it: `schedule` and `postpone` return
//   false. The timer stays unchanged: pending at its old deadline, or not pending.
// - A queue with slots wider than one tick fires at the first multiple of its slot width that is
//   not before the deadline. A timer is then late by less than a slot, and never early.
//
// DenseWheel has the same contract for timers that are numbers; see NumberQueue below.
#pragma once

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <optional>

#include "detent/advance.h"
#include "detent/tick.h"

namespace detent {

namespace internal {

/// A callback that takes any timer; it checks the callbacks that `advance` accepts.
struct AnyTimerCallback {
  template <class Timer>
  void operator()(Timer&) const noexcept {}
};

/// The same callback for timers that are numbers.
struct AnyNumberCallback {
  void operator()(std::uint32_t) const noexcept {}
};

// clang-format 14 would break the lines within `{ … } noexcept -> …`.
// clang-format off

/// The interface of both kinds of queues. `Name` is the type of the timer parameter.
template <class Q, class Name, class OnFire>
concept QueueOf =
    !std::movable<Q> &&
    requires(Q& queue, const Q& unchanged, Name timer, Tick tick, OnFire on_fire,
             std::size_t limit) {
      { queue.schedule(timer, tick) } noexcept -> std::same_as<bool>;
      { queue.postpone(timer, tick) } noexcept -> std::same_as<bool>;
      { queue.cancel(timer) } noexcept -> std::same_as<bool>;
      { queue.advance(tick, on_fire) } noexcept -> std::same_as<AdvanceResult>;
      { queue.advance(tick, on_fire, limit) } noexcept -> std::same_as<AdvanceResult>;
      { unchanged.next_wakeup() } noexcept -> std::same_as<std::optional<Tick>>;
      { unchanged.now() } noexcept -> std::same_as<Tick>;
      { unchanged.size() } noexcept -> std::same_as<std::size_t>;
      { unchanged.empty() } noexcept -> std::same_as<bool>;
      { unchanged.check_invariants() } noexcept;
    };

// clang-format on

}  // namespace internal

// clang-format 14 would break the lines within `{ … } noexcept -> …`.
// clang-format off

/// The timer type of a queue. A timer lives in the caller's object, is not copyable, and cancels
/// itself in its destructor. The function deadline() returns the deadline of a pending or fired
/// timer. After a cancel, its result differs between queues.
template <class T>
concept QueueTimer = std::default_initializable<T> && !std::copyable<T> && !std::movable<T> &&
                     requires(const T& timer) {
                       { timer.is_pending() } noexcept -> std::same_as<bool>;
                       { timer.deadline() } noexcept -> std::same_as<Tick>;
                     };

// clang-format on

/// A priority queue of timers, ordered by deadline. Thread-compatible. Neither copyable nor
/// movable, because its timers point to it. Its destructor cancels pending timers.
template <class Q>
concept TimerQueue = QueueTimer<typename Q::Timer> &&
    internal::QueueOf<Q, typename Q::Timer&, internal::AnyTimerCallback>;

/// A TimerQueue for timers that are numbers: DenseWheel. Its functions and the callback of
/// `advance` take a std::uint32_t as the timer.
template <class Q>
concept NumberQueue = internal::QueueOf<Q, std::uint32_t, internal::AnyNumberCallback>;

namespace internal {

/// The type of the timer parameter of a queue's functions.
template <class Q>
struct TimerNameOf;
template <TimerQueue Q>
struct TimerNameOf<Q> {
  using Type = typename Q::Timer&;
};
template <NumberQueue Q>
struct TimerNameOf<Q> {
  using Type = std::uint32_t;
};

}  // namespace internal

}  // namespace detent

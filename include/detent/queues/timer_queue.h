// TimerQueue: what every queue of the family can do, whatever keeps its timers in order.
//
// Code written against this concept runs on any of them, and the tests, the fuzz input and the
// benchmarks are: SimpleWheel, HashedWheel, HierarchicalWheel, TimerWheel, FifoTimerWheel,
// HeapQueue, TreeQueue and ListQueue. docs/guides/choosing-a-queue.md says which to take.
//
//     template <detent::TimerQueue Queue>
//     void close_idle_connections(Queue& queue, detent::Tick now) {
//       queue.advance(now, [](typename Queue::Timer& timer) noexcept {
//         close(static_cast<Connection<Queue>&>(timer).socket);
//       });
//     }
//
// The contract is TimerWheel's, word for word (detent/timer_wheel.h): never early, in the order of
// deadlines, what a callback schedules for at or before now waits for the next call, `limit` bounds
// one call. Queues differ in what an operation costs, in the memory a timer takes, in the order of
// equal deadlines, and in these two:
//
//  - A queue with a bounded span refuses what lies beyond it: `schedule` and `postpone` return
//    false, and the timer is as it was: still pending at its old deadline, or not pending.
//  - A queue whose slots are wider than one tick fires at the first multiple of its slot width that
//    is not before the deadline: late by less than a slot, never early.
//
// DenseWheel keeps the same contract for timers that are numbers: that is NumberQueue, below.
#pragma once

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <optional>

#include "detent/advance.h"
#include "detent/tick.h"

namespace detent {

namespace internal {

/// A callback that takes any timer, for checking what `advance` accepts.
struct AnyTimerCallback {
  template <class Timer>
  void operator()(Timer&) const noexcept {}
};

/// The same for timers that are numbers.
struct AnyNumberCallback {
  void operator()(std::uint32_t) const noexcept {}
};

// clang-format 14 would break the lines within `{ … } noexcept -> …`.
// clang-format off

/// What a queue of either kind can do; `Name` is what its calls take for a timer.
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

/// A timer of a queue: lives in the user's object, not copyable, its destructor cancels it. Its
/// deadline() is that for which it is pending or for which it fired; once it was cancelled, queues
/// differ in what they remember.
template <class T>
concept QueueTimer = std::default_initializable<T> && !std::copyable<T> && !std::movable<T> &&
                     requires(const T& timer) {
                       { timer.is_pending() } noexcept -> std::same_as<bool>;
                       { timer.deadline() } noexcept -> std::same_as<Tick>;
                     };

// clang-format on

/// A priority queue of timers by deadline. Thread-compatible; neither copyable nor movable, because
/// its timers point at it. Destroying it cancels what is pending.
template <class Q>
concept TimerQueue = QueueTimer<typename Q::Timer> &&
    internal::QueueOf<Q, typename Q::Timer&, internal::AnyTimerCallback>;

/// The same for timers that are numbers: DenseWheel. Its calls take a std::uint32_t for the timer,
/// and so does the callback of `advance`.
template <class Q>
concept NumberQueue = internal::QueueOf<Q, std::uint32_t, internal::AnyNumberCallback>;

namespace internal {

/// What calls of a queue take for a timer.
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

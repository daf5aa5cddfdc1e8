// QueueDrive: a timer queue for a program that has a loop of its own: epoll, kqueue, a game's.
//
//     struct Connection : detent::Timer { int socket; };
//
//     Connection connection;
//     detent::TimerWheel wheel;
//     detent::SystemClock clock;
//     detent::QueueDrive drive(wheel, clock);
//     drive.schedule_after(connection, 30s);           // connected
//     drive.postpone_after(connection, 30s);           // heard of: one store in the wheel
//     while (serving) {
//       handle_io(drive.time_to_next());               // sleeps no longer than that
//       drive.run_ready({.time = 2ms}, [](detent::Timer& timer) noexcept {
//         close(static_cast<Connection&>(timer).socket);
//       });
//     }
//
// On a DenseWheel timers are numbers here too: drive.schedule_after(7, 30s), and callbacks take a
// std::uint32_t.
//
// A queue counts ticks and reads no clock; a loop sleeps for durations and must not be held up. The
// drive is what lies between: it turns time into ticks (deadlines rounded up, the present down),
// says how long to sleep, and fires what is due within a budget. It has no thread and allocates
// nothing. docs/guides/own-loop.md tells how to drive it from epoll, a game loop or another
// framework's timer, and when to take a Scheduler instead.
//
// "How long until the next timer" and "run what is due", called by whoever owns the loop, is how
// Varghese and Lauck's facilities meet their host, and libevent's and libev's loops their timers.
// Read next: queues/timer_queue.h (the queues), internal/tick_scale.h (rounding).
#pragma once

#include <algorithm>
#include <chrono>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <optional>

#include "detent/advance.h"
#include "detent/check.h"
#include "detent/clock.h"
#include "detent/internal/saturate.h"
#include "detent/internal/tick_scale.h"
#include "detent/queues/timer_queue.h"
#include "detent/tick.h"

namespace detent {

/// How much one call of `run_ready` may do. What is not named is not limited.
struct Budget {
  /// Timers fired or moved (a wheel's cascades included): never exceeded. With 0 nothing is done.
  std::size_t count = kNoLimit;
  /// Time by the drive's clock. It is looked at between timers, so one of them may overrun it;
  /// `run_ready` says by how much. One timer is always handled, so that a loop gets ahead.
  std::chrono::nanoseconds time = std::chrono::nanoseconds::max();
};

/// Drives a queue by a clock. It refers to its queue rather than holding it, because queues can't
/// be moved and those with measures come out of `make`. The queue is advanced by the drive only;
/// everything else may be done with it directly. Thread-compatible: it belongs to the loop's
/// thread.
template <class Q>
requires TimerQueue<Q> || NumberQueue<Q>
class QueueDrive {
 public:
  /// What the queue's calls take for a timer: `Q::Timer&`, or on a DenseWheel a number.
  using Name = typename internal::TimerNameOf<Q>::Type;

  /// Tick n of `queue` is n × `resolution` after now. A timer may be late by less than a
  /// resolution; a coarser one saves wake-ups. Queue and clock must outlive the drive.
  /// Requires: queue.now() == 0, resolution > 0.
  QueueDrive(Q& queue, Clock& clock,
             std::chrono::nanoseconds resolution = std::chrono::milliseconds{1}) noexcept
      : queue_(queue), clock_(clock), scale_(clock.now(), resolution) {
    DETENT_CHECK(queue.now() == 0);
  }
  QueueDrive(const QueueDrive&) = delete;
  QueueDrive& operator=(const QueueDrive&) = delete;

  /// Arms `timer`, or moves it if it is pending: it is due `delay` after now by the clock, never
  /// earlier. A delay that is not positive is due at once, one beyond the end of time at that end.
  /// Called from a callback, what is due at once fires in the next `run_ready`, at most a
  /// resolution from now. Returns: false when the queue does not take that deadline; the timer
  /// then is as it was. A queue's cost, and the clock is read.
  template <class Rep, class Period>
  bool schedule_after(Name timer, std::chrono::duration<Rep, Period> delay) noexcept {
    return arm(tick_after(delay), [&](Tick tick) { return queue_.schedule(timer, tick); });
  }
  /// The same for an instant, without reading the clock. An instant that has passed is due at once,
  /// or at the end of the present tick if it is in that tick.
  bool schedule_at(Name timer, MonotonicTime deadline) noexcept {
    return arm(scale_.tick_at_or_after(deadline),
               [&](Tick tick) { return queue_.schedule(timer, tick); });
  }
  /// As `schedule_after`, and cheaper where the queue's `postpone` is and it moves a pending timer
  /// to later, as a sign of life does. The loop may wake once at the old deadline, for nothing.
  template <class Rep, class Period>
  bool postpone_after(Name timer, std::chrono::duration<Rep, Period> delay) noexcept {
    return arm(tick_after(delay), [&](Tick tick) { return queue_.postpone(timer, tick); });
  }
  /// Disarms `timer`. Returns: whether it was pending, and so will not fire.
  bool cancel(Name timer) noexcept { return queue_.cancel(timer); }

  /// Returns: how long the loop may sleep; empty: until something else happens, since no timer is
  /// pending. Zero when something is due or a budget cut `run_ready` short. It may be too short
  /// (a wheel has its timers to move; run_ready then fires nothing) but never too long, and it is
  /// exact: who sleeps that long finds something to do. Who sleeps in coarser units rounds up, or
  /// wakes too early and sleeps again. Reads the clock.
  std::optional<std::chrono::nanoseconds> time_to_next() const noexcept {
    const std::optional<MonotonicTime> next = next_wakeup();
    if (!next) return std::nullopt;
    return distance(clock_.now(), *next);
  }
  /// The same as an instant, for a timer that takes one (timerfd's TFD_TIMER_ABSTIME); it stays
  /// right however long it takes to set that timer. When something is due, it has passed.
  std::optional<MonotonicTime> next_wakeup() const noexcept {
    const std::optional<Tick> tick = queue_.next_wakeup();
    if (!tick) return std::nullopt;
    return scale_.time_of(*tick);
  }

  /// Calls `on_fire(timer)` for what is due, in the order of deadlines, until all is done or the
  /// budget is used up. Returns: how many fired, and whether the budget cut it short (`more`, even
  /// if none fired): the next call goes on there.
  ///
  /// - What is due is decided when the call begins. What becomes due while it runs, or what a
  ///   callback schedules for at once, is left to the next call. So it ends, whatever callbacks do
  ///   through the drive, and the loop gets its turn; time_to_next() then says when to come back.
  /// - The clock is looked at after as many timers as should take half the time left, going by what
  ///   the last callbacks took, and after at most kLongestBatch of them. So it overruns `time` by
  ///   less than a callback while those take about as long as each other, and never by more than
  ///   kLongestBatch timers.
  /// - Callbacks may schedule, postpone, cancel and destroy any timer, their own included. They
  ///   must not throw, nor call `run_ready`.
  template <std::invocable<Name> OnFire>
  AdvanceResult run_ready(const Budget& budget, OnFire&& on_fire) noexcept {
    const MonotonicTime begin = clock_.now();
    const Tick present = scale_.tick_at_or_before(begin);
    earliest_ = present + 1;
    const AdvanceResult result = run_batches(present, begin, budget, on_fire);
    earliest_ = 0;
    return result;
  }

  /// The most timers that are handled between two looks at the clock.
  static constexpr std::size_t kLongestBatch = 64;

 private:
  using Nanoseconds = std::chrono::nanoseconds;

  template <class OnFire>
  AdvanceResult run_batches(Tick present, MonotonicTime begin, const Budget& budget,
                            OnFire& on_fire) noexcept {
    const bool is_timed = budget.time != Nanoseconds::max();
    const MonotonicTime end =
        internal::saturating_add(begin, std::max(budget.time, Nanoseconds::zero()));
    AdvanceResult all;
    std::size_t left = budget.count;
    for (MonotonicTime now = begin;;) {
      const std::size_t limit = is_timed ? std::min(left, batch_within(now, end)) : left;
      const AdvanceResult one = queue_.advance(present, on_fire, limit);
      all = {.fired = all.fired + one.fired, .more = one.more};
      left -= limit;  // as many were fired or moved, if there is more
      if (!one.more || left == 0) return all;
      const MonotonicTime before = now;
      now = clock_.now();
      if (one.fired > 0) cost_ = distance(before, now) / static_cast<Nanoseconds::rep>(one.fired);
      if (now >= end) return all;
    }
  }

  std::size_t batch_within(MonotonicTime now, MonotonicTime end) const noexcept {
    if (cost_ == Nanoseconds::zero()) return kLongestBatch;
    const auto affordable = static_cast<std::size_t>(distance(now, end) / 2 / cost_);
    return std::clamp<std::size_t>(affordable, 1, kLongestBatch);
  }

  // A bounded queue measures its span from where it has got to, and that may be before a long
  // sleep. Refused, it is brought to the present, firing nothing, and asked again. Within a
  // callback it is there already.
  template <class Schedule>
  bool arm(Tick due, const Schedule& schedule) noexcept {
    const Tick tick = std::max(due, earliest_);
    if (schedule(tick)) return true;
    if (earliest_ != 0) return false;
    queue_.advance(
        scale_.tick_at_or_before(clock_.now()), [](Name) noexcept {}, 0);
    return schedule(tick);
  }

  template <class Rep, class Period>
  Tick tick_after(std::chrono::duration<Rep, Period> delay) const noexcept {
    const Nanoseconds wait = internal::saturate_to_nanoseconds(delay);
    const MonotonicTime now = clock_.now();
    // Due at once is due in the present tick. Rounded up, it would be due in the next one.
    if (wait == Nanoseconds::zero()) return scale_.tick_at_or_before(now);
    return scale_.tick_at_or_after(internal::saturating_add(now, wait));
  }

  // From one instant to a later one; zero if it is not later. Unsigned, because the distance
  // between the ends of the time line has one bit more than a duration.
  static Nanoseconds distance(MonotonicTime from, MonotonicTime to) noexcept {
    if (to <= from) return Nanoseconds::zero();
    const std::uint64_t count = static_cast<std::uint64_t>(to.time_since_epoch().count()) -
                                static_cast<std::uint64_t>(from.time_since_epoch().count());
    const auto most = static_cast<std::uint64_t>(Nanoseconds::max().count());
    return Nanoseconds{static_cast<Nanoseconds::rep>(std::min(count, most))};
  }

  Q& queue_;
  Clock& clock_;
  internal::TickScale scale_;
  // What a callback took on average when last measured; at first unknown, so as bad as can be.
  Nanoseconds cost_ = Nanoseconds::max();
  // While callbacks run, the first tick after the present: what they schedule belongs there, or a
  // call of many batches might fire it itself, and never end. Otherwise 0. (After the last of all
  // ticks it is 0 as well, but no clock lives to see it.)
  Tick earliest_ = 0;
};

}  // namespace detent

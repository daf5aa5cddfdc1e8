// QueueDrive: a timer queue for a program with its own loop, for example epoll, kqueue or a game
// loop.
//
//     struct Connection : detent::Timer { int socket; };
//
//     Connection connection;
//     detent::TimerWheel wheel;
//     detent::SystemClock clock;
//     detent::QueueDrive drive(wheel, clock);
//     drive.schedule_after(connection, 30s);           // connected
//     drive.postpone_after(connection, 30s);           // data came: 30 s from now; cheap
//     while (serving) {
//       handle_io(drive.time_to_next());               // sleeps no longer than that
//       drive.run_ready({.time = 2ms}, [](detent::Timer& timer) noexcept {
//         close(static_cast<Connection&>(timer).socket);
//       });
//     }
//
// On a DenseWheel timers are numbers: call drive.schedule_after(7, 30s), and use callbacks that
// take a std::uint32_t. If your time is a clock of std::chrono, take detent/wheel.h: it is a wheel
// with its drive.
//
// A queue counts ticks and does not read a clock. A loop sleeps for durations and must not be
// blocked for long. The drive connects them. It converts time to ticks (deadlines rounded up, the
// present rounded down). It tells the loop how long to sleep, and fires due timers within a budget.
// It has no thread and allocates no memory. The page docs/guides/own-loop.md shows how to call it
// from epoll, a game loop or another framework's timer. It also says when a Scheduler is the better
// choice.
//
// Source: the owner of the loop asks "how long until the next timer" and calls "run due timers".
// This is the interface between Varghese and Lauck's facilities and their host, and between timers
// and the loops of libevent and libev. Read next: queues/timer_queue.h (the queues),
// internal/tick_scale.h (rounding).
#pragma once

#include <algorithm>
#include <chrono>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <ratio>

#include "detent/advance.h"
#include "detent/budget.h"
#include "detent/check.h"
#include "detent/clock.h"
#include "detent/internal/saturate.h"
#include "detent/internal/tick_scale.h"
#include "detent/queues/timer_queue.h"
#include "detent/tick.h"

namespace detent {

/// A clock as std::chrono has it: a type with a static now(). Its ticks are not finer than
/// nanoseconds.
template <class C>
concept StdClock = std::ratio_greater_equal_v<typename C::period, std::nano> && requires {
  { C::now() } -> std::same_as<typename C::time_point>;
};

/// A clock that can drive a queue.
template <class C>
concept DriveableClock = std::same_as<C, Clock> || StdClock<C>;

namespace internal {

/// Reads the clock of a drive and converts its instants: deadlines are rounded up, the present is
/// rounded down. Immutable.
template <class C>
class DriveClock;

template <>
class DriveClock<Clock> {
 public:
  using TimePoint = MonotonicTime;

  explicit DriveClock(Clock& clock) noexcept : clock_(clock) {}
  MonotonicTime now() const noexcept { return clock_.now(); }
  static MonotonicTime at_or_after(MonotonicTime time) noexcept { return time; }
  static MonotonicTime time_of(MonotonicTime time) noexcept { return time; }

 private:
  Clock& clock_;
};

template <StdClock C>
class DriveClock<C> {
 public:
  using TimePoint = typename C::time_point;

  MonotonicTime now() const noexcept {
    return floor_to_monotonic_time(C::now().time_since_epoch());
  }
  static MonotonicTime at_or_after(TimePoint time) noexcept {
    return ceil_to_monotonic_time(time.time_since_epoch());
  }
  static TimePoint time_of(MonotonicTime time) noexcept {
    return TimePoint(std::chrono::ceil<typename TimePoint::duration>(time.time_since_epoch()));
  }
};

}  // namespace internal

/// Drives a queue by a clock: a `Clock` object, or a clock type of std::chrono such as
/// std::chrono::steady_clock. The caller makes the queue, and the drive holds a reference to it.
/// Only the drive may advance the queue. All other operations can be used on the queue directly.
/// Thread-compatible: use it on the loop's thread.
///
/// If the clock is stepped back, timers are late by the step, so a steady clock is the better
/// choice.
template <class Q, DriveableClock C = Clock>
requires TimerQueue<Q> || NumberQueue<Q>
class QueueDrive {
 public:
  /// The timer parameter of the queue's functions: `Q::Timer&`, or a number for a DenseWheel.
  using Name = typename internal::TimerNameOf<Q>::Type;
  /// An instant of the clock.
  using TimePoint = typename internal::DriveClock<C>::TimePoint;

  /// Makes a drive. Tick n of `queue` is n × `resolution` after now. A timer can be late by less
  /// than one resolution. A coarser resolution needs fewer wake-ups. Requires: queue and clock
  /// outlive the drive, queue.now() == 0, resolution > 0.
  QueueDrive(Q& queue, Clock& clock,
             std::chrono::nanoseconds resolution = std::chrono::milliseconds{1}) noexcept requires
      std::same_as<C, Clock> : QueueDrive(queue, internal::DriveClock<C>(clock), resolution) {}
  /// As above, for a clock of std::chrono.
  explicit QueueDrive(Q& queue, std::chrono::nanoseconds resolution =
                                    std::chrono::milliseconds{1}) noexcept requires StdClock<C>
      : QueueDrive(queue, internal::DriveClock<C>(), resolution) {}
  QueueDrive(const QueueDrive&) = delete;
  QueueDrive& operator=(const QueueDrive&) = delete;

  /// Schedules `timer`, or moves it if it is pending. It fires `delay` after the present clock
  /// time, never earlier. A delay of 0 or less is due immediately. A delay beyond the end of the
  /// clock is shortened to its end. If a callback schedules a timer that is due immediately, the
  /// timer fires in the next `run_ready`, at most one resolution from now.
  ///
  /// Returns false if the queue does not accept the deadline; the timer then stays unchanged. Cost:
  /// as the queue, plus one reading of the clock.
  template <class Rep, class Period>
  bool schedule_after(Name timer, std::chrono::duration<Rep, Period> delay) noexcept {
    return arm(tick_after(delay), [&](Tick tick) { return queue_.schedule(timer, tick); });
  }
  /// As schedule_after, for an instant, and without reading the clock. An instant in the past is
  /// due immediately. An instant within the present tick is due at the end of this tick.
  bool schedule_at(Name timer, TimePoint deadline) noexcept {
    return arm(scale_.tick_at_or_after(clock_.at_or_after(deadline)),
               [&](Tick tick) { return queue_.schedule(timer, tick); });
  }
  /// As `schedule_after`, but cheaper if it moves a pending timer to later and the queue has a fast
  /// `postpone`. Use it for keep-alive signals. The loop may wake once at the old deadline without
  /// firing a timer.
  template <class Rep, class Period>
  bool postpone_after(Name timer, std::chrono::duration<Rep, Period> delay) noexcept {
    return arm(tick_after(delay), [&](Tick tick) { return queue_.postpone(timer, tick); });
  }
  /// Cancels `timer`. Returns true if the timer was pending; it will not fire.
  bool cancel(Name timer) noexcept { return queue_.cancel(timer); }

  /// Returns how long the loop may sleep; std::nullopt if no timer is pending. Returns zero if a
  /// timer is due or if a budget cut `run_ready` short.
  ///
  /// The time is never too long. It can be shorter than the time to the next deadline, if the wheel
  /// has to move timers; `run_ready` then fires no timer. A loop that sleeps exactly this long
  /// always finds work. A loop that sleeps in coarser units must round up; otherwise it wakes too
  /// early and sleeps again. Reads the clock.
  std::optional<std::chrono::nanoseconds> time_to_next() const noexcept {
    const std::optional<Tick> tick = queue_.next_wakeup();
    if (!tick) return std::nullopt;
    return internal::time_between(clock_.now(), scale_.time_of(*tick));
  }
  /// As time_to_next, but returns an instant, for timers that take an absolute time (timerfd's
  /// TFD_TIMER_ABSTIME). The instant stays valid however long it takes to set such a timer. If a
  /// timer is due, the instant is in the past. Does not read the clock.
  std::optional<TimePoint> next_wakeup() const noexcept {
    const std::optional<Tick> tick = queue_.next_wakeup();
    if (!tick) return std::nullopt;
    return clock_.time_of(scale_.time_of(*tick));
  }

  /// Calls `on_fire(timer)` for due timers in the order of deadlines, until no due timer is left or
  /// the budget is used up. Returns the number of fired timers. `more` is true if the budget ended
  /// the call; then the next call continues there. `more` can be true although no timer fired.
  ///
  /// - The start of the call decides which timers are due. A timer that becomes due during the
  ///   call, or that a callback schedules as due immediately, is left to the next call. The call
  ///   therefore always ends, whatever the callbacks do through the drive. After the call,
  ///   time_to_next() tells when to call again.
  /// - The drive reads the clock after a batch of timers. From the duration of the last callbacks
  ///   it estimates a batch that takes half of the remaining time, at most kLongestBatch timers.
  ///   The call therefore exceeds `time` by less than one callback, if callbacks take about equally
  ///   long. It never exceeds `time` by more than kLongestBatch timers.
  /// - Callbacks may schedule, postpone, cancel and destroy any timer, including their own. They
  ///   must not throw and must not call `run_ready`.
  template <std::invocable<Name> OnFire>
  AdvanceResult run_ready(const Budget& budget, OnFire&& on_fire) noexcept {
    const MonotonicTime begin = clock_.now();
    const Tick present = scale_.tick_at_or_before(begin);
    earliest_ = present + 1;
    const AdvanceResult result = run_batches(present, begin, budget, on_fire);
    earliest_ = 0;
    return result;
  }

  /// The largest number of timers between two readings of the clock.
  static constexpr std::size_t kLongestBatch = 64;

 private:
  using Nanoseconds = std::chrono::nanoseconds;

  QueueDrive(Q& queue, internal::DriveClock<C> clock, Nanoseconds resolution) noexcept
      : queue_(queue), clock_(clock), scale_(clock.now(), resolution) {
    DETENT_CHECK(queue.now() == 0);
  }

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
      if (one.fired > 0)
        cost_ = internal::time_between(before, now) / static_cast<Nanoseconds::rep>(one.fired);
      if (now >= end) return all;
    }
  }

  std::size_t batch_within(MonotonicTime now, MonotonicTime end) const noexcept {
    if (cost_ == Nanoseconds::zero()) return kLongestBatch;
    const auto affordable = static_cast<std::size_t>(internal::time_between(now, end) / 2 / cost_);
    return std::clamp<std::size_t>(affordable, 1, kLongestBatch);
  }

  // A bounded queue measures its span from its own time, which can be far behind after a long
  // sleep. If the queue refuses a deadline, the drive advances the queue to the present without
  // firing, and tries again. Inside a callback the queue is already at the present.
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
    // A timer that is due immediately belongs to the present tick. Rounding up would move it to the
    // next tick.
    if (wait == Nanoseconds::zero()) return scale_.tick_at_or_before(now);
    return scale_.tick_at_or_after(internal::saturating_add(now, wait));
  }

  Q& queue_;
  internal::DriveClock<C> clock_;
  internal::TickScale scale_;
  // The average duration of a callback in the last measurement. Before the first measurement it has
  // the maximum.
  Nanoseconds cost_ = Nanoseconds::max();
  // While callbacks run: the first tick after the present, otherwise 0. Callbacks schedule at this
  // tick or later. Otherwise a call of many batches could fire such timers itself and never end.
  // (After the last possible tick the value is also 0, but no clock reaches that tick.)
  Tick earliest_ = 0;
};

}  // namespace detent

// TimerWheel: any number of timers, each operation O(1), no clock, no thread.
//
// The idea. A priority queue keeps timers sorted, although most are cancelled or moved before they
// are due and their order never mattered. A wheel sorts only as far as needed: what is due soon is
// kept to the tick, what is due later in ever coarser slots. When time reaches a coarse slot, its
// timers move to finer ones (they *cascade*), at most once a level.
//
// A tick is a 64-bit number, read as eight digits of eight bits. A timer lives on the level of the
// highest digit in which its deadline differs from now, in the slot that digit names. Eight levels
// of 256 slots so cover every 64-bit tick: a tick may be a nanosecond and nothing overflows. One
// bit a slot tells which hold timers, so the next wake-up is a few bit scans, and a jump over empty
// time costs no more than a step.
//
// Timers live in the user's own objects. The wheel keeps a *cell* for each that is pending, its
// deadline and its address side by side with those of the same slot, so that firing and cascading
// read memory in order instead of following pointers. Moving a timer to later (`postpone`, the
// keep-alive pattern) only stores the new deadline in its cell: the wheel notices when it reaches
// the old slot.
//
//     struct Session : detent::Timer { int socket; };
//
//     detent::TimerWheel wheel;                         // now() == 0; let a tick be a millisecond
//     Session session;
//     wheel.schedule(session, wheel.now() + 30'000);    // arm, or move
//     wheel.postpone(session, wheel.now() + 60'000);    // there was traffic: later
//     wheel.advance(60'000, [](detent::Timer& timer) {  // time has passed
//       close(static_cast<Session&>(timer).socket);
//     });
//
// Cost (docs/internals/wheel.md has nanoseconds):
//
//     schedule, cancel    O(1); memory doubles from 2 KiB on. From 128 KiB on Linux grants it
//                         64 KiB at a time and has it back; from 4 MiB on in pages of 2 MiB, if it
//                         grants these to who asks. On other systems memory is kept
//     postpone            one store
//     next_wakeup         O(1), a few bit scans
//     advance             O(1) a timer fired or moved, and O(1) besides, however far it goes;
//                         a timer is moved at most 8 times between two calls that name it
//     memory              16 bytes a timer in the user's object and 18 in a full slot; 1 KiB at
//                         least for a slot that is not empty (2 MiB if all are); 17 KB a wheel,
//                         20 with one timer
//
// Timers that have an index anyway (a connection's number, a slab's) are better off still on a
// DenseWheel, and FifoTimerWheel keeps the order of equal deadlines: the same wheel, other lists.
//
// Hierarchical wheels: Varghese and Lauck, "Hashed and hierarchical timing wheels" (SOSP 1987,
// ToN 1997). Levels by the highest differing digit with occupancy words: William Ahern's timeout.c,
// Tokio's timer. Read next: internal/level_map.h (levels), internal/cell_lists.h (cells),
// internal/level_store.h (the wheel made of both), internal/queue_passes.h (`advance`);
// docs/internals/wheel.md (why it is built this way, a figure, measurements),
// src/wheel/timer_wheel_test.cc (the contract, sentence by sentence).
#pragma once

#include <concepts>
#include <cstddef>
#include <optional>

#include "detent/advance.h"
#include "detent/check.h"
#include "detent/internal/cell_lists.h"
#include "detent/internal/level_store.h"
#include "detent/internal/queue_passes.h"
#include "detent/tick.h"
#include "detent/timer.h"

namespace detent {

/// Something to call with each timer that is due. It must not throw.
template <class F>
concept TimerCallback = std::invocable<F&, Timer&>;

namespace internal {

/// How a wheel's cells reach the timers they belong to.
struct TimerOwners {
  using Name = Timer*;
  static CellNumber& cell_of(Timer* timer) noexcept { return timer->cell_; }
  static CellNumber find(const Timer* timer) noexcept { return timer->cell_; }
  static Timer& release(Timer* timer, Tick deadline) noexcept {
    timer->cell_ = kNoCell;
    timer->deadline_ = deadline;
    return *timer;
  }
};

}  // namespace internal

/// A hierarchical timing wheel for timers that live in the user's objects. Thread-compatible.
/// Neither copyable nor movable: its timers point at it. It must not be destroyed, nor advanced,
/// from inside a callback of its own. Running out of memory ends the process.
///
/// A *pass* is the work of going to one tick. One call of `advance` is one pass, unless its limit
/// cuts it short: then the next call finishes that pass before it begins its own.
class TimerWheel {
 public:
  using Timer = detent::Timer;

  /// No limit to what one `advance` does.
  static constexpr std::size_t npos = kNoLimit;

  explicit TimerWheel(Tick now = 0) noexcept : passes_(now), store_(now) {}

  /// Cancels every timer. O(size()).
  ~TimerWheel();
  TimerWheel(const TimerWheel&) = delete;
  TimerWheel& operator=(const TimerWheel&) = delete;

  /// Arms `timer`, or moves it if it is pending. A deadline at or before now(), or at or before the
  /// tick that an unfinished pass goes to, belongs to the next pass: it fires at the next
  /// `advance`, never in the one that is running. Requires: `timer` is not pending on another wheel
  /// (which may belong to another thread; cancel it there first). Returns: true always; other
  /// queues of the family have deadlines they refuse.
  bool schedule(Timer& timer, Tick deadline) noexcept;

  /// As `schedule`, and cheaper when it moves a pending timer to later: it only stores the
  /// deadline.
  bool postpone(Timer& timer, Tick deadline) noexcept;

  /// Disarms `timer`. Requires: it is not pending on another wheel.
  /// Returns: true when it was pending and so will not fire; false when there was nothing to do.
  bool cancel(Timer& timer) noexcept;

  /// Makes room for `count` pending timers in full slots, which is kept: scheduling them allocates
  /// less, or nothing. O(count).
  void reserve(std::size_t count) { store_.lists().reserve(count); }

  /// Returns: bytes of pages that the kernel holds for the timers, beside what comes from the heap:
  /// little on Linux, but all while they are few, under a sanitizer, and on other systems. For
  /// people to see: O(them / 4 KiB).
  std::size_t mapped_bytes() const noexcept { return store_.lists().mapped_bytes(); }

  /// Returns: the tick until which nothing needs doing; empty when no timer is pending. It is never
  /// later than the earliest deadline, and now() when something waits for the next `advance`. It
  /// may be early: the start of a coarse slot that holds several timers, or the old place of one
  /// that was postponed. Going from wake-up to wake-up takes at most 8 to reach a timer's deadline,
  /// and one more when it was postponed.
  std::optional<Tick> next_wakeup() const noexcept { return passes_.next_wakeup(store_); }

  /// Moves time forward to `now` (not backward: an earlier `now` counts as now()) and calls
  /// `on_fire(Timer&)` for every timer due, in the order of their deadlines; equal deadlines in an
  /// order that is unspecified but the same in every run.
  ///
  /// - Each timer is no longer pending when its callback starts. The callback may schedule,
  ///   postpone, cancel and destroy any timer, its own included. It must not throw.
  /// - Inside a callback now() is the tick this pass goes to. What a callback schedules at or
  ///   before that tick waits for the next call; what a callback cancels does not fire.
  /// - At most `limit` timers are fired or moved between slots. If that was not enough, `more` is
  ///   true (`fired` may be 0), now() is the last tick that is finished, and the next call goes on
  ///   where this one stopped, to the same tick, before it begins a pass of its own. So callbacks
  ///   that schedule for at once cannot hold back timers that were due before.
  template <TimerCallback OnFire>
  AdvanceResult advance(Tick now, OnFire&& on_fire, std::size_t limit = npos) noexcept {
    return passes_.advance(store_, now, on_fire, limit);
  }

  /// Returns: the last tick that is finished; inside a callback the tick the pass goes to.
  Tick now() const noexcept { return passes_.now(); }

  /// Returns: how many timers are pending.
  std::size_t size() const noexcept { return store_.size(); }
  bool empty() const noexcept { return size() == 0; }

  /// Stops the process unless every invariant of its parts holds. For tests: O(size() + slots).
  void check_invariants() const noexcept { passes_.check_invariants(store_); }

 private:
  friend class detent::Timer;

  static constexpr unsigned kDigitBits = 8;
  template <unsigned kListCount>
  using Lists = internal::CellLists<internal::TimerOwners, kListCount>;

  Tick deadline_of(const Timer& timer) const noexcept {
    return store_.lists().at(timer.cell_).deadline;
  }
  // Not inlined, like all that is rare: it would make the callers save their registers.
  [[gnu::noinline]] bool reschedule(Timer& timer, Tick deadline) noexcept {
    cancel(timer);
    return schedule(timer, deadline);
  }

  internal::QueuePasses passes_;
  internal::LevelStore<Lists, kDigitBits> store_;
};

inline Timer::~Timer() {
  if (is_pending()) wheel_->cancel(*this);
}

inline Tick Timer::deadline() const noexcept {
  return is_pending() ? wheel_->deadline_of(*this) : deadline_;
}

inline TimerWheel::~TimerWheel() {
  DETENT_CHECK(!passes_.advancing());
  store_.lists().for_each(
      [](unsigned, auto, const auto& entry) { internal::TimerOwners::release(entry.name, 0); });
}

inline bool TimerWheel::schedule(Timer& timer, Tick deadline) noexcept {
  if (timer.is_pending()) [[unlikely]]
    return reschedule(timer, deadline);
  timer.wheel_ = this;
  store_.add({deadline, &timer}, passes_.end());
  return true;
}

inline bool TimerWheel::postpone(Timer& timer, Tick deadline) noexcept {
  if (timer.is_pending() && deadline > passes_.end()) [[likely]] {
    DETENT_CHECK(timer.wheel_ == this);
    if (store_.move_in_place(timer.cell_, deadline)) return true;
  }
  return reschedule(timer, deadline);
}

inline bool TimerWheel::cancel(Timer& timer) noexcept {
  if (!timer.is_pending()) return false;
  DETENT_CHECK(timer.wheel_ == this);
  const internal::CellNumber cell = timer.cell_;
  internal::TimerOwners::release(&timer, 0);
  return store_.remove(cell);
}

}  // namespace detent

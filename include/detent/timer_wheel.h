// TimerWheel: any number of timers, O(1) for each operation, without a clock or a thread.
//
// The idea. A priority queue keeps all timers sorted. But most timers are cancelled or moved before
// they are due, so sorting them is wasted work. A wheel sorts only as far as needed. It keeps near
// deadlines in slots of one tick, and later deadlines in ever coarser slots. When time reaches a
// coarse slot, the timers of that slot move to finer slots (they *cascade*), at most once per
// level.
//
// A tick is a 64-bit number, read as eight digits of eight bits. The level of a timer is the
// highest digit in which its deadline differs from now. The value of this digit in the deadline is
// the number of its slot. Eight levels of 256 slots cover every 64-bit tick, so a tick may be a
// nanosecond without overflow. One bit per slot says whether the slot holds timers. The next
// wake-up is found by a few bit scans, and a jump over empty time costs as much as one step.
//
// Timers live in the caller's own objects. For each pending timer the wheel keeps a *cell* with the
// deadline and the address of the timer. Cells of one slot lie side by side, so firing and
// cascading read memory in order and follow no list of pointers. `postpone` moves a timer to a
// later deadline, for example after each packet of a connection (the keep-alive pattern). It only
// stores the new deadline in the cell, and the timer stays in its slot. When time reaches this
// slot, the wheel moves the timer to the slot of the new deadline.
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
// Cost (docs/internals/wheel.md has measurements in nanoseconds):
//
//     schedule, cancel    O(1); `schedule` may allocate
//     postpone            O(1), one store
//     next_wakeup         O(1), a few bit scans
//     advance             O(1) per timer fired or moved, and O(1) per call for any distance. After
//                         `schedule` or `postpone`, a timer moves at most 8 times before it fires
//     memory              per pending timer: 16 bytes in the caller's object, and 18 bytes in the
//                         wheel if its slot is full. A slot with timers takes at least 1 KiB (2 MiB
//                         if all slots are used). In addition, a fixed cost of 17 KB
//                         per wheel, or 20 KB with one timer
//
// The array of cells doubles when it is full, from 2 KiB. Below 128 KiB the array is on the heap.
// From 128 KiB, the memory comes directly from Linux: a page takes memory only when the wheel first
// writes to it, and the wheel returns most of the memory that it no longer needs, in blocks of 64
// KiB. From 4 MiB the wheel asks for pages of 2 MiB, and returns only whole pages. Linux grants
// such pages if transparent huge pages are enabled for programs that ask. On other systems the
// wheel keeps its memory until it is destroyed.
//
// If your timers have an array index anyway, for example a connection number, DenseWheel is faster.
// FifoTimerWheel keeps equal deadlines in the order of scheduling. Both are the same wheel with
// other lists.
//
// Sources: hierarchical wheels are from Varghese and Lauck, "Hashed and hierarchical timing wheels"
// (SOSP 1987, ToN 1997). Levels by the highest differing digit, with occupancy words, are from
// William Ahern's timeout.c and Tokio's timer.
//
// Read next: internal/level_map.h (levels), internal/cell_lists.h (cells), internal/level_store.h
// (the wheel made of both) and internal/queue_passes.h (`advance`). The page
// docs/internals/wheel.md explains the design, with a figure and measurements. The tests in
// src/wheel/timer_wheel_test.cc check each sentence of the contract.
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

/// A callable that takes each due timer. It must not throw.
template <class F>
concept TimerCallback = std::invocable<F&, Timer&>;

namespace internal {

/// Maps between the cells of a wheel and their timers.
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

/// A hierarchical timing wheel for timers that live in the caller's objects. Thread-compatible.
/// Neither copyable nor movable, because its timers point to it. A callback must not destroy or
/// advance its own wheel. If an allocation fails, the process ends.
///
/// A *pass* fires all timers up to one tick, the target tick of the pass. A call of `advance(now)`
/// is one pass to `now`, unless its limit cuts the call short. The next call then finishes this
/// pass before it begins its own.
class TimerWheel {
 public:
  using Timer = detent::Timer;

  /// No limit for one call of `advance`.
  static constexpr std::size_t npos = kNoLimit;

  /// Makes an empty wheel whose time is `now`. O(1).
  explicit TimerWheel(Tick now = 0) noexcept : passes_(now), store_(now) {}

  /// Cancels every timer. O(size()).
  ~TimerWheel();
  TimerWheel(const TimerWheel&) = delete;
  TimerWheel& operator=(const TimerWheel&) = delete;

  /// Schedules `timer`, or moves it if it is pending. A deadline at or before now() fires at the
  /// next `advance`. The same is true for a deadline at or before the tick of an unfinished pass:
  /// it never fires in the running pass. Requires: `timer` is not pending on another wheel. (That
  /// wheel may belong to another thread; cancel the timer there first.) Always returns true,
  /// because this wheel accepts every deadline. The function returns bool because the other queues
  /// of this library have the same function, and some of them refuse deadlines. Amortised O(1).
  bool schedule(Timer& timer, Tick deadline) noexcept;

  /// As `schedule`, but cheaper if it moves a pending timer to a later deadline: it only stores the
  /// deadline. For any other timer or deadline it does what `schedule` does. Amortised O(1).
  bool postpone(Timer& timer, Tick deadline) noexcept;

  /// Cancels `timer`. Requires: `timer` is not pending on another wheel. Returns true if the timer
  /// was pending; it will not fire. Returns false if it was not pending. O(1).
  bool cancel(Timer& timer) noexcept;

  /// Reserves memory for `count` pending timers in full slots, and keeps it. Scheduling these
  /// timers then needs fewer allocations, or none. Slots with few timers can need more memory than
  /// this. O(count).
  void reserve(std::size_t count) { store_.lists().reserve(count); }

  /// Returns the number of bytes that the wheel has directly from the kernel, in addition to its
  /// memory on the heap. Counts only pages that the kernel has provided. Arrays below 128 KiB are
  /// on the heap. With AddressSanitizer or LeakSanitizer, and on systems other than Linux, all
  /// arrays are on the heap, and the result is 0. For people to look at. O(pages of 4 KiB).
  std::size_t mapped_bytes() const noexcept { return store_.lists().mapped_bytes(); }

  /// Returns the next tick that can have work; std::nullopt if no timer is pending. The tick is
  /// never later than the earliest deadline. It is now() if a timer waits for the next `advance`.
  ///
  /// The tick may be early. It can be the start of a coarse slot with several timers, or the old
  /// place of a postponed timer. A loop that goes from wake-up to wake-up reaches the deadline of a
  /// timer after at most 8 wake-ups. A postponed timer can take one wake-up more. O(1).
  std::optional<Tick> next_wakeup() const noexcept { return passes_.next_wakeup(store_); }

  /// Moves time forward to `now` and calls `on_fire(Timer&)` for every due timer, in the order of
  /// deadlines. Timers with equal deadlines fire in an unspecified order, which is the same in
  /// every run. Time never moves backward: an earlier `now` counts as now().
  ///
  /// - A timer is no longer pending when its callback starts. The callback may schedule, postpone,
  ///   cancel and destroy any timer, including its own. It must not throw.
  /// - Inside a callback, now() is the target tick of this pass. If the callback schedules a timer
  ///   at or before this tick, the timer waits for the next call. A timer that the callback cancels
  ///   does not fire.
  /// - At most `limit` timers are fired or moved between slots. If work is left, `more` is true
  ///   (`fired` may be 0), and now() is the last finished tick. The next call continues this pass
  ///   to the same tick before it begins its own pass. Callbacks that schedule due timers therefore
  ///   cannot hold back timers that were due before.
  ///
  /// Cost: O(1) for each timer fired or moved, and O(1) per call, for any distance.
  template <TimerCallback OnFire>
  AdvanceResult advance(Tick now, OnFire&& on_fire, std::size_t limit = npos) noexcept {
    return passes_.advance(store_, now, on_fire, limit);
  }

  /// Returns the last finished tick; inside a callback, the target tick of the pass.
  Tick now() const noexcept { return passes_.now(); }

  /// Returns the number of pending timers. O(1).
  std::size_t size() const noexcept { return store_.size(); }
  /// Returns size() == 0.
  bool empty() const noexcept { return size() == 0; }

  /// For tests: stops the process if an invariant of the wheel is broken. O(size() + slots).
  void check_invariants() const noexcept { passes_.check_invariants(store_); }

 private:
  friend class detent::Timer;

  static constexpr unsigned kDigitBits = 8;
  template <unsigned kListCount>
  using Lists = internal::CellLists<internal::TimerOwners, kListCount>;

  Tick deadline_of(const Timer& timer) const noexcept {
    return store_.lists().at(timer.cell_).deadline;
  }
  // Not inlined, because it is rare: inlining would make the callers save registers.
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

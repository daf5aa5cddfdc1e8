// TimerWheel: any number of timers, each operation O(1), no clock, no thread, no allocation.
//
// The idea. A priority queue keeps timers sorted, although most are cancelled or moved before they
// are due and their order never mattered. A wheel sorts only as far as needed: what is due soon is
// kept to the tick, what is due later in ever coarser slots. When time reaches a coarse slot, its
// timers move to finer ones (they *cascade*), at most once a level.
//
// A tick is a 64-bit number, read as eleven digits of six bits. A timer lives on the level of the
// highest digit in which its deadline differs from now, in the slot that digit names. Eleven levels
// of 64 slots so cover every 64-bit tick: a tick may be a nanosecond and nothing overflows. One
// 64-bit word a level tells which slots hold timers, so the next wake-up is two bit scans, and a
// jump over empty time costs no more than a step.
//
// Timers are links inside the user's own objects. Moving one to later (`postpone`, the keep-alive
// pattern) only stores the new deadline: the wheel notices when it reaches the old slot.
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
//     schedule, cancel    O(1), no allocation
//     postpone            one store into the timer
//     next_wakeup         O(1), two bit scans
//     advance             O(1) a timer fired or moved, and O(1) besides, however far it goes;
//                         a timer is moved at most 11 times between two calls that name it
//     memory              32 bytes a timer, inside the user's object; 168 KB a wheel
//
// Hierarchical wheels: Varghese and Lauck, "Hashed and hierarchical timing wheels" (SOSP 1987,
// ToN 1997). Levels by the highest differing digit with an occupancy word each: William Ahern's
// timeout.c, Tokio's timer. Read next: internal/timer_levels.h (the levels),
// docs/internals/wheel.md (why it is built this way, a figure, measurements),
// src/wheel/timer_wheel_test.cc (the contract, sentence by sentence).
#pragma once

#include <algorithm>
#include <concepts>
#include <cstddef>
#include <limits>
#include <optional>

#include "detent/check.h"
#include "detent/internal/link_list.h"
#include "detent/internal/timer_levels.h"
#include "detent/tick.h"
#include "detent/timer.h"

namespace detent {

/// What one call of `advance` did.
struct AdvanceResult {
  std::size_t fired = 0;  ///< timers whose callback ran
  bool more = false;      ///< it stopped at its limit; call again to go on
};

/// Something to call with each timer that is due. It must not throw.
template <class F>
concept TimerCallback = std::invocable<F&, Timer&>;

/// A hierarchical timing wheel for timers that live in the user's objects. Thread-compatible.
/// Neither copyable nor movable: its timers point at it. It must not be destroyed, nor advanced,
/// from inside a callback of its own.
///
/// A *pass* is the work of going to one tick. One call of `advance` is one pass, unless its limit
/// cuts it short: then the next call finishes that pass before it begins its own.
///
/// Invariants (check_invariants() tests them by brute force):
///  1. A timer is pending exactly when it is in one of the lists below; size() counts them.
///  2. Timers in future_ have deadlines at or after their slot's start; slots start at or after
///     future_.base(). (`postpone` may have set a deadline beyond the slot's end.)
///  3. Whatever has a deadline at or before pass_end_ and was scheduled after the pass began is in
///     waiting_ or admitted_: it belongs to a later pass.
///  4. Outside a pass, overdue_, admitted_, moving_ and firing_ are empty and
///     now() == future_.base() == pass_end_.
///  5. In a pass, now() <= pass_end_ and future_.base() <= pass_end_; at most one of moving_ and
///     firing_ holds timers; firing_ holds what future_.base() or an overdue tick makes due.
class TimerWheel {
 public:
  using Timer = detent::Timer;

  /// No limit to what one `advance` does.
  static constexpr std::size_t npos = std::numeric_limits<std::size_t>::max();

  explicit TimerWheel(Tick now = 0) noexcept : future_(now), now_(now), pass_end_(now) {}

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
  /// deadline, and touches nothing but the timer.
  void postpone(Timer& timer, Tick deadline) noexcept;

  /// Disarms `timer`. Requires: it is not pending on another wheel.
  /// Returns: true when it was pending and so will not fire; false when there was nothing to do.
  bool cancel(Timer& timer) noexcept;

  /// Returns: the tick until which nothing needs doing; empty when no timer is pending. It is never
  /// later than the earliest deadline, and now() when something waits for the next `advance`. It
  /// may be early: the start of a coarse slot that holds several timers, or the old place of one
  /// that was postponed. Going from wake-up to wake-up takes at most 11 to reach a timer's
  /// deadline.
  std::optional<Tick> next_wakeup() const noexcept;

  /// Moves time forward to `now` (not backward: an earlier `now` counts as now()) and calls
  /// `on_fire(Timer&)` for every timer due, in the order of their deadlines; equal deadlines in an
  /// order that is unspecified but the same in every run.
  ///
  /// - Each timer is no longer pending when its callback starts. The callback may schedule,
  ///   postpone, cancel and destroy any timer, its own included. It must not throw.
  /// - Inside a callback now() is the tick this pass goes to. What a callback schedules at or
  /// before
  ///   that tick waits for the next call; what a callback cancels does not fire.
  /// - At most `limit` timers are fired or moved between slots. If that was not enough, `more` is
  ///   true (`fired` may be 0), now() is the last tick that is finished, and the next call goes on
  ///   where this one stopped, to the same tick, before it begins a pass of its own. So callbacks
  ///   that schedule for at once cannot hold back timers that were due before.
  template <TimerCallback OnFire>
  AdvanceResult advance(Tick now, OnFire&& on_fire, std::size_t limit = npos) noexcept;

  /// Returns: the last tick that is finished; inside a callback the tick the pass goes to.
  Tick now() const noexcept { return now_; }

  /// Returns: how many timers are pending.
  std::size_t size() const noexcept { return size_; }
  bool empty() const noexcept { return size_ == 0; }

  /// Stops the process unless every invariant above holds. For tests: O(size() + slots).
  void check_invariants() const noexcept;

 private:
  friend struct TimerWheelPeer;  // for tests: src/wheel/timer_wheel_model.h

  // What one call of `advance` may still do, and what it has done.
  struct Work {
    std::size_t left = 0;
    std::size_t fired = 0;
  };

  // The slot to empty next, and whose it is.
  struct NextSlot {
    internal::TimerLevels& levels;
    internal::TimerLevels::Slot slot;
  };

  static Timer& timer_of(internal::Link& link) noexcept { return reinterpret_cast<Timer&>(link); }
  static const Timer& timer_of(const internal::Link& link) noexcept {
    return reinterpret_cast<const Timer&>(link);
  }

  internal::Spread spread() const noexcept {
    return size_ < spread_from_ ? internal::Spread::one_chain : internal::Spread::over_all_chains;
  }

  void begin_pass(Tick end) noexcept;
  template <class OnFire>
  bool run_pass(OnFire& on_fire, Work& work) noexcept;
  std::optional<NextSlot> next_slot() noexcept;
  void take(const NextSlot& next) noexcept;
  bool place_moving(Work& work) noexcept;
  template <class OnFire>
  bool fire_taken(OnFire& on_fire, Work& work) noexcept;
  void place(Timer& timer) noexcept;
  void unlink(Timer& timer) noexcept;
  Tick last_finished(Tick at_least) noexcept;
  template <class Visit>
  void for_each_list(Visit&& visit) const;

  // Constant after construction. From this many timers on, new ones go to several chains of a slot,
  // which hides the time that memory takes. Fewer fit in the caches, where one list is quicker.
  std::size_t spread_from_ = 16'384;

  // Where pending timers are. Each is in exactly one of these.
  internal::TimerLevels future_;      // base(): every earlier tick is finished
  internal::TimerLevels overdue_{0};  // in a pass: due before future_.base(), to be sorted
  internal::LinkList waiting_;        // due when scheduled, since the last call began
  internal::LinkList admitted_;       // the same, from before: taken by the next pass
  internal::LinkChains moving_;       // to be placed by their deadlines
  internal::LinkChains firing_;       // taken from a slot of one tick: fire, unless postponed

  std::size_t size_ = 0;
  Tick now_;
  Tick pass_end_;           // where the pass goes, or where the last one went
  bool in_pass_ = false;    // a pass has begun and is not finished; it may span several calls
  bool advancing_ = false;  // a call of `advance` is running
};

inline Timer::~Timer() {
  if (wheel_ != nullptr) wheel_->cancel(*this);
}

inline TimerWheel::~TimerWheel() {
  DETENT_CHECK(!advancing_);
  for_each_list([](const internal::LinkList& list) {
    for (internal::Link* link = list.sentinel().next; link != &list.sentinel();) {
      Timer& timer = timer_of(*link);
      link = link->next;
      timer.wheel_ = nullptr;
    }
  });
}

inline bool TimerWheel::schedule(Timer& timer, Tick deadline) noexcept {
  if (timer.wheel_ != nullptr) {
    DETENT_CHECK(timer.wheel_ == this);
    unlink(timer);
  } else {
    timer.wheel_ = this;
    ++size_;
  }
  timer.deadline_ = deadline;
  if (deadline > pass_end_) {
    future_.insert(timer.link_, deadline, spread());
  } else {
    waiting_.push_back(timer.link_);
  }
  return true;
}

// A deadline after pass_end_ means that the timer is in future_, and that the pass that is running,
// if any, does not reach it.
inline void TimerWheel::postpone(Timer& timer, Tick deadline) noexcept {
  const bool in_future = timer.wheel_ == this && timer.deadline_ > pass_end_;
  if (in_future && deadline >= timer.deadline_) {
    timer.deadline_ = deadline;
  } else {
    schedule(timer, deadline);
  }
}

inline bool TimerWheel::cancel(Timer& timer) noexcept {
  if (timer.wheel_ == nullptr) return false;
  DETENT_CHECK(timer.wheel_ == this);
  unlink(timer);
  timer.wheel_ = nullptr;
  --size_;
  return true;
}

inline std::optional<Tick> TimerWheel::next_wakeup() const noexcept {
  if (size_ == 0) return std::nullopt;
  if (in_pass_ || !waiting_.empty()) return now_;
  const internal::TimerLevels::Slot slot = *future_.next();
  if (slot.level == 0) return slot.start;
  const internal::Link* const only = future_.only_link(slot);
  return only == nullptr ? slot.start : std::min(timer_of(*only).deadline_, slot.last());
}

template <TimerCallback OnFire>
AdvanceResult TimerWheel::advance(Tick now, OnFire&& on_fire, std::size_t limit) noexcept {
  DETENT_CHECK(!advancing_);
  advancing_ = true;
  admitted_.append(waiting_);
  Work work{.left = limit};
  bool finished = !in_pass_ || run_pass(on_fire, work);
  if (finished) {
    begin_pass(std::max(now, now_));
    finished = run_pass(on_fire, work);
  }
  advancing_ = false;
  return {.fired = work.fired, .more = !finished};
}

// Timers that waited for this pass are sorted before it fires any, overdue ones among them by a
// second set of levels, so that even those fire in deadline order and with bounded work.
inline void TimerWheel::begin_pass(Tick end) noexcept {
  pass_end_ = end;
  in_pass_ = true;
  overdue_.set_base(0);
  moving_.append(0, admitted_);
}

// Returns: whether the pass is finished; if not, it stopped because work.left is used up. It may
// stop between any two timers: what is not done yet stays in the lists, where cancel finds it.
template <class OnFire>
bool TimerWheel::run_pass(OnFire& on_fire, Work& work) noexcept {
  const Tick finished_before = now_;
  now_ = pass_end_;
  while (place_moving(work) && fire_taken(on_fire, work)) {
    const std::optional<NextSlot> next = next_slot();
    if (!next) {
      future_.set_base(pass_end_);
      in_pass_ = false;
      return true;
    }
    if (work.left == 0) break;
    take(*next);
  }
  now_ = last_finished(finished_before);
  return false;
}

inline std::optional<TimerWheel::NextSlot> TimerWheel::next_slot() noexcept {
  if (const auto slot = overdue_.next()) return NextSlot{overdue_, *slot};
  const auto slot = future_.next();
  if (!slot || slot->start > pass_end_) return std::nullopt;
  return NextSlot{future_, *slot};
}

// A slot of one tick fires, a coarser one is moved to finer ones. If it holds one timer only, that
// one fires at once: nothing else is due before it.
inline void TimerWheel::take(const NextSlot& next) noexcept {
  const auto& [levels, slot] = next;
  if (slot.level == 0) return levels.take(slot, slot.start, firing_);
  const internal::Link* const only = levels.only_link(slot);
  if (only != nullptr) {
    const Tick deadline = timer_of(*only).deadline_;
    if (deadline <= std::min(slot.last(), pass_end_)) return levels.take(slot, deadline, firing_);
  }
  levels.take(slot, slot.start, moving_);
}

// Returns: whether moving_ is empty now.
inline bool TimerWheel::place_moving(Work& work) noexcept {
  while (work.left != 0) {
    internal::Link* const link = moving_.pop();
    if (link == nullptr) return true;
    --work.left;
    place(timer_of(*link));
  }
  return moving_.empty();
}

// Returns: whether firing_ is empty now. It counts and detaches each timer before calling out,
// because the callback may destroy it.
template <class OnFire>
bool TimerWheel::fire_taken(OnFire& on_fire, Work& work) noexcept {
  while (work.left != 0) {
    internal::Link* const link = firing_.pop();
    if (link == nullptr) return true;
    --work.left;
    Timer& timer = timer_of(*link);
    // A timer that was postponed is reached early, at its old tick.
    if (timer.deadline_ > future_.base()) {
      place(timer);
      continue;
    }
    timer.wheel_ = nullptr;
    --size_;
    ++work.fired;
    on_fire(timer);
  }
  return firing_.empty();
}

inline void TimerWheel::place(Timer& timer) noexcept {
  internal::TimerLevels& levels = timer.deadline_ < future_.base() ? overdue_ : future_;
  levels.insert(timer.link_, timer.deadline_, spread());
}

inline void TimerWheel::unlink(Timer& timer) noexcept {
  const internal::Link* const emptied = internal::unlink(timer.link_);
  if (emptied == nullptr) return;
  future_.note_emptied(emptied);
  overdue_.note_emptied(emptied);
}

// The tick up to which everything is done when a pass stops early. The base itself is done only
// if nothing that may be due at it is left; overdue timers leave the base where the pass began.
inline Tick TimerWheel::last_finished(Tick at_least) noexcept {
  const Tick base = future_.base();
  if (base == at_least) return at_least;
  const auto next = future_.next();
  const bool base_done = moving_.empty() && firing_.empty() && !(next && next->start == base);
  return base_done ? base : base - 1;
}

template <class Visit>
void TimerWheel::for_each_list(Visit&& visit) const {
  const auto visit_slot = [&visit](const auto&, const internal::LinkList& list) { visit(list); };
  future_.for_each_chain(visit_slot);
  overdue_.for_each_chain(visit_slot);
  visit(waiting_);
  visit(admitted_);
  for (const internal::LinkList& chain : moving_.chains()) visit(chain);
  for (const internal::LinkList& chain : firing_.chains()) visit(chain);
}

inline void TimerWheel::check_invariants() const noexcept {
  std::size_t linked = 0;
  for_each_list([this, &linked](const internal::LinkList& list) {
    const internal::Link* previous = &list.sentinel();
    for (const internal::Link* link = previous->next; link != &list.sentinel(); link = link->next) {
      DETENT_CHECK(link->prev == previous);
      DETENT_CHECK(timer_of(*link).wheel_ == this);
      previous = link;
      ++linked;
    }
    DETENT_CHECK(list.sentinel().prev == previous);
  });
  DETENT_CHECK(linked == size_);

  future_.check_invariants();
  overdue_.check_invariants();
  const auto no_deadline_before_slot = [](const internal::TimerLevels::Slot& slot,
                                          const internal::LinkList& list) {
    for (const internal::Link* link = list.sentinel().next; link != &list.sentinel();
         link = link->next) {
      DETENT_CHECK(timer_of(*link).deadline_ >= slot.start);
    }
  };
  future_.for_each_chain(no_deadline_before_slot);
  overdue_.for_each_chain(no_deadline_before_slot);

  DETENT_CHECK(now_ <= pass_end_);
  DETENT_CHECK(future_.base() <= pass_end_);
  DETENT_CHECK(moving_.empty() || firing_.empty());
  if (in_pass_) return;
  DETENT_CHECK(overdue_.empty() && admitted_.empty() && moving_.empty() && firing_.empty());
  DETENT_CHECK(now_ == pass_end_ && now_ == future_.base());
}

}  // namespace detent

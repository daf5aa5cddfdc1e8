// The passes of a queue: what every member of the family does the same way, whatever keeps its
// timers in order.
//
// A *pass* is the work of going to one tick. One call of `advance` is one pass, unless its limit
// cuts it short: then the next call finishes that pass before it begins its own. Timers that are
// due already when they are scheduled belong to the next pass, so a callback that schedules for at
// once cannot keep a pass from ending. They wait in a list and are admitted when a call begins;
// the pass that follows sorts them before it fires any.
//
// What keeps the timers is a PassStore. It hands them out batch by batch, earliest first: a batch
// is either due at one tick or to be placed anew (a coarse slot's, or what was admitted). The store
// keeps what is left of a batch, so that a timer in it can be cancelled.
#pragma once

#include <algorithm>
#include <concepts>
#include <cstddef>
#include <optional>

#include "detent/advance.h"
#include "detent/check.h"
#include "detent/tick.h"

namespace detent::internal {

/// What a timer taken out of a batch is to become.
enum class Batch { to_place, to_fire };

/// What keeps a queue's timers. Its *base* is the tick it has reached: every earlier one is done.
///
///   base()
///   set_base(t)           ends a pass: every batch up to t is done
///   admit()               what waits → what the next pass takes, at its end
///   begin_pass()          what was admitted → the current batch, to be placed
///   batch()               what the current batch is for
///   batch_empty()
///   drain(n, visit)       takes at most n timers out of the current batch, one by one, and calls
///                         visit(entry) with each, which may add and remove timers; how many
///   place_batch(n)        the same with visit = place, for a batch that is to be placed
///   place(entry)          puts it where its deadline belongs; before base(): overdue
///   release(entry)        the timer is no longer pending; what on_fire is called with
///   next_start()          the tick at which the next batch starts, of those that are not overdue
///   nothing_due(t)        whether nothing waits and no batch starts at or before t; it may say no
///                         when it does not know
///   has_next(t)           whether a batch starts at or before t, overdue ones included
///   take_next(t)          makes the earliest such batch the current one, and moves the base to it;
///                         called only after has_next(t) said yes
template <class S>
concept PassStore = requires(S& store, const S& unchanged, typename S::Entry& entry, Tick tick,
                             std::size_t count) {
  { unchanged.base() } -> std::same_as<Tick>;
  { unchanged.batch() } -> std::same_as<Batch>;
  { unchanged.batch_empty() } -> std::same_as<bool>;
  { unchanged.next_start() } -> std::same_as<std::optional<Tick>>;
  { store.nothing_due(tick) } -> std::same_as<bool>;
  { store.has_next(tick) } -> std::same_as<bool>;
  { entry.deadline } -> std::convertible_to<Tick>;
  {
    store.drain(count, [](const typename S::Entry&) {})
    } -> std::same_as<std::size_t>;
  store.set_base(tick);
  store.admit();
  store.begin_pass();
  { store.place_batch(count) } -> std::same_as<std::size_t>;
  store.place(entry);
  store.release(entry);
  store.take_next(tick);
};

/// Where a queue is in its passes. Owns nothing. Thread-compatible.
///
/// Invariants:
///  1. Outside a pass the current batch is empty and now() == end() == the store's base.
///  2. In a pass, now() <= end() and the store's base is <= end().
///  3. What was scheduled since the pass began with a deadline at or before end() waits or was
///     admitted: it belongs to a later pass.
class QueuePasses {
 public:
  explicit QueuePasses(Tick now) noexcept : now_(now), end_(now) {}

  Tick now() const noexcept { return now_; }
  /// Where the pass goes, or where the last one went.
  Tick end() const noexcept { return end_; }
  /// Whether a pass has begun and is not finished; it may span several calls.
  bool in_pass() const noexcept { return in_pass_; }
  /// Whether a call of `advance` is running.
  bool advancing() const noexcept { return advancing_; }

  /// TimerQueue's `advance`. Requires: not called from a callback.
  template <PassStore Store, class OnFire>
  AdvanceResult advance(Store& store, Tick now, OnFire& on_fire, std::size_t limit) noexcept {
    if (!in_pass_ && now >= now_ && store.nothing_due(now)) [[likely]] {
      now_ = end_ = now;
      store.set_base(now);
      return {};
    }
    return run_passes(store, now, on_fire, limit);
  }

  /// TimerQueue's `next_wakeup`. Requires of the store besides: size(), nothing_waits() and
  /// next_wakeup(), the tick until which nothing in the future needs doing.
  template <PassStore Store>
  std::optional<Tick> next_wakeup(const Store& store) const noexcept {
    if (store.size() == 0) return std::nullopt;
    if (in_pass_ || !store.nothing_waits()) return now_;
    return store.next_wakeup();
  }

  /// Stops the process unless the invariants hold, here and in the store.
  template <PassStore Store>
  void check_invariants(const Store& store) const noexcept {
    store.check_invariants();
    DETENT_CHECK(now_ <= end_ && store.base() <= end_);
    if (in_pass_) return;
    store.check_no_pass();
    DETENT_CHECK(store.batch_empty());
    DETENT_CHECK(now_ == end_ && now_ == store.base());
  }

 private:
  // What one call may still do, and what it has done.
  struct Work {
    std::size_t left = 0;
    std::size_t fired = 0;
  };

  // Not inlined, so that a tick at which nothing is due costs little.
  template <class Store, class OnFire>
  [[gnu::noinline]] AdvanceResult run_passes(Store& store, Tick now, OnFire& on_fire,
                                             std::size_t limit) noexcept {
    DETENT_CHECK(!advancing_);
    advancing_ = true;
    store.admit();
    Work work{.left = limit};
    bool finished = !in_pass_ || run(store, on_fire, work);
    if (finished) {
      end_ = std::max(now, now_);
      in_pass_ = true;
      store.begin_pass();
      finished = run(store, on_fire, work);
    }
    advancing_ = false;
    return {.fired = work.fired, .more = !finished};
  }

  // Returns: whether the pass is finished; if not, it stopped because work.left is used up. It may
  // stop between any two timers.
  template <class Store, class OnFire>
  bool run(Store& store, OnFire& on_fire, Work& work) noexcept {
    const Tick finished_before = now_;
    now_ = end_;
    while (finish_batch(store, on_fire, work)) {
      if (!store.has_next(end_)) {
        store.set_base(end_);
        in_pass_ = false;
        return true;
      }
      if (work.left == 0) break;
      store.take_next(end_);
    }
    now_ = last_finished(store, finished_before);
    return false;
  }

  // Returns: whether the batch is empty now. A timer is counted and released before its callback,
  // which may destroy it.
  template <class Store, class OnFire>
  bool finish_batch(Store& store, OnFire& on_fire, Work& work) noexcept {
    using Entry = typename Store::Entry;
    if (store.batch() == Batch::to_place) {
      work.left -= store.place_batch(work.left);
    } else {
      work.left -= store.drain(work.left, [&](const Entry& entry) {
        if (entry.deadline > store.base()) [[unlikely]] {
          store.place(entry);  // it was postponed, and is met at its old place
        } else {
          ++work.fired;
          on_fire(store.release(entry));
        }
      });
    }
    return store.batch_empty();
  }

  // The tick up to which everything is done when a pass stops early. The base itself is done only
  // if nothing that may be due at it is left; overdue timers leave the base where the pass began.
  template <class Store>
  static Tick last_finished(const Store& store, Tick at_least) noexcept {
    const Tick base = store.base();
    if (base == at_least) return at_least;
    const bool base_done = store.batch_empty() && store.next_start() != base;
    return base_done ? base : base - 1;
  }

  Tick now_;
  Tick end_;
  bool in_pass_ = false;
  bool advancing_ = false;
};

}  // namespace detent::internal

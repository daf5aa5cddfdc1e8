// QueuePasses: the passes of a queue, which are the same for every queue, however it keeps its
// timers in order.
//
// A *pass* is the work of moving to one tick. One call of `advance` is one pass, unless its limit
// cuts the call short. The next call then finishes this pass before it begins its own. A timer that
// is already due when it is scheduled belongs to the next pass. A callback that schedules due
// timers therefore cannot keep a pass from ending. Such timers wait in a list, and are admitted
// when a call begins. The following pass sorts them before it fires any timer.
//
// A PassStore keeps the timers. It hands them out in batches, the earliest batch first. The timers
// of a batch are all due at one tick, or they must be placed again (timers of a coarse slot, or
// admitted timers). The store keeps the rest of a batch, so that these timers can still be
// cancelled.
#pragma once

#include <algorithm>
#include <concepts>
#include <cstddef>
#include <optional>

#include "detent/advance.h"
#include "detent/check.h"
#include "detent/tick.h"

namespace detent::internal {

/// The use of a batch: place its timers again, or fire them.
enum class Batch { to_place, to_fire };

/// The container of a queue's timers. Its *base* is the tick that it has reached: all earlier ticks
/// are finished.
///
///     set_base(t)           ends a pass: every batch up to t is finished
///     admit()               moves the waiting timers behind the timers that the next pass takes
///     begin_pass()          makes the admitted timers the current batch, to be placed
///     batch()               returns the use of the current batch
///     drain(n, visit)       removes at most n timers from the current batch, one by one, and calls
///                           visit(entry) with each; visit may add and remove timers. Returns the
///                           number of removed timers
///     place_batch(n)        drain with visit = place, for a batch that must be placed
///     place(entry)          puts a timer where its deadline belongs; before base(): overdue
///     release(entry)        marks the timer as not pending; returns the argument of on_fire
///     next_start()          returns the tick at which the next batch that is not overdue starts
///     nothing_due(t)        returns true if no timer waits and no batch starts at or before t; may
///                           return false if the store does not know
///     has_next(t)           returns true if a batch starts at or before t, including overdue
///                           batches
///     take_next(t)          makes the earliest such batch the current batch, and moves the base to
///                           it. Requires: has_next(t) returned true
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

/// The progress of a queue in its passes. Owns no timer. Thread-compatible.
///
/// Invariants:
///
/// - Outside a pass the current batch is empty, and now() == end() == the base of the store.
/// - In a pass, now() <= end(), and the base of the store is <= end().
/// - A timer that was scheduled since the pass began, with a deadline at or before end(), waits or
///   is admitted: it belongs to a later pass. No other timer waits or is admitted, so every such
///   timer is due at or before end().
class QueuePasses {
 public:
  explicit QueuePasses(Tick now) noexcept : now_(now), end_(now) {}

  Tick now() const noexcept { return now_; }
  /// Returns the target tick of the running pass, or of the last pass.
  Tick end() const noexcept { return end_; }
  /// Returns true from the beginning of a pass until it is finished. A pass may span several calls.
  bool in_pass() const noexcept { return in_pass_; }
  /// Returns true during a call of `advance`.
  bool advancing() const noexcept { return advancing_; }

  /// Implements TimerQueue's `advance`. Requires: not called from a callback.
  template <PassStore Store, class OnFire>
  AdvanceResult advance(Store& store, Tick now, OnFire& on_fire, std::size_t limit) noexcept {
    if (!in_pass_ && now >= now_ && store.nothing_due(now)) [[likely]] {
      now_ = end_ = now;
      store.set_base(now);
      return {};
    }
    return run_passes(store, now, on_fire, limit);
  }

  /// Implements TimerQueue's `next_wakeup`. The store must also have size(), nothing_waits() and
  /// next_wakeup(), which returns the next tick that can have work for future timers.
  template <PassStore Store>
  std::optional<Tick> next_wakeup(const Store& store) const noexcept {
    if (store.size() == 0) return std::nullopt;
    if (in_pass_ || !store.nothing_waits()) return now_;
    return store.next_wakeup();
  }

  /// Stops the process if an invariant is broken, here or in the store.
  template <PassStore Store>
  void check_invariants(const Store& store) const noexcept {
    store.check_invariants();
    store.check_waiting(end_);
    DETENT_CHECK(now_ <= end_ && store.base() <= end_);
    if (in_pass_) return;
    store.check_no_pass();
    DETENT_CHECK(store.batch_empty());
    DETENT_CHECK(now_ == end_ && now_ == store.base());
  }

 private:
  // The remaining limit of one call, and the number of timers that it has fired.
  struct Work {
    std::size_t left = 0;
    std::size_t fired = 0;
  };

  // Not inlined, so that a tick without due timers costs little.
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

  // Returns true if the pass is finished. Otherwise it stopped because work.left is 0. It may stop
  // between any two timers.
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

  // Returns true if the batch is empty now. A timer is counted and released before its callback,
  // because the callback may destroy the timer.
  template <class Store, class OnFire>
  bool finish_batch(Store& store, OnFire& on_fire, Work& work) noexcept {
    using Entry = typename Store::Entry;
    if (store.batch() == Batch::to_place) {
      work.left -= store.place_batch(work.left);
    } else {
      work.left -= store.drain(work.left, [&](const Entry& entry) {
        if (entry.deadline > store.base()) [[unlikely]] {
          store.place(entry);  // it was postponed; this is its old place
        } else {
          ++work.fired;
          on_fire(store.release(entry));
        }
      });
    }
    return store.batch_empty();
  }

  // Returns the last finished tick of a pass that stops early. The base itself is finished only if
  // no timer is left that may be due at the base. Overdue timers leave the base at the start of the
  // pass.
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

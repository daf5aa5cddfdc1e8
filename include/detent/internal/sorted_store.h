// SortedStore: keeps the timers of a queue that sorts them exactly. HeapQueue, TreeQueue and
// ListQueue are SortedStores with different orders.
//
//     schedule ──► waiting ──► admitted ──► placed ──► overdue ──► on_fire
//          └─────────────────────────────────────────► future ───────┘
//
// Only waiting timers are moved. A timer in the future stays in its place until it fires. Read
// first: queue_passes.h, which calls this class.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <utility>

#include "detent/check.h"
#include "detent/internal/queue_passes.h"
#include "detent/tick.h"

namespace detent::internal {

/// The container of a timer in a SortedStore: one of two sorted orders, or one of three piles.
enum class SortedPlace : std::uint8_t { future, overdue, pile_0, pile_1, pile_2 };

/// A PassStore of sorted timers. `Order` defines the sorting by its nested types:
///
///     Timer    the sorted type. SortedStore must have access to its queue_, which is null while
///              the timer is not pending
///     Sorted   insert(t), erase(t), first(), first_deadline(), empty(), for_each(visit),
///              check_invariants(). Optional: move(t, deadline), which gives a held timer another
///              deadline and is faster than erase and insert
///     Pile     the unsorted container: push(t), pop(), remove(t), append(pile, its place),
///              empty(), for_each(visit)
///
/// `Order` also has the functions set_deadline(t, deadline), place_of(t) and set_place(t, place).
/// An order may ignore the places if it can remove a timer from any container in the same way. Owns
/// no timer. Not movable. Thread-compatible.
///
/// Invariants:
///
/// - Every timer in future_ has a deadline after base(). The batch to fire is an exception: it is
///   the first timers of future_, with the deadline base().
/// - Outside a pass overdue_ and the piles admitted_ and placed_ are empty.
template <class Order>
class SortedStore {
 public:
  using Timer = typename Order::Timer;
  struct Entry {
    Tick deadline;
    Timer* timer;
  };

  explicit SortedStore(Tick now) noexcept : base_(now) {}
  /// Cancels every timer. O(timers).
  ~SortedStore() {
    for_each([](Timer& timer) { timer.queue_ = nullptr; });
  }
  SortedStore(const SortedStore&) = delete;
  SortedStore& operator=(const SortedStore&) = delete;

  // ---- For the queue; QueueStore documents each function.

  std::size_t size() const noexcept { return size_; }
  bool accepts(Tick, Tick) const noexcept { return true; }
  bool nothing_waits() const noexcept { return piles_[waiting_].empty(); }
  Tick next_wakeup() const noexcept { return future_.first_deadline(); }

  void schedule(Timer& timer, Tick deadline, Tick pass_end) noexcept {
    if (timer.queue_ != nullptr) {
      DETENT_CHECK(timer.queue_ == this);
      if constexpr (requires { future_.move(timer, deadline); }) {
        if (deadline > pass_end && Order::place_of(timer) == SortedPlace::future) {
          return future_.move(timer, deadline);
        }
      }
      take_out(timer);
    } else {
      timer.queue_ = this;
      ++size_;
    }
    Order::set_deadline(timer, deadline);
    if (deadline > pass_end) {
      insert(timer, SortedPlace::future);
    } else {
      Order::set_place(timer, place_of_pile(waiting_));
      piles_[waiting_].push(timer);
    }
  }

  bool cancel(Timer& timer) noexcept {
    if (timer.queue_ == nullptr) return false;
    DETENT_CHECK(timer.queue_ == this);
    take_out(timer);
    timer.queue_ = nullptr;
    --size_;
    return true;
  }

  typename Order::Sorted& future() noexcept { return future_; }
  const typename Order::Sorted& future() const noexcept { return future_; }

  void check_invariants() const noexcept {
    future_.check_invariants();
    overdue_.check_invariants();
    std::size_t count = 0;
    for_each([this, &count](const Timer& timer) {
      DETENT_CHECK(timer.queue_ == this);
      ++count;
    });
    DETENT_CHECK(count == size_);
    const bool may_fire = batch_ == Batch::to_fire && !batch_empty();
    DETENT_CHECK(future_.empty() || future_.first_deadline() > base_ ||
                 (may_fire && future_.first_deadline() == base_));
  }
  void check_waiting(Tick end) const noexcept {
    for_each([this, end](const Timer& timer) {
      const SortedPlace place = Order::place_of(timer);
      const bool waits = place == place_of_pile(waiting_) || place == place_of_pile(admitted_);
      DETENT_CHECK(!waits || timer.deadline() <= end);
    });
  }
  void check_no_pass() const noexcept {
    DETENT_CHECK(overdue_.empty() && piles_[admitted_].empty() && piles_[placed_].empty());
  }

  // ---- For QueuePasses; PassStore documents each function.

  Tick base() const noexcept { return base_; }
  void set_base(Tick base) noexcept { base_ = base; }

  void admit() noexcept {
    if (piles_[waiting_].empty()) return;
    if (piles_[admitted_].empty()) return std::swap(waiting_, admitted_);
    piles_[admitted_].append(piles_[waiting_], place_of_pile(admitted_));
  }

  void begin_pass() noexcept {
    std::swap(admitted_, placed_);
    batch_ = Batch::to_place;
  }

  Batch batch() const noexcept { return batch_; }
  bool batch_empty() const noexcept {
    if (batch_ == Batch::to_place) return piles_[placed_].empty();
    return overdue_.empty() && (future_.empty() || future_.first_deadline() > base_);
  }

  template <class Visit>
  std::size_t drain(std::size_t limit, Visit&& visit) {
    std::size_t count = 0;
    for (; count < limit && !batch_empty(); ++count) visit(pop());
    return count;
  }

  std::size_t place_batch(std::size_t limit) {
    return drain(limit, [this](const Entry& entry) { place(entry); });
  }

  void place(const Entry& entry) noexcept {
    insert(*entry.timer, entry.deadline > base_ ? SortedPlace::future : SortedPlace::overdue);
  }

  Timer& release(const Entry& entry) noexcept {
    --size_;
    entry.timer->queue_ = nullptr;
    return *entry.timer;
  }

  std::optional<Tick> next_start() const noexcept {
    if (future_.empty()) return std::nullopt;
    return future_.first_deadline();
  }

  bool nothing_due(Tick end) const noexcept { return nothing_waits() && !future_starts_by(end); }
  bool has_next(Tick end) const noexcept { return !overdue_.empty() || future_starts_by(end); }

  void take_next(Tick) noexcept {
    batch_ = Batch::to_fire;
    if (overdue_.empty()) base_ = future_.first_deadline();
  }

 private:
  static SortedPlace place_of_pile(std::size_t pile) noexcept {
    return static_cast<SortedPlace>(static_cast<std::size_t>(SortedPlace::pile_0) + pile);
  }

  bool future_starts_by(Tick end) const noexcept {
    return !future_.empty() && future_.first_deadline() <= end;
  }

  void insert(Timer& timer, SortedPlace place) noexcept {
    Order::set_place(timer, place);
    (place == SortedPlace::future ? future_ : overdue_).insert(timer);
  }

  Entry pop() noexcept {
    Timer& timer = batch_ == Batch::to_place ? piles_[placed_].pop() : pop_first();
    return {timer.deadline(), &timer};
  }

  Timer& pop_first() noexcept {
    typename Order::Sorted& sorted = overdue_.empty() ? future_ : overdue_;
    Timer& timer = *sorted.first();
    sorted.erase(timer);
    return timer;
  }

  void take_out(Timer& timer) noexcept {
    const SortedPlace place = Order::place_of(timer);
    switch (place) {
      case SortedPlace::future:
        return future_.erase(timer);
      case SortedPlace::overdue:
        return overdue_.erase(timer);
      case SortedPlace::pile_0:
      case SortedPlace::pile_1:
      case SortedPlace::pile_2:
        return piles_[static_cast<std::size_t>(place) -
                      static_cast<std::size_t>(SortedPlace::pile_0)]
            .remove(timer);
    }
  }

  template <class Visit>
  void for_each(const Visit& visit) const {
    future_.for_each(visit);
    overdue_.for_each(visit);
    for (const typename Order::Pile& pile : piles_) pile.for_each(visit);
  }

  std::size_t size_ = 0;
  Tick base_;
  Batch batch_ = Batch::to_place;
  typename Order::Sorted future_;
  typename Order::Sorted overdue_;  // in a pass: timers that were due before it began
  std::array<typename Order::Pile, 3> piles_;
  std::size_t waiting_ = 0;   // due when scheduled, since the last call began
  std::size_t admitted_ = 1;  // due when scheduled, before the last call
  std::size_t placed_ = 2;    // taken by the running pass, to be sorted
};

}  // namespace detent::internal
